"""Small matrices do not share threads well, so halves of the work get a thread each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Threads:
    """Runs several pieces of work at once; the first on the thread of the caller."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool = ThreadPoolExecutor(count - 1, "learn") if count > 1 else None

    def run(self, work: Sequence[Callable[[], T]]) -> list[T]:
        """The results, in order."""
        if self._pool is None or len(work) == 1:
            return [piece() for piece in work]
        others = [self._pool.submit(piece) for piece in work[1:]]
        return [work[0](), *(other.result() for other in others)]
