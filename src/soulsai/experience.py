"""Experience: the one shape that actors, messages, replay and learners share, and the schema that describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Dtype = Literal["f4", "i8", "b1"]
Width = Literal["", "observation", "actions"]

LARGEST = 1e9
"""Largest size of a number in experience; beyond it nothing can be learned, only broken."""


@dataclass(frozen=True)
class Column:
    """One number, one observation or one flag per action, for every decision; numbers lie between `low` and `high`."""

    dtype: Dtype = "f4"
    width: Width = ""
    low: float = -LARGEST
    high: float = LARGEST


OBSERVATION = Column("f4", "observation")
MASK = Column("b1", "actions")
"""Which actions are open; at least one is."""
ACTION = Column("i8", low=0)
"""The position of an action; less than the number of actions."""
NUMBER = Column("f4")
SHARE = Column("f4", low=0.0, high=1.0)
FLAG = Column("b1")


@dataclass(frozen=True)
class Sizes:
    """Of a world: numbers in an observation, actions, terms of the reward, episodes side by side."""

    observation_size: int
    num_actions: int
    terms: int
    number: int


@dataclass(frozen=True)
class Schema:
    """The columns of an algorithm's experience, and their sizes in a run.

    With `length` the decisions of an episode stay together, so many in a row: arrays are [length, n, ...]. Without it
    rows stand alone: arrays are [rows, ...].
    """

    columns: Mapping[str, Column]
    observation_size: int
    num_actions: int
    terms: int
    length: int = 0

    @classmethod
    def of(cls, columns: Mapping[str, Column], sizes: Sizes, length: int = 0) -> Schema:
        """The schema of columns in a world of these sizes."""
        return cls(columns, sizes.observation_size, sizes.num_actions, sizes.terms, length)

    def row_shape(self, name: str) -> tuple[int, ...]:
        """The shape of a column for one decision."""
        return {"": (), "observation": (self.observation_size,), "actions": (self.num_actions,)}[
            self.columns[name].width
        ]

    def shape(self, name: str, rows: int) -> tuple[int, ...]:
        """The shape of a column of so many decisions."""
        lead = (self.length, rows // self.length) if self.length else (rows,)
        return *lead, *self.row_shape(name)

    def record(self) -> np.dtype[Any]:
        """One decision as a packed record."""
        return np.dtype([(name, f"<{column.dtype}", self.row_shape(name)) for name, column in self.columns.items()])

    def empty(self, rows: int) -> dict[str, Array]:
        """Columns of zeros."""
        return {name: np.zeros(self.shape(name, rows), column.dtype) for name, column in self.columns.items()}


def _no_limit() -> Array:
    return np.array(LARGEST, np.float32)


@dataclass(frozen=True, eq=False)
class Limits:
    """What workers of a run can have played, generously; what is beyond was made up. By default what a column allows.

    `low` and `high` are of observations, float32, one for each number or one for all; `numbers` are of other columns,
    by name.
    """

    low: Array = field(default_factory=lambda: -_no_limit())
    high: Array = field(default_factory=_no_limit)
    numbers: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    rows: int = 1 << 24  # of a chunk
    steps_per_row: int = 10_000  # more are not counted
    length: int = 100_000_000  # of an episode, in steps
    term: float = LARGEST  # of the reward, in a step

    def of(self, name: str, column: Column) -> tuple[float, float]:
        """The least and the most of a column that is no observation."""
        return self.numbers.get(name, (column.low, column.high))


@dataclass(frozen=True)
class Ended:
    """Episodes that ended: the sum of each term, environment steps, and how they began and ended."""

    terms: npt.NDArray[np.float64]  # episodes x terms
    lengths: npt.NDArray[np.int64]
    standard: npt.NDArray[np.bool_]
    won: npt.NDArray[np.bool_]
    timed_out: npt.NDArray[np.bool_]

    @classmethod
    def join(cls, several: Sequence[Ended], terms: int) -> Ended:
        """All of them in order; none at all for an empty list."""
        nothing = cls(np.zeros((0, terms)), np.zeros(0, np.int64), *(np.zeros(0, np.bool_) for _ in range(3)))
        columns = ([getattr(ended, each.name) for ended in (nothing, *several)] for each in fields(cls))
        return cls(*(np.concatenate(column) for column in columns))


@dataclass(frozen=True)
class Proof:
    """How a chunk came about, for whoever plays it again: the version of the environment, and all that was done."""

    environment: str
    actions: Array  # of every decision since the chunk before, in all episodes: decisions x episodes


@dataclass(frozen=True)
class Chunk:
    """Decisions by column, the episodes that ended on the way, and the environment steps that passed.

    The arrays of a chunk that an actor has just played last until it plays on: whoever keeps them joins or copies them.
    """

    columns: dict[str, Array]
    ended: Ended
    steps: int
    proof: Proof | None = None

    @property
    def rows(self) -> int:
        """Decisions in it."""
        return int(self.columns["actions"].size)

    @classmethod
    def join(cls, chunks: Sequence[Chunk], schema: Schema) -> Chunk:
        """Several chunks as one, in arrays of their own; sequences lie side by side."""
        axis = 1 if schema.length else 0
        columns = {name: np.concatenate([chunk.columns[name] for chunk in chunks], axis) for name in schema.columns}
        ended = Ended.join([chunk.ended for chunk in chunks], schema.terms)
        return cls(columns, ended, sum(chunk.steps for chunk in chunks))
