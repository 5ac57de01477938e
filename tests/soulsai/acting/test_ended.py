"""Episodes that are over, joined and followed."""

import numpy as np

from soulsai.acting.ended import Ended
from soulsai.acting.episodes import Collected, Episodes
from soulsgym.batch import Step


def ended(lengths, won):
    n = len(lengths)
    return Ended(np.ones((n, 2)), np.array(lengths), np.ones(n, bool), np.array(won, bool), np.zeros(n, bool))


def test_joined_in_order():
    both = Ended.joined([ended([3, 4], [1, 0]), ended([5], [1])], 2)
    assert both.lengths.tolist() == [3, 4, 5]
    assert both.won.tolist() == [True, False, True]
    assert both.terms.shape == (3, 2)


def test_nothing_joined_has_the_right_shape():
    assert Ended.joined([], 3).terms.shape == (0, 3)


def test_collected_are_taken_once():
    collected = Collected(2, 1)
    step = Step.of_size(2, 1, 1, 1)
    step.terms[:], step.steps[:] = [[1.0], [2.0]], 1
    collected.add(step)
    step.terminated[1] = step.ended[1] = step.won[1] = step.standard[1] = True
    collected.add(step)
    taken = collected.take()
    assert (taken.terms.tolist(), taken.lengths.tolist(), taken.won.tolist()) == ([[4.0]], [2], [True])
    assert len(collected.take().lengths) == 0


def test_episodes_of_others_count_as_own():
    episodes = Episodes(0, ("dealt", "taken"), fights=True)
    episodes.record(ended([10, 20], [1, 0]))
    assert episodes.recent_wins == (1, 2)
    assert episodes.metrics()["episode/length"] == 15.0
    assert episodes.metrics()["wins"] == 1.0
