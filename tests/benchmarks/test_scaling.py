"""The benchmark that solves an environment over Redis, with one that is solved at once."""

import pytest

from benchmarks import scaling


@pytest.mark.slow
def test_an_environment_is_solved_and_everything_ends(tmp_path, monkeypatch):
    monkeypatch.setattr(scaling, "PRESET", "cartpole-ppo")
    monkeypatch.setattr(scaling, "SOLVED", 15.0)
    found = scaling.solve(tmp_path / "run", 1)
    assert found["solved_s"] > 0.0
    assert found["greedy"] > 0.0
    assert not scaling.is_over(tmp_path / "run" / "metrics.jsonl")
