"""Columns of long files kept on disk, so that the page has them at once when it is opened again.

What is kept here is never needed: anything wrong with it, and the file itself is read.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec
import numpy as np

from soulsai.dashboard.table import Table

FORMAT = 1
LEAST_BYTES = 16 << 20
"""Shorter files are read as quickly as their cache."""
MOST_BYTES = 1 << 30
"""On the disk, for all runs together; those used longest ago go first."""
HEAD_BYTES = 4096
LONGEST_HEADER = 1 << 20
SUFFIX = ".columns"


def default_folder() -> Path:
    """Where programs of this user keep what they can make again."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "soulsai" / "dashboard"


class ColumnCache:
    """A folder of cached columns."""

    def __init__(self, folder: Path, least_bytes: int = LEAST_BYTES) -> None:
        self._folder = folder
        self._least_bytes = least_bytes

    def find(self, file: Path) -> tuple[Table, int] | None:
        """Rows of a file that were kept, and up to where; the file may be another since."""
        try:
            kept = self._place(file)
            with kept.open("rb") as stream:
                length = int.from_bytes(stream.read(8), "little")
                if length > LONGEST_HEADER:
                    return None
                header = msgspec.json.decode(stream.read(length))
                found = _read(header, stream)
            os.utime(kept)
        except (OSError, ValueError, KeyError, TypeError, msgspec.MsgspecError):
            return None
        return found

    def keep(self, file: Path, table: Table, position: int, lock: Lock) -> None:
        """Keep the rows of a file; where that is not possible, nothing is."""
        if position < self._least_bytes:
            return
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            kept = self._place(file)
            temporary = kept.with_suffix(f".{os.getpid()}.tmp")
            try:
                with lock:
                    header, arrays = table.parts()
                    cuts = table.cuts
                text = msgspec.json.encode({"format": FORMAT, "position": position, **header})
                descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                with os.fdopen(descriptor, "wb") as stream:
                    stream.write(len(text).to_bytes(8, "little") + text)
                    for array in arrays:
                        array.tofile(stream)
                if table.cuts == cuts:  # Rows that are added do not change these, those that replace others do.
                    os.replace(temporary, kept)
            finally:
                temporary.unlink(missing_ok=True)
            self._prune()

    def _place(self, file: Path) -> Path:
        """Another file under the same name has another number, or begins with other bytes."""
        with file.open("rb") as stream:
            head = stream.read(HEAD_BYTES)
            number = os.fstat(stream.fileno()).st_ino
        digest = hashlib.sha256(f"{file.resolve()}\n{number}\n".encode() + head).hexdigest()
        return self._folder / f"{digest[:32]}{SUFFIX}"

    def _prune(self) -> None:
        files = sorted(self._folder.glob(f"*{SUFFIX}"), key=lambda file: file.stat().st_mtime, reverse=True)
        total = 0
        for number, file in enumerate(files):
            total += file.stat().st_size
            if number and total > MOST_BYTES:
                file.unlink(missing_ok=True)


def _read(header: Any, stream: Any) -> tuple[Table, int] | None:
    if header["format"] != FORMAT:
        return None

    def take(kind: str, count: int) -> Any:
        array = np.fromfile(stream, kind, count)
        if len(array) != count:
            raise ValueError("the file is cut off")
        return array

    return Table.from_parts(header, take), int(header["position"])
