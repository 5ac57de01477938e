"""A run that is stopped, or killed, and taken up again is bit for bit the run that was never stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from soulsai.checkpoints.store import CheckpointStore
from soulsai.config import config_to_toml, load_preset, with_settings
from soulsai.learning.training import Progress, Training
from soulsai.runs.run import Run

PPO = ["run.steps=6000", "run.evaluate_every_steps=2500", "run.evaluation_fights=2", "fight.number=8",
       "ppo.rollout=16", "ppo.minibatch=64", "run.threads=1", "run.log_every_s=0",
       "network.hidden=[16]"]  # fmt: skip
RAINBOW = ["run.steps=3000", "run.evaluate_every_steps=1300", "run.evaluation_fights=2", "fight.number=4",
           "q.warmup_steps=500", "q.batch=16", "q.noisy=true", "q.n_step=3", "replay.capacity=400",
           "run.threads=1", "run.log_every_s=0", "network.hidden=[16]"]  # fmt: skip
TWIN = ["run.steps=2200", "q.warmup_steps=300", "replay.capacity=2000", "fight.number=2", "run.threads=1",
        "run.evaluate_every_steps=0", "q.burst=5", "q.update_every=4", "run.log_every_s=0",
        "network.hidden=[16]"]  # fmt: skip
# Fights this short end often enough for each of the drawn files to be replaced several times.
DRAWN = [*PPO, 'fight.variants=["standard", "drawn:3"]', "fight.step_limit=20", "run.evaluate_every_steps=0"]
SAC = ["run.steps=2200", "sac.warmup_steps=400", "sac.batch=16", "replay.capacity=400", "fight.number=4",
       "run.threads=1", "run.evaluate_every_steps=0", "run.log_every_s=0", "network.hidden=[16]"]  # fmt: skip
IMPALA = ["run.steps=6000", "impala.rollout=16", "impala.sequences=4", "fight.number=8", "run.threads=1",
          "fight.variants=[\"standard\"]", "run.evaluate_every_steps=0", "run.log_every_s=0",
          "network.hidden=[16]"]  # fmt: skip
CASES = {"sac": ("sac", SAC), "impala": ("impala", IMPALA),
         "ppo": ("smoke", PPO), "rainbow": ("rainbow", RAINBOW), "twin": ("recipe-soulsai", TWIN),
         "drawn": ("smoke", DRAWN)}  # fmt: skip
CASES["several bosses"] = (
    "smoke", [*PPO, "fight.bosses=['iudex', 'margit']", 'fight.variants=["standard", "drawn:2"]']
)  # fmt: skip
CASES["two threads"] = ("smoke", [*PPO, "run.threads=2"])
CASES["two threads, two networks"] = ("clipped-dqn", [*TWIN, "run.threads=2"])
CLOCK = ("time", "elapsed_s", "steps_per_s", "updates_per_s")


class Silent:
    def say(self, text: str) -> None: ...

    def show(self, progress: Progress) -> None: ...


def made(folder: Path, case: str) -> Training:
    preset, settings = CASES[case]
    config = with_settings(load_preset(preset), settings)
    run = Run.create(folder, config_to_toml(config), preset=preset, command=[])
    return Training(run, config, view=Silent(), stop=lambda: False)


def again(folder: Path, training: Training, stop_after: int) -> Training:
    calls = iter(range(10**9))
    other = Training(Run.open(folder), training.config, view=Silent(), stop=lambda: next(calls) >= stop_after)
    other.resume()
    return other


def everything(training: Training) -> dict[str, np.ndarray]:
    parts = training.loop.parts()
    store = training.loop.learner.store
    if store is not None:
        parts["store"] = dict(store.columns)
    return {
        f"{part}.{name}": value.numpy() if isinstance(value, torch.Tensor) else np.asarray(value)
        for part, values in parts.items()
        for name, value in values.items()
    }


def assert_same(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    assert one.keys() == other.keys()
    for name, value in one.items():
        assert value.dtype == other[name].dtype, name
        assert value.tobytes() == other[name].tobytes(), f"{name} differs"


def draws(training: Training) -> int:
    """How many files of the boss were drawn until now."""
    worlds = [actor.world for actor in training.loop.source.actors]
    fights = [one for world in worlds for one in getattr(world, "worlds", [world])]
    return sum(world.batch.population.draws for world in fights)


def rows(folder: Path) -> list[dict[str, float]]:
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    timeless = [{k: v for k, v in line.items() if k not in CLOCK and not k.startswith("time/")} for line in lines]
    return timeless


@pytest.mark.slow
@pytest.mark.parametrize("case", list(CASES))
def test_stopping_and_resuming_changes_nothing(tmp_path: Path, case: str) -> None:
    whole = made(tmp_path / "whole", case)
    whole.begin()
    assert whole.go()

    parts = made(tmp_path / "parts", case)
    calls = iter(range(10**9))
    parts._stop = lambda: next(calls) >= 3
    parts.begin()
    assert not parts.go()
    files = [draws(parts)]
    parts.close("stopped")
    second = again(tmp_path / "parts", parts, 4)
    assert not second.go()
    files.append(draws(second))
    second.close("stopped")
    third = again(tmp_path / "parts", parts, 10**9)
    assert third.go()

    assert third.loop.counters == whole.loop.counters
    if case == "drawn":
        assert files[0] > 3
        assert files[0] < files[1] < draws(third) == draws(whole)
    assert_same(everything(whole), everything(third))
    assert_same(
        {name: value.numpy() for name, value in whole.memory.best.items()},
        {name: value.numpy() for name, value in third.memory.best.items()},
    )
    assert rows(tmp_path / "whole") == rows(tmp_path / "parts")


PROGRAM = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from test_resume import Silent, made
training = made(Path(sys.argv[2]), sys.argv[3])
training._stop = lambda: time.sleep(0.3)  # it is not to be done before it is killed
training.begin()
training.go()
"""


@pytest.mark.slow
@pytest.mark.faults
@pytest.mark.parametrize("case", ["ppo", "rainbow"])
def test_killing_and_resuming_changes_nothing(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CASES, case, (CASES[case][0], [*CASES[case][1], "run.checkpoint_every_s=0"]))
    program = PROGRAM.replace("training = made", f"import test_resume; test_resume.CASES = {CASES!r}\ntraining = made")
    victim = subprocess.Popen(
        [sys.executable, "-c", program, str(Path(__file__).parent), str(tmp_path / "killed"), case],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    store = CheckpointStore(tmp_path / "killed" / "checkpoints")
    deadline = time.monotonic() + 300
    while len(store.numbers()) < 2 and victim.poll() is None:
        assert time.monotonic() < deadline, "no checkpoint within five minutes"
        time.sleep(0.005)
    victim.send_signal(signal.SIGKILL)
    assert victim.wait(30) == -signal.SIGKILL

    whole = made(tmp_path / "whole", case)
    whole.begin()
    whole.go()
    resumed = again(tmp_path / "killed", whole, 10**9)
    assert 0 < resumed.loop.counters.steps < whole.loop.counters.steps
    assert resumed.go()
    assert_same(everything(whole), everything(resumed))
    assert rows(tmp_path / "whole") == rows(tmp_path / "killed")
