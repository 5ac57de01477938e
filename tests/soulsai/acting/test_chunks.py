"""Chunks hold what the accumulator of one process would have given, with every observation once."""

import numpy as np
import pytest

from soulsai.acting.chunks import NUMBERS, PooledTransitions
from soulsai.acting.ended import Ended
from soulsai.replay import NStepAccumulator

SIZE, ACTIONS = 3, 4
NOTHING = Ended.joined([], 1)


def play(generator, n, pushes):
    """Steps of `n` environments as a world gives them: the next observation is the one the next step begins with."""
    seen = generator.random((n, SIZE), np.float32)
    for _ in range(pushes):
        terminated, truncated = generator.random(n) < 0.2, generator.random(n) < 0.1
        after = generator.random((n, SIZE), np.float32)
        ended = (terminated | truncated)[:, None]
        following = np.where(ended, generator.random((n, SIZE), np.float32), after)
        yield (
            seen,
            generator.integers(0, ACTIONS, n),
            generator.random(n, np.float32),
            generator.integers(1, 5, n).astype(np.int32),
            terminated,
            truncated,
            following,
            generator.random((n, ACTIONS)) < 0.5,
        )
        seen = after


def assert_same(chunks, rows):
    """Rows of chunks against those of the plain accumulator, bit by bit."""
    columns = [
        np.concatenate([chunk.pool[chunk.first] for chunk in chunks]),
        *(np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("actions", "rewards", "discounts")),
        np.concatenate([chunk.pool[chunk.following] for chunk in chunks]),
        np.concatenate([chunk.next_masks for chunk in chunks]),
    ]
    for got, wanted in zip(columns, rows, strict=True):
        np.testing.assert_array_equal(got, np.concatenate(wanted))


@pytest.mark.parametrize("n", [1, 5])
@pytest.mark.parametrize("n_step", [1, 2, 4])
@pytest.mark.parametrize("start", [0, NUMBERS - 20])
def test_the_rows_are_those_of_one_process(n, n_step, start):
    generator = np.random.default_rng(n * 10 + n_step)
    plain = NStepAccumulator(n, n_step, 0.9, SIZE, ACTIONS)
    pooled = PooledTransitions(n, n_step, 0.9, SIZE, ACTIONS)
    pooled._first = pooled._next = start
    rows, chunks = [], []
    for number, step in enumerate(play(generator, n, 60)):
        rows.append([column.copy() for column in plain.push(*step)])
        pooled.push(*step)
        if pooled.rows and number % 7 == 6:
            chunks.append(pooled.take(NOTHING, number))
    if pooled.rows:
        chunks.append(pooled.take(NOTHING, 0))
    assert_same(chunks, list(zip(*rows, strict=True)))


def test_every_observation_is_in_a_chunk_once():
    generator = np.random.default_rng(0)
    pooled = PooledTransitions(4, 1, 0.9, SIZE, ACTIONS)
    ends = 0
    for step in play(generator, 4, 50):
        ends += int((step[4] | step[5]).sum())
        pooled.push(*step)
    chunk = pooled.take(NOTHING, 200)
    assert (chunk.rows, chunk.steps) == (200, 200)
    assert len(chunk.pool) == 4 * 50 + ends + 4
    assert pooled.rows == 0


def test_what_waits_goes_into_the_next_chunk():
    generator = np.random.default_rng(1)
    pooled = PooledTransitions(1, 3, 0.9, SIZE, ACTIONS)
    steps = [step for step in play(generator, 1, 200) if not (step[4] | step[5]).any()][:4]
    for step in steps[:3]:
        pooled.push(*step)
    first = pooled.take(NOTHING, 3)
    pooled.push(*steps[3])
    second = pooled.take(NOTHING, 1)
    np.testing.assert_array_equal(first.pool[first.first], steps[0][0])
    np.testing.assert_array_equal(second.pool[second.first], steps[1][0])
