"""What the tests of the replay share."""

import numpy as np
import pytest

from soulsai.experience import Schema
from soulsai.replay import ReplayStore
from soulsai.replay.n_step import TRANSITION

OBSERVATION_SIZE, NUM_ACTIONS = 3, 5
SCHEMA = Schema(TRANSITION, OBSERVATION_SIZE, NUM_ACTIONS, 1)


def numbered_rows(first, count):
    """Rows that carry their number in every column."""
    numbers = np.arange(first, first + count)
    observations = numbers[:, None] + np.array([0.0, 0.25, 0.5])
    return {
        "observations": observations.astype(np.float32),
        "actions": numbers.astype(np.int64),
        "rewards": (numbers * 2).astype(np.float32),
        "discounts": (1 / (numbers + 1)).astype(np.float32),
        "next_observations": (observations + 1000).astype(np.float32),
        "next_masks": (numbers[:, None] >> np.arange(NUM_ACTIONS) & 1).astype(np.bool_),
    }


@pytest.fixture
def schema():
    return SCHEMA


@pytest.fixture
def rows():
    return numbered_rows


@pytest.fixture
def filled():
    """A maker of stores of a capacity to which rows 0 to `added` were added, a few at a time."""

    def make(capacity, added, at_once=4):
        store = ReplayStore(capacity, SCHEMA)
        for first in range(0, added, at_once):
            store.add(numbered_rows(first, min(at_once, added - first)))
        return store

    return make
