"""Chunks of experience as frames. What comes out of one was checked number by number and can be learned from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.experience import ACTION, LARGEST, MASK, Chunk, Column, Ended, Limits, Proof, Schema
from soulsai.transport.frames import BadFrame, Frame, Header, Kind, decode, encode
from soulsgym.errors import MisuseError

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]

MOST_STEPS_PER_ROW = 10_000
"""Environment steps that one decision may stand for, in any run."""
ANYTHING = Limits()
LONGEST_VERSION = 200
"""Bytes of the version of an environment."""
MOST_PLAYED, MOST_PLAYED_PER_ROW = 1 << 20, 100
"""Decisions that a chunk can be played again by, in all episodes; the larger of both counts."""
PROOF = ("environment", "played")
"""Arrays of a chunk that can be played again; both or none."""
SEEN, NEXT, NEXT_AT = "observations", "next_observations", "next_at"
"""Nearly every next observation is the observation of another row, and only where that row is is sent: `next_at` is its
number, or the number of rows for one of `next_observations`, which holds the others in order."""
ENDED = {"ended_lengths": "i8", "ended_standard": "b1", "ended_won": "b1", "ended_timed_out": "b1"}


def pack_chunk(
    chunk: Chunk, schema: Schema, *, run: str, worker: str, sequence: int, policy: int, squeeze: bool = True
) -> bytes:
    """The frame of a chunk."""
    arrays = {name: _pack_column(name, chunk.columns[name], column, schema) for name, column in schema.columns.items()}
    if NEXT in arrays:
        arrays[NEXT_AT], arrays[NEXT] = _find_next(arrays[SEEN], arrays[NEXT])
    arrays |= {"ended_terms": np.asarray(chunk.ended.terms, np.float64)}
    for name, code in ENDED.items():
        arrays[name] = np.asarray(getattr(chunk.ended, name.removeprefix("ended_")), code)
    if chunk.proof is not None:
        arrays["environment"] = np.frombuffer(chunk.proof.environment.encode(), np.uint8)
        arrays["played"] = _pack_column("played", chunk.proof.actions, ACTION, schema)
    return encode(Kind.CHUNK, run=run, worker=worker, sequence=sequence, policy=policy,
                  rows=chunk.rows, steps=chunk.steps, arrays=arrays, squeeze=squeeze)  # fmt: skip


def unpack_chunk(
    data: bytes | memoryview, schema: Schema, *, run: str, limits: Limits = ANYTHING
) -> tuple[Header, Chunk]:
    """The chunk in a frame of this run; BadFrame unless every number in it fits the schema and can have been played.

    Its steps are those of the header, but no more than its rows can stand for.
    """
    frame = decode(data, Kind.CHUNK, lambda header: _check_header(header, schema, run, limits))
    header = frame.header
    columns = {name: _unpack_column(name, frame, column, schema, limits) for name, column in schema.columns.items()}
    if "masks" in columns:
        opened = np.take_along_axis(columns["masks"], columns["actions"][..., None], -1)
        _require(bool(opened.all()), "an action is closed in its mask")
    ended = _read_ended(frame, limits)
    if "continues" in columns:
        ends = columns["continues"].size - int(np.count_nonzero(columns["continues"]))
        _require(len(ended.lengths) <= ends, f"{len(ended.lengths)} episodes ended, but only {ends} do not go on")
    # There may be more rows than steps: some waited for the end of an episode since the chunk before. And more steps
    # than rows, where the first rows of an episode wait: those are counted with the rows.
    steps = min(header.steps, header.rows * limits.steps_per_row)
    return header, Chunk(columns, ended, steps, _proof(frame, schema))


def _check_header(header: Header, schema: Schema, run: str, limits: Limits) -> None:
    """Refuse what is no chunk of this run, by what it says of itself alone."""
    if header.run != run:
        raise BadFrame("foreign", f"it belongs to run {header.run}, this is {run}")
    _require(bool(header.worker) and header.sequence > 0, "worker and sequence are missing")
    _require(0 < header.rows <= limits.rows, f"it has {header.rows:,} rows, not 1 to {limits.rows:,}")
    _require(0 < header.steps <= header.rows * MOST_STEPS_PER_ROW,
             f"{header.steps} steps cannot be those of {header.rows} decisions")  # fmt: skip
    if schema.length:
        _require(header.rows % schema.length == 0, f"{header.rows} rows are not rollouts of {schema.length}")
    _require_arrays(header, schema)


def _pack_column(name: str, array: Array, column: Column, schema: Schema) -> Array:
    if column.dtype == "b1":
        return np.packbits(array.reshape(-1))
    if column.dtype == "i8":
        number = schema.num_actions
        if array.size and not 0 <= array.min() <= array.max() < number:
            raise MisuseError(f"{name} go from {array.min()} to {array.max()}, of {number} that there are")
        return array.astype(_action_dtype(schema))
    return np.asarray(array, column.dtype)


def _unpack_column(name: str, frame: Frame, column: Column, schema: Schema, limits: Limits) -> Array:
    array, rows = frame.arrays[name], frame.header.rows
    shape = schema.shape(name, rows)
    if column.dtype == "b1":
        flags = _flags(name, array, int(np.prod(shape))).reshape(shape)
        _require(column is not MASK or bool(flags.any(axis=-1).all()), f"a row of {name} has no open action")
        return flags
    if column.width == "observation":
        _require_in_box(name, array, limits.low, limits.high)
        return _next_observations(frame, array) if name == NEXT else array
    low, high = limits.of(name, column)
    _require_within(name, array, low, schema.num_actions - 1 if column.dtype == "i8" else high)
    return array.astype(np.int64) if column.dtype == "i8" else array


def _find_next(seen: Array, after: Array) -> tuple[Array, Array]:
    """Where each row of `after` stands in `seen`, and the rows that do not."""
    seen, after = np.ascontiguousarray(seen), np.ascontiguousarray(after)
    # Equal rows have equal sums, but for the rounding of some: those are sent.
    weights = np.cos(np.arange(seen.shape[1], dtype=np.float32) ** 2)
    with np.errstate(over="ignore", invalid="ignore"):  # whether the numbers are sound is asked by who reads them
        sums, wanted = seen @ weights, after @ weights
    order = np.argsort(sums)
    found = order[np.minimum(np.searchsorted(sums[order], wanted), len(seen) - 1)]
    same = (seen.view(np.uint32)[found] == after.view(np.uint32)).all(axis=1)  # to the last bit
    return np.where(same, found, len(seen)).astype(np.int32), after[~same]


def _next_observations(frame: Frame, others: Array) -> Array:
    seen, at = frame.arrays[SEEN], frame.arrays[NEXT_AT]
    _require_within(NEXT_AT, at, 0, len(seen))
    is_other = at == len(seen)
    count = int(np.count_nonzero(is_other))
    _require(count == len(others), f"{len(others)} {NEXT} are sent, for {count} rows")
    rows: Array = seen[np.minimum(at, len(seen) - 1)]
    rows[is_other] = others
    return rows


def _action_dtype(schema: Schema) -> str:
    return "u1" if schema.num_actions <= 1 << 8 else "u2"


def _require_arrays(header: Header, schema: Schema) -> None:
    there = {entry.name: (entry.dtype, entry.shape) for entry in header.arrays}
    rows, number = header.rows, _length(there, "ended_lengths")
    # No more episodes can have ended than there were decisions.
    _require(number <= rows, f"{number} episodes ended in {rows} decisions")
    wanted: dict[str, tuple[str, tuple[int, ...]]] = {name: (code, (number,)) for name, code in ENDED.items()}
    wanted["ended_terms"] = ("f8", (number, schema.terms))
    for name, column in schema.columns.items():
        shape = schema.shape(name, rows)
        if column.dtype == "b1":
            wanted[name] = ("u1", (-(-int(np.prod(shape)) // 8),))
        else:
            wanted[name] = (_action_dtype(schema) if column.dtype == "i8" else column.dtype, shape)
    if NEXT in wanted:
        others = _length(there, NEXT)
        _require(others <= rows, f"{others} {NEXT} are too many for {rows} rows")
        wanted |= {NEXT: (wanted[NEXT][0], (others, schema.observation_size)), NEXT_AT: ("i4", (rows,))}
    if set(PROOF) & there.keys():
        played = there["played"][1] if "played" in there and len(there["played"][1]) == 2 else (-1, 1)
        most = max(MOST_PLAYED, MOST_PLAYED_PER_ROW * rows)
        _require(math.prod(played) <= most, f"{played[0]:,} decisions in {played[1]:,} episodes are too many")
        _require(_length(there, "environment") <= LONGEST_VERSION, "the version of its environment is not a string")
        wanted["played"] = (_action_dtype(schema), played)
        wanted["environment"] = ("u1", (_length(there, "environment"),))
    if there != wanted:
        wrong = sorted(name for name in there.keys() | wanted.keys() if there.get(name) != wanted.get(name))
        raise BadFrame("invalid", f"not the arrays of this run's experience: {', '.join(wrong)}")


def _read_ended(frame: Frame, limits: Limits) -> Ended:
    arrays = frame.arrays
    lengths, terms = arrays["ended_lengths"], arrays["ended_terms"]
    if len(lengths):
        _require_within("ended_lengths", lengths, 1, limits.length)
        most = np.minimum(limits.term * lengths, LARGEST)[:, None]
        _require(bool((np.abs(terms) <= most).all()), f"ended_terms are more than {limits.term:g} a step")
    return Ended(terms, *(arrays[name] for name in ENDED))


def _proof(frame: Frame, schema: Schema) -> Proof | None:
    if "played" not in frame.arrays:
        return None
    version, actions = frame.arrays["environment"].tobytes(), frame.arrays["played"]
    _require(version.isascii(), "the version of its environment is not a string")
    _require(actions.size > 0, "nothing was played")
    _require_within("played", actions, 0, schema.num_actions - 1)
    return Proof(version.decode(), actions.astype(np.int64))


def _length(there: Mapping[str, tuple[str, tuple[int, ...]]], name: str) -> int:
    """The first dimension of an array, -1 if there is none."""
    shape = there[name][1] if name in there else ()
    return shape[0] if shape else -1


def _flags(name: str, packed: Array, number: int) -> Flags:
    bits = np.unpackbits(packed)
    _require(not bits[number:].any(), f"{name} does not end with its last row")
    return bits[:number].view(np.bool_)


def _require(fine: bool, text: str) -> None:
    if not fine:
        raise BadFrame("invalid", text)


def _require_within(name: str, array: Array, low: float, high: float) -> None:
    """Numbers from low to high, both included; NaN is not among them."""
    if not array.size:
        return
    smallest, largest = array.min(), array.max()
    _require(bool(low <= smallest and largest <= high), f"{name} from {smallest} to {largest}, not {low} to {high}")


def _require_in_box(name: str, array: Array, low: Array, high: Array) -> None:
    """Each number of an observation between its own limits, or all between the same."""
    if not low.ndim:
        _require_within(name, array, float(low), float(high))
        return
    from soulsai.transport.bounds import is_inside  # compiled, which workers do not need

    if is_inside(array.reshape(-1, len(low)), low, high):
        return
    wrong = np.argwhere(~((array >= low) & (array <= high)))
    at, value = wrong[0][-1], array[tuple(wrong[0])]
    raise BadFrame("invalid", f"number {at} of {name} is {value:g}, not {low[at]:g} to {high[at]:g}")
