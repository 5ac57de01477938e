"""How a bad setting is refused: one sentence, with the nearest right word."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from soulsai.errors import ConfigError


def refusal(source: str, problem: str) -> ConfigError:
    """The error to raise; `source` is the file or command line that holds the bad setting."""
    # Imported late: the tree of errors lives in soulsgym, whose import loads the simulator.
    from soulsai.errors import ConfigError

    return ConfigError(f"{source}: {problem}")


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The known word that is nearest, if one is near."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return near[0] if near else None
