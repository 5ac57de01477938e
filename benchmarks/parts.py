"""What encoder and reward cost inside the vector environment, beside the bare engine, in turns on one thread.

python benchmarks/parts.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

import soulsgym  # noqa: F401 (registers the ids)
from soulsgym.actions import ACTION_CONTROLS

FIGHTS, ROUNDS, ROUND_S, SETTLE_STEPS = 1024, 5, 1.0, 100
KINDS: dict[str, dict[str, Any]] = {
    "record by key": {},
    "encoder player, reward duel": {"encoder": "player", "reward": "duel"},
    "encoder soulsai74, reward rl-souls": {"encoder": "soulsai74", "reward": "rl-souls"},
}


def rate(step: Callable[[int], object]) -> float:
    """Steps of fights in a second of processor time."""
    calls, begun = 0, time.process_time()
    while time.process_time() - begun < ROUND_S:
        step(calls)
        calls += 1
    return calls * FIGHTS / (time.process_time() - begun)


def bare_rate(engine: Any, controls: list[Any]) -> float:
    """The same of the engine alone, in short stretches from where it stands, since fights end."""
    settled, played, spent = engine.snapshot(), 0, 0.0
    while spent < ROUND_S:
        engine.restore(settled)
        for control in controls[:8]:
            played += int(np.count_nonzero(engine.fights["outcome"] == 0))
            begun = time.process_time()
            engine.step(control)
            spent += time.process_time() - begun
    engine.restore(settled)
    return played / spent


def main() -> None:
    """Print the medians and their ratios to the bare engine."""
    actions = [np.random.default_rng(index).integers(0, 20, FIGHTS) for index in range(64)]
    controls = [ACTION_CONTROLS[chosen] for chosen in actions]
    envs = {name: gymnasium.make_vec("SoulsGymIudexSim-v0", num_envs=FIGHTS, **kind) for name, kind in KINDS.items()}
    for env in envs.values():
        env.reset(seed=0)
        for index in range(SETTLE_STEPS):
            env.step(actions[index % 64])
    engine = next(iter(envs.values())).unwrapped.engine
    rounds = [
        [
            bare_rate(engine, controls),
            *(rate(lambda index, env=env: env.step(actions[index % 64])) for env in envs.values()),
        ]
        for _ in range(ROUNDS)
    ]
    bare, *rates = (statistics.median(column) for column in zip(*rounds, strict=True))
    print(f"{'bare engine':36s} {bare:12,.0f} steps/s")
    for name, median in zip(envs, rates, strict=True):
        print(f"{name:36s} {median:12,.0f} steps/s  {median / bare:.2f} of the bare engine")


if __name__ == "__main__":
    main()
