"""A keyboard and a window without a system behind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from soulsgym.errors import FocusLost, GameNotFound


class FakeKeys:
    """Remembers what was sent and which keys are down; `broken` raises it instead."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, bool]] = []
        self.down: set[str] = set()
        self.batches = 0
        self.closed = False
        self.broken: Exception | None = None
        self.watch: Callable[[str, bool], None] | None = None
        self.lacking: set[str] = set()
        self.languages = ["us"]

    def send(self, changes: Sequence[tuple[str, bool]]) -> None:
        assert not self.closed, "keys sent after close"
        if self.broken is not None:
            raise self.broken
        self.batches += 1
        for key, is_down in changes:
            self.sent.append((key, is_down))
            (self.down.add if is_down else self.down.discard)(key)
            if self.watch is not None:
                self.watch(key, is_down)

    def missing(self, keys: Iterable[str]) -> list[str]:
        return [key for key in keys if key in self.lacking]

    def layouts(self) -> list[str]:
        return self.languages

    def close(self) -> None:
        self.closed = True


class FakeWindow:
    """A window that has the focus unless `focused` says otherwise; `regains` says whether activate() helps."""

    def __init__(self, title: str = "DARK SOULS III", size: tuple[int, int] = (800, 450)) -> None:
        self.title = title
        self.size = size
        self.focused = True
        self.regains = True
        self.gone = False
        self.closed = False
        self.activations = 0
        self.picture: Callable[[], np.ndarray] = lambda: np.zeros((self.size[1], self.size[0], 3), np.uint8)

    def activate(self, limit_s: float = 2.0) -> None:
        self._check()
        self.activations += 1
        if not self.regains and not self.focused:
            raise FocusLost(f"{self.title} did not get the focus within {limit_s:g} s; another window has it")
        self.focused = True

    def has_focus(self) -> bool:
        self._check()
        return self.focused

    def client_size(self) -> tuple[int, int]:
        self._check()
        return self.size

    def grab(self) -> np.ndarray:
        self._check()
        return self.picture()

    def close(self) -> None:
        self.closed = True

    def _check(self) -> None:
        assert not self.closed, "window used after close"
        if self.gone:
            raise GameNotFound(f"the window {self.title!r} is gone; start the game")
