"""Encoders: what a network sees of a fight, as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from soulsgym.errors import MisuseError
from soulsgym.parts.encoders.encoder import NO_ACTION, Encoder, bounds_of
from soulsgym.parts.encoders.function import FunctionEncoder
from soulsgym.parts.encoders.history import History
from soulsgym.parts.encoders.player import PlayerEncoder
from soulsgym.parts.encoders.several import OneOfSeveral
from soulsgym.parts.encoders.soulsai74 import SoulsAI74
from soulsgym.parts.registry import make_part, resolve, takes_fights
from soulsgym.spec import FightSpec, load_fight

__all__ = [
    "NO_ACTION",
    "Encoder",
    "FunctionEncoder",
    "History",
    "OneOfSeveral",
    "PlayerEncoder",
    "SoulsAI74",
    "bounds_of",
    "make_encoder",
]


def make_encoder(given: Any, n: int, spec: FightSpec, *, history: int = 1, bosses: Sequence[str] = ()) -> Encoder:
    """The encoder that is meant by `given` for `n` fights; with `history` above 1 it stacks that many encodings.

    That is a name; a table of `name`, `history`, `bosses` and further settings of what is named; an encoder; a class or
    function that makes one of `n` and `spec`; or a function of the fights that returns a row of numbers for each. With
    `bosses`, names of which one is that of `spec`, the rows are the same kind for all of them.
    """
    if n < 1:
        raise MisuseError(f"number of fights {n} is not possible; give 1 or more")
    part, settings = resolve("encoder", given, key="name", default="player")
    history, bosses = settings.pop("history", history), settings.pop("bosses", bosses)
    if isinstance(bosses, str):
        raise MisuseError(f"bosses {bosses!r} is a text; give a list of names, such as ['iudex', 'vordt']")
    encoder = _one(part, n, spec, settings)
    if bosses:
        others = {name: _one(part, 1, load_fight(name), settings) for name in bosses}
        encoder = OneOfSeveral(encoder, n, Path(spec.boss_name).stem, others)
    return encoder if history == 1 else History(encoder, n, history)


def _one(part: Any, n: int, spec: FightSpec, settings: dict[str, Any]) -> Encoder:
    if takes_fights(part) and not hasattr(part, "encode"):
        part = FunctionEncoder(part, n)
    encoder: Encoder = make_part("encoder", part, n, spec, keys=("name", "history", "bosses"), **settings)
    _check(encoder)
    return encoder


def _check(encoder: Encoder) -> None:
    """Refuse an encoder whose names and bounds are not as many as its numbers."""
    name, (low, high) = type(encoder).__name__, bounds_of(encoder)
    for what, values in (("names", encoder.names), ("low", low), ("high", high)):
        if len(values) != encoder.size:
            raise MisuseError(f"encoder {name} has {encoder.size} numbers but {len(values)} {what}")
    if not (low <= high).all():
        raise MisuseError(f"encoder {name} has a low bound above its high one")
