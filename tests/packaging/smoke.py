"""A short try of an install by its own Python: `python smoke.py [FOLDER]`; soulsgym must lie in FOLDER."""

import sys
from pathlib import Path

import gymnasium
import numpy as np

import soulsgym
from soulsgym.engine import standard_starts
from soulsgym.parts.encoders import make_encoder
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight

STEPS = 30


def one_fight() -> None:
    env = gymnasium.make("SoulsGymIudexSim-v0")
    env.reset(seed=1)
    for _ in range(STEPS):
        env.step(env.action_space.sample())
    env.close()


def many_fights() -> None:
    env = gymnasium.make_vec("SoulsGymIudexSimDemo-v0", num_envs=4)
    env.reset(seed=1)
    for _ in range(STEPS):
        _, reward, _, _, _ = env.step(env.action_space.sample())
    assert reward.shape == (4,)
    env.close()


def encode() -> None:
    spec = load_fight("iudex")
    engine, encoder = SimEngine(spec, 4), make_encoder("player", 4, spec)
    everyone, numbers = np.ones(4, np.bool_), np.full((4, encoder.size), np.nan, np.float32)
    engine.reset(everyone, standard_starts(4))
    encoder.begin(engine.fights, everyone)
    encoder.encode(engine.fights, np.full(4, -1), everyone, numbers)
    assert np.isfinite(numbers).all()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        assert Path(soulsgym.__file__).is_relative_to(sys.argv[1]), soulsgym.__file__
    one_fight()
    many_fights()
    encode()
    assert "torch" not in sys.modules
    assert "soulsai" not in sys.modules
    print("ok")  # noqa: T201
