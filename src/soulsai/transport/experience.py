"""Chunks of experience as frames. What comes out of one was checked number by number and can be learned from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from soulsai.acting.ended import Ended
from soulsai.transport.frames import BadFrame, Frame, Header, Kind, decode, encode
from soulsgym.errors import MisuseError

Array = npt.NDArray[Any]
Float32s = npt.NDArray[np.float32]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Wanted = dict[str, tuple[str, tuple[int, ...]]]

MOST_STEPS = 100_000_000
"""Environment steps that one chunk may stand for."""
MOST_ACTIONS = 1 << 16
SLACK = 1e-4
"""What rounding may add to the logarithm of a probability of 1."""
ROLLOUT_NUMBERS = ("log_probs", "values", "next_values", "rewards", "discounts", "continues")


@dataclass(frozen=True)
class Layout:
    """What the rows of a run look like; `rollout` is decisions per fight in a rollout, 0 for Q-learning."""

    observation_size: int
    num_actions: int
    terms: int
    rollout: int


@dataclass(frozen=True)
class TransitionChunk:
    """Transitions. Row r leads from observation `pool[first[r]]` to `pool[following[r]]`."""

    pool: Float32s
    first: Int32s
    following: Int32s
    actions: Int64s
    rewards: Float32s
    discounts: Float32s
    next_masks: Flags
    ended: Ended
    steps: int

    @property
    def rows(self) -> int:
        """Transitions in it."""
        return len(self.actions)


@dataclass(frozen=True)
class RolloutChunk:
    """`T` decisions of `n` episodes, as in a Rollout; the leading axes are T and n."""

    observations: Float32s
    masks: Flags
    actions: Int64s
    log_probs: Float32s
    values: Float32s
    next_values: Float32s
    rewards: Float32s
    discounts: Float32s
    continues: Float32s
    ended: Ended
    steps: int

    @property
    def rows(self) -> int:
        """Decisions in it."""
        return self.actions.size


def pack_transitions(
    chunk: TransitionChunk, *, run: str, worker: str, sequence: int, policy: int, squeeze: bool = True
) -> bytes:
    """The frame of transitions."""
    arrays = {
        "pool": _as(chunk.pool, np.float32),
        "first": _as(chunk.first, np.int32),
        "following": _as(chunk.following, np.int32),
        "actions": _packed_actions(chunk.actions, chunk.next_masks.shape[-1]),
        "rewards": _as(chunk.rewards, np.float32),
        "discounts": _as(chunk.discounts, np.float32),
        "next_masks": np.packbits(chunk.next_masks.reshape(-1)),
        **_packed_ended(chunk.ended),
    }
    return encode(Kind.TRANSITIONS, run=run, worker=worker, sequence=sequence, policy=policy,
                  rows=chunk.rows, steps=chunk.steps, arrays=arrays, squeeze=squeeze)  # fmt: skip


def pack_rollout(
    chunk: RolloutChunk, *, run: str, worker: str, sequence: int, policy: int, squeeze: bool = True
) -> bytes:
    """The frame of a rollout."""
    arrays = {
        "observations": _as(chunk.observations, np.float32),
        "masks": np.packbits(chunk.masks.reshape(-1)),
        "actions": _packed_actions(chunk.actions, chunk.masks.shape[-1]),
        **{name: _as(getattr(chunk, name), np.float32) for name in ROLLOUT_NUMBERS},
        **_packed_ended(chunk.ended),
    }
    return encode(Kind.ROLLOUT, run=run, worker=worker, sequence=sequence, policy=policy,
                  rows=chunk.rows, steps=chunk.steps, arrays=arrays, squeeze=squeeze)  # fmt: skip


def unpack(data: bytes, layout: Layout, *, run: str, kind: Kind) -> tuple[Header, TransitionChunk | RolloutChunk]:
    """The chunk in a frame of this run and kind; BadFrame unless every number in it makes sense."""
    frame = decode(data, kinds=(kind,))
    header = frame.header
    if header.run != run:
        raise BadFrame("foreign", f"it belongs to run {header.run}, this is {run}")
    _require(bool(header.worker) and header.sequence > 0, "worker and sequence are missing")
    _require(header.rows > 0, "it has no rows")
    _require(header.steps <= MOST_STEPS, f"{header.steps} steps are too many for a chunk")
    if kind is Kind.TRANSITIONS:
        return header, _transitions(frame, layout)
    _require(kind is Kind.ROLLOUT, f"kind {kind.name} is no experience")
    return header, _rollout(frame, layout)


def _transitions(frame: Frame, layout: Layout) -> TransitionChunk:
    arrays, rows = frame.arrays, frame.header.rows
    pool = _length(frame, "pool")
    _require_arrays(
        frame,
        {
            "pool": ("f4", (pool, layout.observation_size)),
            "first": ("i4", (rows,)),
            "following": ("i4", (rows,)),
            "actions": (_action_dtype(layout.num_actions), (rows,)),
            "rewards": ("f4", (rows,)),
            "discounts": ("f4", (rows,)),
            "next_masks": ("u1", (_mask_bytes(rows, layout),)),
            **_wanted_ended(frame, layout),
        },
    )
    for name in ("first", "following"):
        _require_within(name, arrays[name], 0, pool - 1)
    _require_within("actions", arrays["actions"], 0, layout.num_actions - 1)
    _require_within("discounts", arrays["discounts"], 0.0, 1.0)
    _require_finite(arrays, "pool", "rewards")
    masks = _unpacked_masks("next_masks", arrays["next_masks"], rows, layout)
    _require(_each_has_one(masks), "a row of next_masks has no open action")
    return TransitionChunk(
        pool=arrays["pool"],
        first=arrays["first"],
        following=arrays["following"],
        actions=arrays["actions"].astype(np.int64),
        rewards=arrays["rewards"],
        discounts=arrays["discounts"],
        next_masks=masks,
        ended=_ended(frame),
        steps=frame.header.steps,
    )


def _rollout(frame: Frame, layout: Layout) -> RolloutChunk:
    arrays, rows, length = frame.arrays, frame.header.rows, layout.rollout
    _require(length > 0 and rows % length == 0, f"{rows} rows are no rollouts of {length}")
    shape = (length, rows // length)
    _require_arrays(
        frame,
        {
            "observations": ("f4", (*shape, layout.observation_size)),
            "masks": ("u1", (_mask_bytes(rows, layout),)),
            "actions": (_action_dtype(layout.num_actions), shape),
            **dict.fromkeys(ROLLOUT_NUMBERS, ("f4", shape)),
            **_wanted_ended(frame, layout),
        },
    )
    _require_within("actions", arrays["actions"], 0, layout.num_actions - 1)
    _require_within("discounts", arrays["discounts"], 0.0, 1.0)
    _require_within("log_probs", arrays["log_probs"], -np.inf, SLACK)
    _require_finite(arrays, "observations", "log_probs", "values", "next_values", "rewards")
    continues = arrays["continues"]
    _require(bool(((continues == 0.0) | (continues == 1.0)).all()), "continues holds other numbers than 0 and 1")
    masks = _unpacked_masks("masks", arrays["masks"], rows, layout)
    actions = arrays["actions"].astype(np.int64)
    _require(bool(masks[np.arange(rows), actions.reshape(-1)].all()), "an action is closed in its mask")
    return RolloutChunk(
        observations=arrays["observations"],
        masks=masks.reshape(*shape, layout.num_actions),
        actions=actions,
        **{name: arrays[name] for name in ROLLOUT_NUMBERS},
        ended=_ended(frame),
        steps=frame.header.steps,
    )


def _packed_actions(actions: Int64s, number: int) -> Array:
    if actions.size and not (actions.min() >= 0 and actions.max() < number <= MOST_ACTIONS):
        raise MisuseError(f"actions go from {actions.min()} to {actions.max()}, of {number} that there are")
    return actions.astype(_action_dtype(number))


def _action_dtype(number: int) -> str:
    return "u1" if number <= 1 << 8 else "u2"


def _packed_ended(ended: Ended) -> dict[str, Array]:
    return {
        "ended_terms": _as(ended.terms, np.float64),
        "ended_lengths": _as(ended.lengths, np.int64),
        "ended_standard": _as(ended.standard, np.bool_),
        "ended_won": _as(ended.won, np.bool_),
        "ended_timed_out": _as(ended.timed_out, np.bool_),
    }


def _wanted_ended(frame: Frame, layout: Layout) -> Wanted:
    number = _length(frame, "ended_lengths")
    flags = {f"ended_{name}": ("b1", (number,)) for name in ("standard", "won", "timed_out")}
    return {"ended_terms": ("f8", (number, layout.terms)), "ended_lengths": ("i8", (number,)), **flags}


def _ended(frame: Frame) -> Ended:
    arrays = frame.arrays
    _require_finite(arrays, "ended_terms")
    if len(arrays["ended_lengths"]):
        _require_within("ended_lengths", arrays["ended_lengths"], 1, MOST_STEPS)
    return Ended(*(arrays[f"ended_{name}"] for name in ("terms", "lengths", "standard", "won", "timed_out")))


def _as(array: Array, dtype: npt.DTypeLike) -> Array:
    return np.asarray(array, dtype)


def _length(frame: Frame, name: str) -> int:
    """The first dimension of an array, -1 if there is none."""
    array = frame.arrays.get(name)
    return array.shape[0] if array is not None and array.ndim else -1


def _require(fine: bool, text: str) -> None:
    if not fine:
        raise BadFrame("invalid", text)


def _require_arrays(frame: Frame, wanted: Wanted) -> None:
    there = {entry.name: (entry.dtype, entry.shape) for entry in frame.header.arrays}
    if there != wanted:
        wrong = sorted(name for name in there.keys() | wanted.keys() if there.get(name) != wanted.get(name))
        raise BadFrame("invalid", f"not the arrays of {frame.kind.name} of this run: {', '.join(wrong)}")


def _require_within(name: str, array: Array, low: float, high: float) -> None:
    """Numbers from low to high, both included; NaN is not among them."""
    smallest, largest = array.min(), array.max()
    _require(bool(low <= smallest and largest <= high), f"{name} from {smallest} to {largest}, not {low} to {high}")


def _require_finite(arrays: Mapping[str, Array], *names: str) -> None:
    for name in names:
        _require(_is_finite(arrays[name].reshape(-1)), f"{name} holds a number that is not finite")


def _is_finite(array: Array) -> bool:
    """A sum is finite only if all numbers are; large ones can also add up to infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(array.sum())) or bool(np.isfinite(array).all())


def _mask_bytes(rows: int, layout: Layout) -> int:
    return -(-rows * layout.num_actions // 8)


def _unpacked_masks(name: str, packed: Array, rows: int, layout: Layout) -> Flags:
    bits = np.unpackbits(packed)
    number = rows * layout.num_actions
    _require(not bits[number:].any(), f"{name} does not end with its last row")
    return bits[:number].view(np.bool_).reshape(rows, layout.num_actions)


def _each_has_one(masks: Flags) -> bool:
    return bool(masks.any(axis=1).all())
