"""Who gave which rows of a replay."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Container, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

FULL_SHARES = 20
"""Shares mean something where there are so many times as many rows as in the chunk that is looked at."""
TRIFLE = 0.02
"""A name with less than this share of the rows does not count as one of several."""


class Givers:
    """The names behind the newest `capacity` rows, by the numbers under which they were added."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._spans: deque[tuple[int, int, str]] = deque()  # number of the first row, number after the last, name
        self._rows: Counter[str] = Counter()

    @property
    def added(self) -> int:
        """Rows that were ever added."""
        return self._spans[-1][1] if self._spans else 0

    def add(self, name: str, rows: int, first: int) -> None:
        """Rows of a name were added under the numbers from `first` on."""
        last = self._spans[-1] if self._spans else (0, 0, "")
        if last[2] == name and last[1] == first:
            self._spans[-1] = (last[0], first + rows, name)
        else:
            self._spans.append((first, first + rows, name))
        self._rows[name] += rows
        self._drop_before(first + rows - self.capacity)

    def _drop_before(self, number: int) -> None:
        while self._spans and self._spans[0][0] < number:
            first, end, name = self._spans.popleft()
            gone = min(end, number) - first
            self._rows[name] -= gone
            if first + gone < end:
                self._spans.appendleft((first + gone, end, name))
        self._rows += Counter()  # without those that have none left

    def is_over(self, name: str, rows: int, share: float, names: int, active: Container[str]) -> bool:
        """Whether with so many more rows a name would have more than its share, once so many `active` names give some.

        Without those who have left or give next to nothing: they would keep everybody else at their shares for ever.
        """
        total = self._rows.total()
        counted = sum(count >= TRIFLE * total and who in active for who, count in self._rows.items())
        if counted < names or total < FULL_SHARES * rows:
            return False
        return self._rows[name] + rows > share * (total + rows)

    def rows_of(self, name: str) -> int:
        """Rows of a name that are still there."""
        return self._rows[name]

    def of_name(self, name: str, first: int, rows: int) -> npt.NDArray[np.bool_]:
        """Which of the rows from number `first` on are of a name."""
        found = np.zeros(rows, np.bool_)
        for begin, end, who in self._spans:
            if who == name:
                found[max(begin - first, 0) : max(end - first, 0)] = True
        return found

    def remove(self, name: str) -> None:
        """Forget a name; the rows of the others are numbered anew, from 0 on."""
        kept, self._spans = self._spans, deque()
        self._rows.clear()
        first = 0
        for begin, end, who in kept:
            if who != name:
                self.add(who, end - begin, first)
                first += end - begin

    def state(self) -> tuple[list[str], dict[str, npt.NDArray[np.int64]]]:
        """The names, and the spans with their positions among the names."""
        names = sorted({name for _, _, name in self._spans})
        at = {name: position for position, name in enumerate(names)}
        spans = [(first, end, at[name]) for first, end, name in self._spans]
        return names, {"spans": np.array(spans, np.int64).reshape(-1, 3)}

    def restore(self, names: list[str], state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Go on from a state."""
        self._spans.clear()
        self._rows.clear()
        for first, end, at in state["spans"].tolist():
            self.add(names[at], end - first, first)
