"""Fights of evaluations are fixed, and are none of training's."""

import numpy as np
import pytest

from soulsai.config import load_preset, with_settings
from soulsai.evaluation.evaluation import evaluation_seeds
from soulsai.learning.wiring import build_world
from soulsgym.engine import standard_starts
from soulsgym.errors import MisuseError
from soulsgym.sim.engine import SimEngine

SEEDS, FIGHTS, RESTARTS = 30, 20, 10


def test_a_fight_has_its_seed_wherever_counting_begins():
    assert np.array_equal(evaluation_seeds(5, 0, 10)[4:], evaluation_seeds(5, 4, 6))


def test_fights_and_seeds_differ():
    seeds = np.concatenate([evaluation_seeds(seed, 0, 200) for seed in range(5)])
    assert len(np.unique(seeds)) == 1000


def test_training_and_evaluation_never_fight_the_same_fight(spec):
    """A fight is decided by its key: of all evaluations, and of training with all that follow the first fights."""
    everyone, starts = np.ones(FIGHTS, np.bool_), standard_starts(FIGHTS)
    engine = SimEngine(spec, FIGHTS)
    evaluated, trained = [], []
    for seed in range(SEEDS):
        engine.reset(everyone, starts, evaluation_seeds(seed, 0, FIGHTS))
        evaluated.append(engine.hidden["key"].copy())
        world = build_world(
            with_settings(load_preset("smoke"), ["fight.variants=['standard']", f"fight.number={FIGHTS}"])
        )
        world.reset(seed)
        for _ in range(RESTARTS):
            trained.append(world.batch.engine.hidden["key"].copy())
            world.batch.engine.reset(everyone, starts, None)
    keys = np.concatenate([*evaluated, *trained])
    assert len(np.unique(keys)) == len(keys) == SEEDS * FIGHTS * (1 + RESTARTS)


def test_negative_seed():
    with pytest.raises(MisuseError, match="seed -1 is negative"):
        evaluation_seeds(-1, 0, 1)
