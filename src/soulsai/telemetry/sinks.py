"""Where metrics go: a database, JSON Lines and TensorBoard. A sink that fails is switched off; training continues."""

from __future__ import annotations

import json
import math
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

from soulsai.errors import RunError
from soulsai.runs.files import cannot_write
from soulsai.runs.metric_store import EXPORT
from soulsai.runs.metrics import MetricsWriter
from soulsai.runs.stamps import utc_stamp
from soulsai.telemetry.metrics import metric
from soulsgym.errors import MisuseError

MOST_UNDECLARED = 10
"""Undeclared metrics that are reported, at most."""
EVENT_FILE_VERSION = "brain.Event:2"
"""What every event file of TensorBoard begins with."""


class Sink(Protocol):
    """Takes rows of metrics."""

    name: str

    def write(self, step: int, time_s: float, values: Mapping[str, float]) -> None:
        """Take a row: the step, seconds of training so far, and values by metric."""

    def close(self) -> None:
        """Flush and close."""

    def position(self) -> Any:
        """Position of the next row, as JSON; kept in checkpoints for resuming."""


def open_sinks(folder: Path) -> list[Sink]:
    """The metrics of a new run: its database, and the export beside it."""
    export = JsonlSink(folder / EXPORT)
    return [MetricsWriter.new(folder), export]


def resume_sinks(folder: Path, position: Mapping[str, Any]) -> list[Sink]:
    """The sinks of a run resumed from a checkpoint with this position."""
    export = JsonlSink.resume(folder / EXPORT, position["jsonl"])
    return [MetricsWriter.resume(folder, position.get(MetricsWriter.name)), export]


class JsonlSink:
    """The export: a file with one JSON object a row: step, time, elapsed_s, and the values."""

    name = "jsonl"

    def __init__(self, file: Path) -> None:
        self._file = file
        try:
            self._stream = file.open("ab", buffering=0)
            self._bytes = self._stream.seek(0, os.SEEK_END)
        except OSError as error:
            raise cannot_write(file, error) from error

    @classmethod
    def resume(cls, file: Path, position: int) -> JsonlSink:
        """Resume: rows written after the checkpoint with this position are cut off."""
        try:
            if file.exists():
                _cut(file, position)
        except OSError as error:
            raise cannot_write(file, error) from error
        return cls(file)

    def write(self, step: int, time_s: float, values: Mapping[str, float]) -> None:
        """Write a row at once; what is no finite number becomes null, for JSON has no word for it."""
        row = {"step": int(step), "time": utc_stamp(), "elapsed_s": round(time_s, 3)}
        plain = {name: float(value) if math.isfinite(value) else None for name, value in values.items()}
        line = json.dumps(row | plain, separators=(",", ":")).encode() + b"\n"
        written = self._stream.write(line)
        if written != len(line):
            raise RunError(f"{self._file}: cannot be written, the disk is full")
        self._bytes += written

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def position(self) -> int:
        """Bytes of all rows so far."""
        return self._bytes


def _cut(file: Path, position: int) -> None:
    """Keep whole rows up to the position; after a power cut the file may even be shorter."""
    with file.open("r+b") as stream:
        kept = stream.read(position)
        stream.truncate(kept.rfind(b"\n") + 1)


class TensorBoardSink:
    """An event file for TensorBoard. `purge_step` hides the rows of earlier files from that step on.

    Written here and now: TensorBoard's own writer has a thread that prints a traceback when the disk is full.
    """

    name = "tensorboard"

    def __init__(self, folder: Path, purge_step: int | None = None) -> None:
        from tensorboard.compat.proto import event_pb2, summary_pb2  # type: ignore[import-untyped]
        from tensorboard.summary.writer.record_writer import RecordWriter  # type: ignore[import-untyped]

        self._events, self._summaries = event_pb2, summary_pb2
        self._stream = _new_event_file(folder)
        self._records = RecordWriter(self._stream)
        self._add(0, file_version=EVENT_FILE_VERSION)
        if purge_step is not None:
            self._add(purge_step, session_log=event_pb2.SessionLog(status=event_pb2.SessionLog.START))

    def _add(self, step: int, **content: Any) -> None:
        event = self._events.Event(wall_time=time.time(), step=step, **content)
        self._records.write(event.SerializeToString())

    def write(self, step: int, time_s: float, values: Mapping[str, float]) -> None:
        """Write a row at once."""
        numbers = [self._summaries.Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._add(step, summary=self._summaries.Summary(value=numbers))

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def position(self) -> None:
        """Nothing: a resumed run begins another file and hides what was written after the checkpoint."""
        return None


def _new_event_file(folder: Path) -> IO[bytes]:
    """Named so that TensorBoard finds it and reads the files of a run in the order of their making."""
    file = folder / f"events.out.tfevents.{time.time_ns() // 1000}.{platform.node()}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return file.open("xb", buffering=0)
    except OSError as error:
        raise cannot_write(file, error) from error


class Sinks:
    """Several sinks as one. A sink that fails is reported through `warn` and switched off."""

    name = "all"

    def __init__(self, sinks: Sequence[Sink], warn: Callable[[str], None]) -> None:
        self._sinks = list(sinks)
        self._working = list(sinks)
        self._warn = warn
        self._undeclared: set[str] = set()

    def write(self, step: int, time_s: float, values: Mapping[str, float]) -> None:
        """Write a row to every working sink; undeclared metrics are reported once."""
        for name in values:
            self._check(name)
        self._each(lambda sink: sink.write(step, time_s, values))

    def close(self, keep: Sequence[Sink] = ()) -> None:
        """Close every sink that works, but for those to keep."""
        self._working = [sink for sink in self._working if sink not in keep]
        self._each(lambda sink: sink.close())

    def position(self) -> dict[str, Any]:
        """The positions of all sinks by name."""
        return {sink.name: sink.position() for sink in self._sinks}

    def _check(self, name: str) -> None:
        """A metric without a declaration lacks its unit and meaning, which is no reason to end a run."""
        try:
            metric(name)
        except MisuseError as error:
            if name not in self._undeclared and len(self._undeclared) < MOST_UNDECLARED:
                self._undeclared.add(name)
                self._warn(str(error))

    def _each(self, do: Callable[[Sink], None]) -> None:
        for sink in tuple(self._working):
            try:
                do(sink)
            except Exception as error:  # Whatever a sink trips over, it must not end hours of training.
                self._working.remove(sink)
                self._warn(f"metrics no longer go to {sink.name}: {error}")
