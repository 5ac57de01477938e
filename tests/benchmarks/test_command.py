"""`souls bench train`: what it prints, and how it refuses."""

from __future__ import annotations

import json
import re

import pytest
from typer.testing import CliRunner

from benchmarks import train
from benchmarks.command import bench
from benchmarks.train import Figure, TrainSpeed

SPEED = TrainSpeed(
    threads=2,
    devices=("cpu",),
    figures=(
        Figure("PPO, environment steps", 123456.0, "steps/s"),
        Figure("PPO / its limit", 0.81, "ratio", 0.75),
        Figure("clipped-dqn / its limit", 0.7, "ratio", 0.8),
        Figure("Stable-Baselines3 / ours", 11.0, "ratio", 10.0, at_least=True),
    ),
    shares={"PPO": {"learn": 0.7, "act": 0.297, "store": 0.003}},
    notes=("torch sees no CUDA device",),
)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    seen: dict[str, object] = {}

    def measure(seconds, **options):
        seen.update(options | {"seconds": seconds})
        options["say"]("PPO: in turns")
        return SPEED

    monkeypatch.setattr(train, "measure_train", measure)
    return seen


def test_the_table_tells_targets_reached_and_missed(asked, monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    result = CliRunner().invoke(bench, ["train"])
    assert result.exit_code == 0
    lines = {re.split(r" {2,}", line.strip())[0]: line for line in result.stdout.splitlines()}
    assert "123,456 steps/s" in lines["PPO, environment steps"]
    assert "0.81 ratio" in lines["PPO / its limit"]
    assert ">= 0.75" in lines["PPO / its limit"]
    assert "reached" in lines["PPO / its limit"]
    assert "missed" in lines["clipped-dqn / its limit"]
    assert ">= 11.00 ratio" in lines["Stable-Baselines3 / ours"]
    assert "learn 70%, act 30%" in lines["PPO: where the time goes"]
    assert "store" not in lines["PPO: where the time goes"]
    assert "torch sees no CUDA device" in result.stdout


def test_json_is_one_object_and_progress_goes_elsewhere(asked):
    result = CliRunner().invoke(bench, ["train", "--json"])
    assert json.loads(result.stdout)["figures"][1] == {
        "name": "PPO / its limit", "value": 0.81, "unit": "ratio", "target": 0.75, "at_least": False, "at_most": False,
        "ok": True,
    }  # fmt: skip
    assert "PPO: in turns" in result.stderr


def test_options_reach_the_measurement(asked):
    options = ["--seconds", "3", "--no-peers", "--race", "--devices", "cpu", "--devices", "cuda", "--threads", "1"]
    assert CliRunner().invoke(bench, ["train", *options]).exit_code == 0
    asked.pop("say")
    assert asked == {"seconds": 3.0, "with_peers": False, "race": True, "devices": ["cpu", "cuda"], "threads": 1}


def test_the_race_is_only_run_when_asked_for(asked):
    CliRunner().invoke(bench, ["train"])
    assert (asked["race"], asked["with_peers"], asked["devices"]) == (False, True, ())
