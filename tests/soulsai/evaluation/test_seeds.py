"""Fights of evaluations are fixed, and are none of training's."""

import numpy as np
import pytest

from soulsai.evaluation.seeds import evaluation_seeds, training_seed
from soulsgym.errors import MisuseError


def test_a_fight_has_its_seed_wherever_counting_begins():
    assert np.array_equal(evaluation_seeds(5, 0, 10)[4:], evaluation_seeds(5, 4, 6))


def test_fights_and_seeds_differ():
    seeds = np.concatenate([evaluation_seeds(seed, 0, 200) for seed in range(5)])
    assert len(np.unique(seeds)) == 1000


def test_training_goes_another_way():
    for seed in range(100):
        assert training_seed(seed) not in evaluation_seeds(seed, 0, 5)
    assert len({training_seed(seed) for seed in range(100)}) == 100


def test_negative_seed():
    with pytest.raises(MisuseError, match="seed -1 is negative"):
        evaluation_seeds(-1, 0, 1)
