"""Where a replay without restarts leaves a recording, worked out by hand."""

import dataclasses

import numpy as np
import pytest

from soulsgym.recordings.departure import Departure, earliest, median_step, player_departure
from soulsgym.recordings.replay import Replay
from soulsgym.sim.replay import PREDICTION
from soulsgym.state import FIGHT

IDLE, MOVE = 17, 18


@pytest.fixture
def episode(spec, own):
    """Five records of a player who stands at (1, 2), and a replay that agrees with them."""
    fights, from_start = np.zeros(5, FIGHT), np.zeros(5, PREDICTION)
    fights["player_pose"][:, :2], fights["player_animation"] = (1.0, 2.0), IDLE
    from_start["x"], from_start["y"], from_start["label"] = 1.0, 2.0, IDLE
    return dataclasses.replace(Replay(spec).follow(own)[0], number=3, fights=fights, from_start=from_start)


def test_a_replay_that_agrees_never_leaves(episode, spec):
    assert player_departure(episode, spec) == Departure(3, 4, None, "")


def test_a_quarter_of_a_metre_is_still_the_same_place(episode, spec):
    episode.from_start["x"][2] += 0.25
    episode.from_start["y"][3] -= 0.27
    assert player_departure(episode, spec) == Departure(3, 4, 3, "0.27 m away")


def test_a_label_counts_before_the_distance(episode, spec):
    episode.from_start["label"][2:], episode.from_start["x"][2:] = MOVE, 9.0
    assert player_departure(episode, spec) == Departure(3, 4, 2, "Move instead of Idle")


def test_a_label_nobody_knows_is_another_one(episode, spec):
    episode.fights["player_animation"][4] = -1
    assert player_departure(episode, spec).reason == "Idle instead of an unknown label"


def test_what_the_replay_starts_from_is_not_compared(episode, spec):
    episode.from_start["label"][0] = MOVE
    assert player_departure(episode, spec).step is None


@pytest.mark.parametrize(
    ("steps", "median", "first"),
    [
        ([5], 5, 5),
        ([9, 4, 7], 7, 4),
        ([None, 4, 7], 7, 4),
        ([None, 4, None], None, 4),
        ([6, 4], 4, 4),
        ([None, None], None, None),
        ([0, 3], 0, 0),
        ([], None, None),
    ],
)
def test_median_and_earliest(steps, median, first):
    departures = [Departure(number, 10, step, "") for number, step in enumerate(steps, start=1)]
    found = earliest(departures)
    assert median_step(departures) == median
    assert (found.step if found else None) == first


def test_the_replay_begins_at_the_first_record_and_never_looks_at_another(spec, own):
    fights = own.fights.copy()
    fights["player_pose"][12, 0] += 5.0
    [moved, *_] = Replay(spec).follow(dataclasses.replace(own, fights=fights))
    assert player_departure(moved, spec).step == 12
    [same, *_] = Replay(spec).follow(own)
    np.testing.assert_array_equal(same.from_start[:21], same.predictions[0])
    assert same.from_start["x"][12] == moved.from_start["x"][12]
