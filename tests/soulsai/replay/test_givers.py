"""Who gave which rows: counted beside a ring that forgets its oldest, and taken out again."""

import numpy as np
import pytest

from soulsai.experience import Schema
from soulsai.replay import Batch, Givers, PrioritizedSampler, ReplayStore
from soulsai.replay.n_step import TRANSITION

SCHEMA = Schema(TRANSITION, 2, 3, 1)


@pytest.mark.parametrize("seed", range(20))
def test_the_names_are_those_of_the_rows_in_the_ring(seed):
    rng = np.random.default_rng(seed)
    givers, ring, added = Givers(50), [], 0
    for _ in range(60):
        name, rows = f"n{rng.integers(3)}", int(rng.integers(1, 20))
        givers.add(name, rows, added)
        added += rows
        ring = [*ring, *[name] * rows][-50:]
        first = added - len(ring)
        for who in ("n0", "n1", "n2"):
            assert givers.rows_of(who) == ring.count(who)
            assert givers.of_name(who, first, len(ring)).tolist() == [one == who for one in ring]
    other = Givers(50)
    other.restore(*givers.state())
    assert (other.state()[0], other.added) == (givers.state()[0], added)
    assert other.of_name("n1", first, 50).tolist() == [one == "n1" for one in ring]
    givers.remove("n1")
    left = [one for one in ring if one != "n1"]
    assert givers.of_name("n2", 0, len(left)).tolist() == [one == "n2" for one in left]
    assert (givers.rows_of("n1"), givers.added) == (0, len(left))


def test_a_share_counts_once_there_are_enough_names():
    givers, added = Givers(10_000), 0
    for name in ("a", "b", "c", "d"):
        givers.add(name, 100, added)
        added += 100
    assert not givers.is_over("a", 10, 0.3, 5, "abcde")
    givers.add("e", 100, added)
    assert not givers.is_over("a", 10, 0.3, 5, "abcde")
    givers.add("a", 70, added + 100)
    assert givers.is_over("a", 10, 0.3, 5, "abcde")
    assert not givers.is_over("b", 10, 0.3, 5, "abcde")
    assert not givers.is_over("a", 100, 0.3, 5, "abcde")  # too few rows to speak of shares


def test_names_that_have_left_or_gave_a_single_row_hold_nobody_up():
    givers = Givers(10_000)
    for number, name in enumerate("abcde"):
        givers.add(name, 100, 100 * number)
    givers.add("a", 100, 500)
    assert givers.is_over("a", 10, 0.3, 5, "abcde")
    assert not givers.is_over("a", 10, 0.3, 5, "ab")  # the others have left
    two = Givers(10_000)
    for number, (name, rows) in enumerate([("a", 500), ("b", 500), ("c", 1), ("d", 1), ("e", 1)]):
        two.add(name, rows, 1000 * number)
    assert not two.is_over("a", 10, 0.3, 5, "abcde")


def test_rows_are_removed_with_their_priorities():
    store, sampler = ReplayStore(8, SCHEMA), PrioritizedSampler(8, 1.0)
    for number in range(11):
        rows = SCHEMA.empty(1)
        rows["rewards"][:], rows["next_masks"][:] = number, True
        slots = store.add(rows)
        sampler.add(slots)
        sampler.update(slots, np.array([number + 1.0]))
    gone = np.array([False, True, False, False, True, True, False, False])  # of the rows 3 to 10
    sampler.compact(store.remove(gone))
    assert store.columns["rewards"][: len(store)].tolist() == [3, 5, 6, 9, 10]
    assert sampler.state()["priorities"].tolist() == pytest.approx([4, 6, 7, 10, 11, 0, 0, 0], abs=1e-3)
    batch = Batch(64, SCHEMA)
    sampler.sample(batch, np.random.default_rng(0), 0.4)
    assert batch.slots.max() < 5
    sampler.add(store.add({name: column[:1].copy() for name, column in SCHEMA.empty(1).items()}))
    assert len(store) == 6
