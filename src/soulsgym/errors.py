"""Every error this project raises on purpose.

SoulsError
├── DataError         a data file is wrong: names file, key and value
├── MisuseError       the caller did something the API forbids
│   ├── StartError    a fight cannot start like this
│   └── ResetNeeded   step() before reset() or after the end
└── RecordingError    a recording cannot be read
"""

from __future__ import annotations

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


class RecordingError(SoulsError):
    """A recording file cannot be read."""
