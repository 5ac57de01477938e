"""A terminal as a grid of coloured cells: only what changed is written, and afterwards all is as before."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any, TextIO

import numpy as np
import numpy.typing as npt

Colour = tuple[int, int, int]
INK: Colour = (226, 222, 212)
PAPER: Colour = (14, 14, 17)
COARSE = 0xF8
"""Colours are told apart in steps of 8: fewer cells change from picture to picture, and nobody sees it."""
ENTER = "\x1b[?1049h\x1b[?25l\x1b[2J"
LEAVE = "\x1b[0m\x1b[?25h\x1b[?1049l"
POLL_S = 0.02


class Cells:
    """Letters with the colours of ink and paper."""

    def __init__(self, columns: int, rows: int) -> None:
        self.letters = np.full((rows, columns), " ", "<U1")
        self.ink = np.full((rows, columns, 3), INK, np.uint8)
        self.paper = np.full((rows, columns, 3), PAPER, np.uint8)

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return self.letters.shape[1], self.letters.shape[0]

    def write(self, row: int, column: int, text: str, ink: Colour = INK, paper: Colour | None = None) -> int:
        """Write as much of a text as fits; the column after it."""
        columns = self.letters.shape[1]
        if not 0 <= column < columns:
            return column
        shown = [letter if letter.isprintable() else "?" for letter in text[: columns - column]]
        end = column + len(shown)
        self.letters[row, column:end] = shown
        self.ink[row, column:end] = ink
        if paper is not None:
            self.paper[row, column:end] = paper
        return end

    def write_right(self, row: int, column: int, text: str, ink: Colour = INK) -> None:
        """Write a text that ends before a column, if there is room for it."""
        if column - len(text) >= 0:
            self.write(row, column - len(text), text, ink)

    def bar(self, row: int, column: int, width: int, share: float, ink: Colour, *, plain: bool) -> int:
        """A bar; the column after it."""
        parts = min(max(share, 0.0), 1.0) * width
        if plain:
            return self.write(row, column, "[" + ("#" * round(parts)).ljust(width, ".") + "]")
        full, rest = int(parts), " ▏▎▍▌▋▊▉"[int((parts % 1.0) * 8)]
        return self.write(row, column, ("█" * full + rest).ljust(width)[:width], ink, (46, 40, 38))

    def text(self) -> str:
        """The letters alone."""
        return "\n".join("".join(row).rstrip() for row in self.letters)


def encoded(cells: Cells, before: Cells | None, *, colour: bool) -> str:
    """The escape sequences and letters that turn a screen that shows `before` into one that shows `cells`."""
    ink, paper = cells.ink & COARSE, cells.paper & COARSE
    changed: npt.NDArray[Any] = np.ones(cells.letters.shape, np.bool_)
    if before is not None and before.size == cells.size:
        changed = cells.letters != before.letters
        if colour:
            changed = (
                changed | ((before.ink & COARSE) != ink).any(axis=2) | ((before.paper & COARSE) != paper).any(axis=2)
            )
    out: list[str] = []
    last: tuple[int, ...] = ()
    for row in np.flatnonzero(changed.any(axis=1)).tolist():
        at = -1
        for column in np.flatnonzero(changed[row]).tolist():
            if column != at:
                out.append(f"\x1b[{row + 1};{column + 1}H")
            if colour:
                pair = (*ink[row, column].tolist(), *paper[row, column].tolist())
                if pair != last:
                    last = pair
                    out.append("\x1b[38;2;{};{};{};48;2;{};{};{}m".format(*pair))
            out.append(str(cells.letters[row, column]))
            at = column + 1
    if colour and out:
        out.append("\x1b[0m")
    return "".join(out)


class Terminal:
    """Shows cells and takes keys. Use it in a `with` block: however that ends, the terminal is given back."""

    def __init__(self, out: TextIO | None = None, *, colour: bool = True) -> None:
        self._out, self._colour = out or sys.stdout, colour
        self._shown: Cells | None = None
        self._kept: Any = None

    def __enter__(self) -> Terminal:
        self._take()
        self._signals = list(_handlers({"SIGTERM": self._end, "SIGHUP": self._end, "SIGTSTP": self._rest}))
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._signals:
            signal.signal(number, handler)
        self._give_back()

    def size(self) -> tuple[int, int]:
        """Columns and rows as they are now."""
        with contextlib.suppress(OSError, ValueError):
            found = os.get_terminal_size(self._out.fileno())
            if found.columns and found.lines:
                return found.columns, found.lines
        columns, rows = shutil.get_terminal_size((80, 24))
        return columns, rows

    def show(self, cells: Cells) -> None:
        """Show cells as large as the terminal."""
        redraw = self._shown is None or self._shown.size != cells.size
        data = encoded(cells, None if redraw else self._shown, colour=self._colour)
        self._out.write(("\x1b[2J" if redraw else "") + data)
        self._out.flush()
        self._shown = cells

    def key(self, until_s: float) -> str:
        """A key that is pressed before a moment of time.monotonic(); nothing if there is none by then."""
        if os.name == "nt":
            return _windows_key(until_s)
        if self._kept is None:
            time.sleep(max(0.0, until_s - time.monotonic()))
            return ""
        ready, _, _ = select.select([sys.stdin], [], [], max(0.0, until_s - time.monotonic()))
        return os.read(sys.stdin.fileno(), 32).decode(errors="replace") if ready else ""

    def _take(self) -> None:
        if os.name != "nt" and sys.stdin.isatty():
            import termios
            import tty

            self._kept = termios.tcgetattr(sys.stdin)
            tty.setcbreak(sys.stdin.fileno())
        self._out.write(ENTER)
        self._out.flush()
        self._shown = None

    def _give_back(self) -> None:
        if self._kept is not None:
            import termios

            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, self._kept)
            self._kept = None
        with contextlib.suppress(OSError, ValueError):  # whoever read it has gone
            self._out.write(LEAVE)
            self._out.flush()

    def _end(self, number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    def _rest(self, _number: int, _frame: FrameType | None) -> None:
        """Ctrl-Z: the shell gets its screen, and this one comes back with fg."""
        self._give_back()
        os.kill(os.getpid(), signal.SIGSTOP)
        self._take()


def _handlers(wanted: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """Install handlers where the system has the signal and this is the main thread; what was there before."""
    for name, handler in wanted.items():
        number = getattr(signal, name, None)
        if number is None:
            continue
        with contextlib.suppress(ValueError):
            yield number, signal.signal(number, handler)


def _windows_key(until_s: float) -> str:
    import msvcrt

    keyboard: Any = msvcrt
    while not keyboard.kbhit():
        if time.monotonic() >= until_s:
            return ""
        time.sleep(POLL_S)
    return str(keyboard.getwch())
