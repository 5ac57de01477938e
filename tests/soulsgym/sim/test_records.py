"""The records of the kernels, and the dtypes that follow from them."""

import hashlib
from collections.abc import Sequence
from typing import Annotated

import numpy as np
import pytest

from soulsgym.actions import CONTROL
from soulsgym.engine import START
from soulsgym.sim.engine import KIND
from soulsgym.sim.hidden import HIDDEN
from soulsgym.sim.records import Control, Fight, Floats, Start, dtype_of
from soulsgym.state import FIGHT


class Inner:
    weight: float
    row: int


class Outer:
    key: np.uint64
    one: Inner
    numbers: Annotated[Floats, (2, 3)]
    rows: Annotated[Sequence[Inner], 4]


def test_a_class_lists_the_fields_of_its_dtype():
    inner = np.dtype([("weight", "f8"), ("row", "i4")], align=True)
    assert dtype_of(Outer) == np.dtype(
        [("key", "u8"), ("one", inner), ("numbers", "f8", (2, 3)), ("rows", inner, (4,))], align=True
    )


@pytest.mark.parametrize(("record", "dtype"), [(Fight, FIGHT), (Control, CONTROL), (Start, START)])
def test_records_that_others_declare_have_the_same_fields(record, dtype):
    assert tuple(record.__annotations__) == dtype.names


def test_saved_runs_hold_this_layout():
    """Another order or type of fields needs another KIND, so that old snapshots are refused."""
    layout = [(dtype.base.str, dtype.shape, offset) for dtype, offset in HIDDEN.fields.values()]
    digest = hashlib.sha256(repr((HIDDEN.itemsize, layout)).encode()).hexdigest()[:16]
    assert (KIND, digest) == ("sim-4", "ac47c00d6e160a34")
