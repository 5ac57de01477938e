"""Checkpoints, written beside the loop from a copy of its state."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from soulsai.algorithms.algorithm import Parts
from soulsai.checkpoints.store import CheckpointStore
from soulsai.errors import RunError
from soulsai.replay import ReplaySegments, ReplayStore, SegmentInfo
from soulsai.replay.segments import alive


@dataclass(frozen=True)
class State:
    """Everything that a checkpoint holds, at one moment; nothing in it changes any more."""

    number: int
    parts: Parts
    notes: Mapping[str, Any]
    rows: ReplayStore | None  # those of the replay that no segment holds yet
    capacity: int  # of the replay


def copy_parts(parts: Parts) -> Parts:
    """The same in memory of their own, on the CPU."""
    return {
        name: {
            key: value.detach().to("cpu", copy=True) if isinstance(value, torch.Tensor) else np.array(value)
            for key, value in values.items()
        }
        for name, values in parts.items()
    }


class CheckpointWriter:
    """Writes one checkpoint at a time, in a thread of its own, with the replay it needs."""

    def __init__(self, checkpoints: Path, keep: int, replay: Path) -> None:
        self.store, self.segments = CheckpointStore(checkpoints, keep), ReplaySegments(replay)
        self._folder = checkpoints
        self.listed: list[SegmentInfo] = []  # segments of the newest checkpoint
        self._thread: threading.Thread | None = None
        self._number = 0
        self._error: BaseException | None = None

    @property
    def is_busy(self) -> bool:
        """Whether the thread is still writing."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def rows_listed(self) -> int:
        """Rows of the replay up to this number are in segments."""
        return max((info["first"] + info["rows"] for info in self.listed), default=0)

    def begin(self, state: State) -> None:
        """Start to write; the one before must be done with."""
        assert self._thread is None
        self._number, self._error = state.number, None
        self._thread = threading.Thread(target=self._run, args=(state,), daemon=True, name="checkpoint")
        self._thread.start()

    def finish(self, limit_s: float) -> bool:
        """Wait until it is written, for so long at most, and raise what hindered it; False if there was none."""
        if self._thread is None:
            return False
        self._thread.join(limit_s)
        if self._thread.is_alive():
            raise RunError(
                f"{self._folder}: the checkpoint of step {self._number:,} is not written after {limit_s:.0f} s: look "
                "what the disk waits for, then resume from the checkpoint before"
            )
        self._thread = None
        if self._error is not None:
            raise self._error
        return True

    def _run(self, state: State) -> None:
        try:
            self._write(state)
        except BaseException as error:  # whatever it is, the loop is told
            self._error = error

    def _write(self, state: State) -> None:
        listed = self.listed
        if state.rows is not None:
            written = self.segments.save(state.rows, self.rows_listed)
            listed = alive([*listed, *written], state.rows.added, state.capacity)
        self.store.save(state.number, state.parts, {**state.notes, "segments": listed})
        self.listed = listed
        self.segments.prune(self._needed_segments())

    def _needed_segments(self) -> set[str]:
        needed = {info["name"] for info in self.listed}
        for number in self.store.numbers():
            try:
                needed |= {info["name"] for info in self.store.load_state(number)["segments"]}
            except RunError:
                continue  # damaged; what only it needs may go
        return needed
