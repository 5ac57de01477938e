"""The last known value of every metric of a run, from the end of its file alone."""

from __future__ import annotations

from pathlib import Path

from soulsai.dashboard.rows import decode, seconds_of

END_BYTES = 64 * 1024
"""Read of a file that is new here: some tens of rows."""
DEEP_BYTES = 1 << 20
"""Read to find values that are not in every row."""
COUNT_BYTES = 1 << 20
"""Up to this length rows are counted; of longer files they are estimated."""


class Tail:
    """Follows the end of a metrics.jsonl."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._seen = (0, 0, 0)
        self._position = 0
        self._counted = True
        self._deep = False
        self._row_bytes = 1.0
        self._rows = 0
        self.step = 0
        self.values: dict[str, float] = {}
        self.updated_s: float | None = None
        self.elapsed_s: float | None = None

    @property
    def rows(self) -> int:
        """How many the file has, or about how many."""
        return self._rows if self._counted else round(self._seen[1] / self._row_bytes)

    def look(self) -> None:
        """Read what is new."""
        try:
            about = self._file.stat()
            seen = about.st_ino, about.st_size, about.st_mtime_ns
            if seen == self._seen:
                return
            if seen[0] != self._seen[0] or seen[1] < self._position:
                self._forget()
            self._seen = seen
            self._read(seen[1])
        except OSError:
            self._forget()

    def deepen(self) -> None:
        """Read further back, once: from then on every value that comes is known."""
        if self._deep or not self._position:
            return
        begin = max(0, self._position - DEEP_BYTES)
        try:
            with self._file.open("rb", buffering=0) as stream:
                stream.seek(begin)
                data = stream.read(self._position - begin)
        except OSError:
            return
        self._take(data[data.find(b"\n") + 1 if begin else 0 : data.rfind(b"\n") + 1], begin)
        self._deep = True

    def _forget(self) -> None:
        self._seen, self._position, self._counted, self._rows = (0, 0, 0), 0, True, 0
        self.values, self.updated_s, self.elapsed_s = {}, None, None
        self._deep, self.step = False, 0

    def _read(self, size: int) -> None:
        if self._counted and size - self._position > COUNT_BYTES:
            self._counted = False
        with self._file.open("rb", buffering=0) as stream:
            begin = self._position if self._counted else max(self._position, size - END_BYTES)
            stream.seek(begin)
            data = stream.read(size - begin)
        end = data.rfind(b"\n") + 1
        if self._counted:
            self._rows += data.count(b"\n", 0, end)
        cut = max(0, end - END_BYTES)
        if cut or begin > self._position:  # in the middle of a line
            cut = data.find(b"\n", cut) + 1
        self._take(data[cut:end], begin + cut)
        self._position = begin + end

    def _take(self, lines: bytes, start: int) -> None:
        from soulsai.telemetry.prometheus import take_in

        rows, _, damaged = decode(lines, start)
        for row in rows:
            take_in(self.values, row)
        if rows:
            self.step = int(rows[-1]["step"])
            self.updated_s = float(seconds_of([rows[-1]["time"]])[0])
            self._row_bytes = max(1.0, len(lines) / (len(rows) + damaged))
            elapsed_s = rows[-1].get("elapsed_s")
            self.elapsed_s = elapsed_s if isinstance(elapsed_s, float) else self.elapsed_s
