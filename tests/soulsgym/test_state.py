"""The one record of a fight."""

import numpy as np

from soulsgym.state import FIGHT, NUM_ACTIONS, OBSERVATION_KEYS, action_mask_of, copied, observation_of


def filled():
    """Three records with another value in every field."""
    fights = np.zeros(3, FIGHT)
    for number, name in enumerate(FIGHT.names, start=1):
        fights[name] = number % 2 if name == "action_mask" else number
    return fights


def test_the_record_begins_with_the_observation():
    assert FIGHT.names[:15] == OBSERVATION_KEYS
    assert FIGHT["action_mask"].shape == (NUM_ACTIONS,) == (20,)


def test_an_observation_needs_no_conversion():
    fights = filled()
    observation = observation_of(fights)
    assert tuple(observation) == OBSERVATION_KEYS
    for values in observation.values():
        assert np.shares_memory(values, fights)
        assert values.dtype == (np.int64 if values.ndim == 1 else np.float32)


def test_a_copy_has_every_field_and_its_own_memory():
    fights = filled()
    copy = copied(fights)
    assert copy.dtype == FIGHT
    for name in FIGHT.names:
        assert np.array_equal(copy[name], fights[name])
    assert not np.shares_memory(copy, fights)


def test_the_mask_is_a_view_of_booleans():
    fights = filled()
    mask = action_mask_of(fights)
    assert mask.dtype == np.bool_
    assert np.shares_memory(mask, fights)
