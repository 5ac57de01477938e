"""How a bad setting is refused: one sentence, with the nearest right word."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from soulsai.errors import ConfigError


def refusal(source: str, problem: str) -> ConfigError:
    """The error to raise; `source` is the file or command line that holds the bad setting."""
    return ConfigError(f"{source}: {problem}")


def way_out(word: str, known: Iterable[str], shape: str = "{}", otherwise: str = "there are {}") -> str:
    """How a refusal of an unknown word ends: with the known word that is nearest, or all there are."""
    words = list(known)
    near = did_you_mean(word, words)
    return f"did you mean {shape.format(near)}?" if near else otherwise.format(", ".join(words))


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The known word that is nearest, if one is near."""
    near = difflib.get_close_matches(word, list(known), n=1)
    return near[0] if near else None
