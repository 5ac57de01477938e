"""Every error this project raises on purpose.

SoulsError
├── DataError         a data file is wrong: names file, key and value
├── MisuseError       the caller did something the API forbids
│   ├── StartError    a fight cannot start like this
│   └── ResetNeeded   step() before reset() or after the end
├── MissingPackage    a package of an extra is not installed
├── RecordingError    a recording cannot be read
├── PolicyError       an exported policy cannot be read
└── GameError         something about a running game
    ├── GameNotFound       it is not running, or has no window
    ├── GameAccessDenied   the system does not let us read it
    ├── GameVersionError   it is not the version of the address table
    ├── GameGone           its process has ended
    ├── GameHung           it does not answer
    ├── ReadFailed         a place in its memory cannot be read or written
    ├── FocusLost          its window does not get the keys
    ├── SpeedControlError  its clock cannot be controlled
    └── ResetError         a fight in it cannot be set up
        └── StageFailed    a stage of that did not get there
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path

LONGEST_VALUE = 120
"""Characters of a bad value that an error shows: it may be a whole table."""


class SoulsError(Exception):
    """Base of all errors; its text is one sentence for the user."""

    exit_code = 2


class DataError(SoulsError):
    """A data file holds something the simulator cannot use."""

    def __init__(self, file: Path | str, key: str, value: object, reason: str) -> None:
        self.file, self.key, self.value, self.reason = str(file), key, value, reason
        super().__init__(f"{file}: {key} = {_shortened(value)}: {reason}")


def _shortened(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_VALUE else f"{text[: LONGEST_VALUE - 3]}..."


class MisuseError(SoulsError, ValueError):
    """A call with arguments, or at a moment, that cannot work."""


class StartError(MisuseError):
    """A requested start of a fight is impossible."""


class ResetNeeded(MisuseError):
    """The fight is over or has not begun."""


class MissingPackage(SoulsError, ImportError):
    """A package of an extra is not installed."""


class RecordingError(SoulsError):
    """A recording file cannot be read."""


class PolicyError(SoulsError):
    """A file of an exported policy cannot be read."""


class GameError(SoulsError):
    """Something about a running game."""


class GameNotFound(GameError, RuntimeError):
    """The game is not running, or has no window."""


class GameAccessDenied(GameError):
    """The operating system does not let us read the game."""


class GameVersionError(GameError):
    """The game is not the version that the address table was made for."""


class GameGone(GameError):
    """The game's process has ended."""


class GameHung(GameError):
    """The game does not answer in time."""


class ReadFailed(GameError):
    """A place in the game's memory cannot be read or written, as when a pointer is not valid yet."""

    def __init__(self, address: int, reason: str) -> None:
        self.address = address
        super().__init__(f"memory at {address:#x}: {reason}")


class FocusLost(GameError):
    """The game's window does not get the keys."""


class SpeedControlError(GameError):
    """The game's clock cannot be controlled."""


class ResetError(GameError):
    """A fight in the game cannot be set up."""


class StageFailed(ResetError):
    """A stage of setting up a fight did not get there in time."""

    def __init__(self, stage: str, reason: str) -> None:
        self.stage, self.reason = stage, reason
        super().__init__(f"{stage}: {reason}")


def suggestion(word: str, known: Iterable[str]) -> str:
    """', did you mean ...?' if something similar is known, else the list of what is: the end of a sentence."""
    words = sorted(set(known))
    close = difflib.get_close_matches(word, words, n=1)
    if close:
        return f", did you mean {close[0]!r}?"
    return f"; known are {', '.join(words)}" if words else "; none is known"
