"""Environments and the learner's fights give what they gave when `unchanged.json` was recorded, bit for bit.

A digest that differs means that fights of a seed are no longer what they were. If that is meant (a number of the data
was corrected), record them again: `python tests/test_unchanged.py`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import soulsgym  # noqa: F401 (registers the ids)

RECORDED = Path(__file__).with_name("unchanged.json")
STEPS = 400
IDS = ("SoulsGymIudexSim-v0", "SoulsGymIudexSimDemo-v0")
KEYWORDS: tuple[dict[str, Any], ...] = (
    {},
    {"skip_steps": True},
    {"random_player_pose": True},
    {"randomize": 1.0},
    {"variant": "hard"},
    {"phase": 2},
)
MODES = ("NextStep", "SameStep", "Disabled")
PRESETS: tuple[tuple[str, ...], ...] = (
    ("iudex",),
    ("smoke",),
    ("clipped-dqn",),
    ("recipe-soulsai",),
    ("recipe-rl-souls",),
    ("clipped-dqn", "encoder.history=4", "actions.preset=reduced", "starts.curriculum=0.5"),
    ("smoke", "fight.no_hit=true", "fight.step_limit=60", 'fight.variants=["standard","hard"]'),
    ("smoke", "reward.weights={closing=0.1,roll=0.1,step=0.01,combo=1.0,first_hit=1.0,end=1.0}"),
)


class Digest:
    """A running checksum of arrays, numbers and texts."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, value: Any) -> None:
        if isinstance(value, dict):
            for key in sorted(value):
                self._hash.update(key.encode())
                self.add(value[key])
        elif isinstance(value, np.ndarray) and value.dtype != object:
            self._hash.update(f"{value.dtype}{value.shape}".encode())
            self._hash.update(np.ascontiguousarray(value).tobytes())
        elif isinstance(value, (list, tuple, np.ndarray)):
            for one in value:
                self.add(one)
        else:
            self._hash.update(repr(value.item() if isinstance(value, np.generic) else value).encode())

    def __str__(self) -> str:
        return self._hash.hexdigest()[:20]


def single(name: str, keywords: dict[str, Any]) -> str:
    digest, generator = Digest(), np.random.default_rng(1)
    env = gymnasium.make(name, disable_env_checker=True, **keywords)
    observation, info = env.reset(seed=11)
    digest.add((observation, info["action_mask"]))
    for _ in range(STEPS):
        action = generator.choice(np.flatnonzero(info["action_mask"])) if info["action_mask"].any() else 19
        observation, reward, terminated, truncated, info = env.step(int(action))
        digest.add((observation, reward, terminated, truncated, info["action_mask"], info["reward_terms"]))
        if terminated or truncated:
            digest.add([info.get(key) for key in ("won", "time_s", "damage_dealt", "damage_taken", "killed_by")])
            observation, info = env.reset()
            digest.add((observation, info["action_mask"]))
    env.close()
    return str(digest)


def vector(name: str, mode: str) -> str:
    digest, generator = Digest(), np.random.default_rng(2)
    envs = gymnasium.make_vec(name, num_envs=5, vectorization_mode="vector_entry_point",
                              autoreset_mode=mode)  # fmt: skip
    digest.add(envs.reset(seed=7)[0])
    over = np.zeros(5, np.bool_)
    for _ in range(STEPS):
        if mode == "Disabled" and over.any():
            digest.add(envs.reset(options={"reset_mask": over})[0])
        observation, rewards, terminated, truncated, infos = envs.step(generator.integers(20, size=5))
        digest.add((observation, rewards, terminated, truncated, infos["action_mask"]))
        over = terminated | truncated
        if mode == "SameStep" and over.any():
            digest.add([one for one in infos["final_obs"] if one is not None])
    envs.close()
    return str(digest)


def learner(preset: str, *changes: str) -> str:
    from soulsai.config import load_preset, with_settings
    from soulsai.learning.wiring import build_world

    digest, generator = Digest(), np.random.default_rng(3)
    config = with_settings(load_preset(preset), (*changes, "run.threads=1", "fight.number=48", "ppo.minibatch=16"))
    world = build_world(config)
    world.reset(5)
    for _ in range(STEPS):
        digest.add((world.observations, world.masks))
        scores = generator.random(world.masks.shape) * world.masks
        step = world.step(scores.argmax(1))
        digest.add((step.rewards, step.terms, step.steps, step.terminated, step.truncated))
        ended = step.ended
        digest.add((step.final_observations[ended], step.final_masks[ended], step.won[ended], step.standard[ended]))
    world.close()
    return str(digest)


def cases() -> Iterator[tuple[str, Callable[[], str]]]:
    for name in IDS:
        for keywords in KEYWORDS:
            yield f"{name} {json.dumps(keywords)}", lambda n=name, k=keywords: single(n, k)
        for mode in MODES:
            yield f"{name} vector {mode}", lambda n=name, m=mode: vector(n, m)
    for preset in PRESETS:
        yield f"learner {' '.join(preset)}", lambda p=preset: learner(*p)


CASES = dict(cases())


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name.startswith("learner") else ()) for name in CASES]
)
def test_fights_of_a_seed_are_what_they_were(name: str) -> None:
    assert CASES[name]() == json.loads(RECORDED.read_text())[name]


if __name__ == "__main__":
    RECORDED.write_text(json.dumps({name: make() for name, make in CASES.items()}, indent=1) + "\n")
