"""The Redis transport, measured for moments: are the figures what they say?"""

from __future__ import annotations

import pytest

from benchmarks import transport
from benchmarks.train import Figure
from benchmarks.transport import make_chunks, measure_transport


def test_chunks_are_real_transitions():
    chunks = make_chunks(64)
    assert len(chunks) == transport.CHUNKS
    assert all(chunk.rows >= 64 for chunk in chunks)
    assert len({chunk.columns["observations"].tobytes() for chunk in chunks}) == transport.CHUNKS


def test_a_figure_may_be_good_when_it_is_small():
    assert Figure("latency", 40.0, "ms", 50.0, at_most=True).ok
    assert not Figure("latency", 60.0, "ms", 50.0, at_most=True).ok
    assert Figure("speed", 60.0, "1/s", 50.0).ok


@pytest.mark.slow
def test_everything_is_measured(monkeypatch):
    monkeypatch.setattr(transport, "POLICIES", 10)
    monkeypatch.setattr(transport, "IDLE_S", 1.0)
    monkeypatch.setattr(transport, "FLEET_S", 4.0)
    speed = measure_transport(1.5, rows=256, fleet=2, say=lambda text: None)
    figures = {figure.name: figure.value for figure in speed.figures}
    ours, limit = (
        figures["from worker memory to replay memory"],
        figures["limit: the same bytes, bare redis-py pipelines"],
    )
    assert 0 < ours < limit * 20  # of the same unit: a chunk is 256 rows
    assert figures["ours / limit"] == pytest.approx(ours / limit)
    assert 0.0 < figures["an idle learner uses of a core"] < 0.5
    latency = next(value for name, value in figures.items() if name.startswith("policy"))
    assert 0.0 < latency < 30_000.0
    assert 0.0 < figures["2 slow workers, oldest chunk"] < 30.0
    assert {figure["ok"] for figure in speed.as_dict()["figures"]} <= {True, False, None}
