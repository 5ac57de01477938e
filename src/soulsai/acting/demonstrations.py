"""Decisions that somebody else has made, as an agent would have seen them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from soulsai.experience import Array, Schema
from soulsai.replay.n_step import NStepAccumulator
from soulsgym.actions import ACTION_NAMES, NOTHING
from soulsgym.batch import FightBatch
from soulsgym.errors import RecordingError
from soulsgym.parts import FightParts
from soulsgym.recordings.playback import RecordedEngine
from soulsgym.recordings.recording import Recording


@dataclass(frozen=True, eq=False)
class Demos:
    """Decisions by column, in the order in which they were made, and the fight that each belongs to."""

    observations: npt.NDArray[np.float32]
    masks: npt.NDArray[np.bool_]
    actions: npt.NDArray[np.int64]
    rewards: npt.NDArray[np.float32]
    steps: npt.NDArray[np.int32]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    next_observations: npt.NDArray[np.float32]
    next_masks: npt.NDArray[np.bool_]
    fights: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.actions)

    @classmethod
    def join(cls, several: Sequence[Demos]) -> Demos:
        """All of them; fights are numbered through."""
        joined = {each.name: np.concatenate([getattr(one, each.name) for one in several]) for each in fields(cls)}
        counts = [int(one.fights.max()) + 1 for one in several]
        firsts = np.cumsum([0, *counts[:-1]])
        joined["fights"] = np.concatenate([one.fights + first for one, first in zip(several, firsts, strict=True)])
        return cls(**joined)

    def transitions(self, n_step: int, gamma: float, schema: Schema) -> dict[str, Array]:
        """Rows for a replay, as an actor would have made them, and which actions were open (`open`)."""
        pending, rows, opened = NStepAccumulator(1, n_step, gamma, schema), [], list[Array]()
        for i in range(len(self)):
            at = slice(i, i + 1)
            ready = pending.push(
                self.observations[at], self.actions[at], self.rewards[at], self.steps[at], self.terminated[at],
                self.truncated[at], self.next_observations[at], self.next_masks[at],
            )  # fmt: skip
            rows.append({name: column.copy() for name, column in ready.items()})
            first = i + 1 - len(ready["actions"]) if self.terminated[i] or self.truncated[i] else i + 1 - n_step
            opened.append(self.masks[first : first + len(ready["actions"])])
        columns = {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}
        return columns | {"open": np.concatenate(opened)}


def demos_of(recording: Recording, parts: FightParts, *, decisions: bool, masks: bool) -> Demos:
    """The decisions of a recording, seen and rewarded by these parts; RecordingError if it has none that suit."""
    engine = RecordedEngine(recording)
    batch = FightBatch(engine, parts, decisions=decisions, autoreset=AutoresetMode.DISABLED)
    rows = [
        (*row, number)
        for number in range(len(recording.bounds()))
        for row in _decisions(engine, batch, masks=masks, source=recording.source)
    ]
    if not rows:
        raise RecordingError(f"{recording.source}: holds no decision to learn from; give a recording of a fight")
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return Demos(*columns)


def _decisions(engine: RecordedEngine, batch: FightBatch, *, masks: bool, source: str) -> Iterator[tuple[object, ...]]:
    """Those of the next fight."""
    actions = batch.parts.actions
    positions = {int(number): position for position, number in enumerate(actions.indices)}
    everything = np.ones_like(batch.masks[0])
    batch.begin()
    while not engine.is_at_end:
        seen, opened, number = batch.observations[0].copy(), batch.masks[0].copy(), engine.action
        has_effect = engine.fights["action_mask"][0, number]
        # What was pressed without effect was nothing.
        position = positions.get(number if has_effect else NOTHING, positions.get(number))
        if position is None:
            names = ", ".join(actions.names)
            raise RecordingError(
                f"{source}: plays {ACTION_NAMES[number]!r}, which is not among the run's actions ({names}); "
                "train with actions.preset=all, or give other recordings"
            )
        step = batch.step(np.array([position]))
        terminated, cut = bool(step.terminated[0]), bool(step.truncated[0]) or engine.is_at_end
        yield (
            seen, opened if masks else everything, position, np.float32(step.rewards[0]), step.steps[0].copy(),
            terminated, cut and not terminated, batch.observations[0].copy(),
            batch.masks[0].copy() if masks else everything,
        )  # fmt: skip
        if terminated or cut:
            return
