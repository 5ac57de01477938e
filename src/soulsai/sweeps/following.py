"""Following a run from outside: the rows of its metrics as they are written."""

from __future__ import annotations

import json
import math
from pathlib import Path


class Follower:
    """Reads the values of one metric, each row once; a resumed run may cut rows off, whose like then comes again."""

    def __init__(self, file: Path, metric: str) -> None:
        self._file, self._metric = file, metric
        self._read = 0

    def new(self) -> list[tuple[int, float]]:
        """Step and value of the rows since the last call; half a row waits for its other half."""
        try:
            with self._file.open("rb") as stream:
                if stream.seek(0, 2) < self._read:
                    self._read = 0
                stream.seek(self._read)
                text = stream.read()
        except OSError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        return [found for line in whole.splitlines() if (found := self._value(line))]

    def _value(self, line: bytes) -> tuple[int, float] | None:
        try:
            row = json.loads(line)
            step, value = row["step"], row[self._metric]
        except (ValueError, KeyError, TypeError):
            return None
        good = isinstance(step, int) and isinstance(value, (int, float)) and math.isfinite(value)
        return (step, float(value)) if good else None
