"""The shape of experience: schemas, episodes that ended, and chunks."""

import numpy as np
import pytest

from soulsai.experience import ACTION, FLAG, MASK, NUMBER, OBSERVATION, Chunk, Ended, Schema, Sizes

COLUMNS = {"observations": OBSERVATION, "masks": MASK, "actions": ACTION, "rewards": NUMBER, "continues": FLAG}
SIZES = Sizes(observation_size=3, num_actions=5, terms=2, number=7)


def ended(lengths, won):
    n = len(lengths)
    return Ended(np.ones((n, 2)), np.array(lengths), np.ones(n, bool), np.array(won, bool), np.zeros(n, bool))


def numbered(schema, rows, first, steps, done):
    """A chunk whose actions count up from `first`."""
    columns = schema.empty(rows)
    columns["actions"].reshape(-1)[:] = np.arange(first, first + rows)
    columns["observations"][..., 0] = columns["actions"]
    return Chunk(columns, done, steps)


@pytest.mark.parametrize(("length", "lead"), [(0, (12,)), (4, (4, 3))])
def test_shapes_follow_from_the_schema(length, lead):
    schema = Schema.of(COLUMNS, SIZES, length)
    empty = schema.empty(12)
    assert {name: (array.shape, array.dtype.str) for name, array in empty.items()} == {
        "observations": ((*lead, 3), "<f4"),
        "masks": ((*lead, 5), "|b1"),
        "actions": (lead, "<i8"),
        "rewards": (lead, "<f4"),
        "continues": (lead, "|b1"),
    }
    assert schema.record().itemsize * 12 == sum(array.nbytes for array in empty.values())


def test_ended_are_joined_in_order():
    both = Ended.join([ended([3, 4], [1, 0]), ended([5], [1])], 2)
    assert both.lengths.tolist() == [3, 4, 5]
    assert both.won.tolist() == [True, False, True]
    assert both.terms.shape == (3, 2)


def test_nothing_joined_has_the_right_shape():
    nothing = Ended.join([], 3)
    assert nothing.terms.shape == (0, 3)
    assert nothing.lengths.dtype == np.int64


@pytest.mark.parametrize(
    ("length", "actions"), [(0, [0, 1, 2, 3, 10, 11]), (2, [[0, 1, 10], [2, 3, 11]])], ids=["rows", "sequences"]
)
def test_chunks_are_joined_as_copies(length, actions):
    """Rows one after the other, sequences side by side; episodes and steps add up."""
    schema = Schema.of(COLUMNS, SIZES, length)
    chunks = [numbered(schema, 4, 0, 9, ended([3], [1])), numbered(schema, 2, 10, 5, ended([8, 9], [0, 0]))]
    joined = Chunk.join(chunks, schema)
    assert joined.columns["actions"].tolist() == actions
    assert (joined.rows, joined.steps) == (6, 14)
    assert joined.ended.lengths.tolist() == [3, 8, 9]
    alone = Chunk.join(chunks[:1], schema)
    chunks[0].columns["actions"][:] = 99
    assert alone.columns["actions"].reshape(-1).tolist() == [0, 1, 2, 3]


def test_a_chunk_may_have_steps_and_no_rows():
    schema = Schema.of(COLUMNS, SIZES)
    empty = Chunk(schema.empty(0), Ended.join([], 2), 4)
    joined = Chunk.join([empty, numbered(schema, 2, 0, 3, ended([], []))], schema)
    assert (empty.rows, joined.rows, joined.steps) == (0, 2, 7)
