"""All figures of learning, from small fights."""

from __future__ import annotations

import json

import pytest
import torch

from benchmarks import limits, peers, train
from benchmarks.peers import Lap
from benchmarks.train import Figure, devices_to_measure, measure_train
from soulsgym.errors import MisuseError

SMALL = ["fight.number=8", "ppo.rollout=4", "ppo.minibatch=16", "ppo.epochs=1", "network.hidden=[8]",
         "replay.capacity=300", "q.batch=16"]  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FEWEST_ROUNDS", 1)
    monkeypatch.setattr(limits, "STEPS_PER_ROUND", 2)
    monkeypatch.setattr(limits, "PLAYED_ROWS", 50)


def test_a_figure_reaches_its_target_or_not():
    assert Figure("a", 0.75, "ratio", 0.75).ok is True
    assert Figure("a", 0.74, "ratio", 0.75).ok is False
    assert Figure("a", 0.74, "ratio").ok is None


def test_devices_are_those_asked_for_or_all(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert devices_to_measure([]) == ("cpu", "cuda")
    assert devices_to_measure(["cuda", "cuda"]) == ("cuda",)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert devices_to_measure([]) == ("cpu",)


@pytest.mark.parametrize("name", ["cuda", "tpu"])
def test_a_device_that_is_not_there_is_refused(monkeypatch, name):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(MisuseError, match=f"'{name}'.*torch has cpu here"):
        devices_to_measure(["cpu", name])


def test_everything_is_measured_and_can_be_written_as_json(small, monkeypatch):
    monkeypatch.setattr(peers, "is_installed", lambda: False)
    before = torch.get_num_threads()
    said: list[str] = []
    speed = measure_train(0.0, devices=["cpu"], threads=1, changes=SMALL, say=said.append)
    found = json.loads(json.dumps(speed.as_dict()))
    targets = {figure["name"]: figure["target"] for figure in found["figures"] if figure["target"]}
    assert targets == {"PPO / its limit": 0.75, "clipped-dqn / its limit": 0.75, "dddqn / its limit": 0.75}
    assert all(isinstance(figure["ok"], bool) for figure in found["figures"] if figure["target"])
    assert {"PPO update, CPU, 1 thread", "clipped-dqn gradient step, CPU, 1 thread"} <= {f.name for f in speed.figures}
    assert found["shares"].keys() == {"PPO", "clipped-dqn", "dddqn"}
    assert any("not installed" in note for note in found["notes"])
    assert any("not installed" in text for text in said)
    assert torch.get_num_threads() == before


def raced(monkeypatch: pytest.MonkeyPatch, ours: Lap, theirs: Lap | None) -> tuple[dict[str, Figure], list[str]]:
    monkeypatch.setattr(peers, "race", lambda config, say: (ours, theirs))
    notes: list[str] = []
    figures = train._race(None, notes, lambda text: None)  # type: ignore[arg-type]
    return {figure.name: figure for figure in figures}, notes


def test_a_peer_that_never_wins_half_is_at_least_that_much_slower(monkeypatch):
    figures, notes = raced(monkeypatch, Lap(12.0, 14.0, 0.8), Lap(None, 126.0, 0.01))
    ratio = figures["Stable-Baselines3 / ours"]
    assert (ratio.value, ratio.at_least, ratio.ok) == (10.5, True, True)
    assert "did not win half within 126 s" in notes[0]


def test_a_peer_that_wins_half_is_compared_by_its_time(monkeypatch):
    figures, notes = raced(monkeypatch, Lap(12.0, 14.0, 0.8), Lap(60.0, 70.0, 0.6))
    ratio = figures["Stable-Baselines3 / ours"]
    assert (ratio.value, ratio.at_least, ratio.ok, notes) == (5.0, False, False, [])


def test_without_a_win_of_ours_there_is_no_ratio(monkeypatch):
    figures, notes = raced(monkeypatch, Lap(None, 300.0, 0.2), None)
    assert figures == {}
    assert "20% after 300 s" in notes[0]
