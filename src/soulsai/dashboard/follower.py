"""Reading a growing metrics.jsonl into a table; a run that is resumed cuts rows off its end, which is noticed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import IO

from soulsai.dashboard.rows import decode, decode_line, seconds_of
from soulsai.dashboard.table import Table

BLOCK_BYTES = 256 * 1024
"""Read at a time: some milliseconds of work."""
LONGEST_LINE = 1 << 20
"""What is longer is no row, and must not fill the memory."""
MISSING = 0, 0, 0


class Follower:
    """Knows how far a file was read into a table."""

    def __init__(self, file: Path, table: Table | None = None, position: int = 0) -> None:
        self.file = file
        self.table = table or Table()
        self.position = position
        self.damaged = 0
        self._half = b""  # of a line, read but not yet in the table
        self._skipping = False
        self._seen: tuple[int, int, int] | None = None

    def has_changed(self) -> bool:
        """Whether the file is another than when it was read last; a file that is missing is an empty one."""
        return self._stat() != self._seen

    def left(self) -> int:
        """Bytes that were not read yet."""
        return max(0, self._stat()[1] - self.position)

    def read_on(self, step: Callable[[], bool] = lambda: True) -> bool:
        """Read what is new; before each block `step` may say that it is enough. Whether the end was reached."""
        seen: tuple[int, int, int] | None = self._stat()
        try:
            with self.file.open("rb", buffering=0) as stream:
                if not self._is_the_same(stream):
                    self._go_back(stream)
                stream.seek(self.position + len(self._half))
                while block := stream.read(BLOCK_BYTES):
                    if not step():
                        return False
                    self._take(block)
        except OSError:
            self._forget()
            seen = seen if seen == MISSING else None  # If it is there, it is tried again.
        self._seen = seen
        return True

    def _stat(self) -> tuple[int, int, int]:
        try:
            about = self.file.stat()
        except OSError:
            return MISSING
        return about.st_ino, about.st_size, about.st_mtime_ns

    def _take(self, block: bytes) -> None:
        data = self._half + block
        end = data.rfind(b"\n") + 1
        if self._skipping and end:  # the end of a line that was too long
            cut = data.index(b"\n") + 1
            self.position += cut
            data, end, self._skipping = data[cut:], end - cut, False
        if end:
            rows, starts, damaged = decode(data[:end], self.position)
            self.table.extend(rows, starts)
            self.damaged += damaged
            self.position += end
        self._half = data[end:]
        if len(self._half) > LONGEST_LINE or (self._skipping and self._half):
            self.damaged += not self._skipping
            self._skipping = True
            self.position += len(self._half)
            self._half = b""

    def _is_the_same(self, stream: IO[bytes]) -> bool:
        """Whether the file still goes on as it was read: rows may have been cut off, and others written since."""
        if os.fstat(stream.fileno()).st_size < self.position + len(self._half):
            return False
        if not self.table.rows:
            return True
        return self._holds(stream, self.table.rows - 1) and self._half_is_there(stream)

    def _half_is_there(self, stream: IO[bytes]) -> bool:
        stream.seek(self.position)
        return not self._half or stream.read(len(self._half)) == self._half

    def _holds(self, stream: IO[bytes], number: int) -> bool:
        """Whether a row is still where it was."""
        row = decode_line(self._line(stream, number))
        if row is None:
            return False
        step, time_s = self.table.mark(number)
        told = float(seconds_of([row["time"]])[0])
        return bool(row["step"] == step and (told == time_s or told != told))

    def _line(self, stream: IO[bytes], number: int) -> bytes:
        stream.seek(int(self.table.starts.values[number]))
        data = b""
        while b"\n" not in data and len(data) <= LONGEST_LINE:
            more = stream.read(BLOCK_BYTES if data else 4096)
            if not more:
                return b""
            data += more
        return data[: data.find(b"\n") + 1]

    def _go_back(self, stream: IO[bytes]) -> None:
        """Cut the table where the file was cut. Rows up to there are as they were, none after it is."""
        low, high = 0, self.table.rows
        while low < high:
            middle = (low + high) // 2
            if self._holds(stream, middle):
                low = middle + 1
            else:
                high = middle
        self.position = 0
        if low:
            self.position = int(self.table.starts.values[low - 1]) + len(self._line(stream, low - 1))
        self.table.cut(low)
        self._half, self._skipping = b"", False

    def _forget(self) -> None:
        self.table.cut(0)
        self.position, self._half, self._skipping, self.damaged = 0, b"", False, 0
