"""Encoders: what a network sees of a fight, as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from soulsgym.errors import MisuseError
from soulsgym.parts.encoders.encoder import NO_ACTION, Encoder
from soulsgym.parts.encoders.function import FunctionEncoder
from soulsgym.parts.encoders.history import History
from soulsgym.parts.encoders.player import PlayerEncoder
from soulsgym.parts.encoders.soulsai74 import SoulsAI74
from soulsgym.parts.registry import make_part, refuse_unknown, resolve, takes_fights
from soulsgym.spec import FightSpec

__all__ = ["NO_ACTION", "Encoder", "FunctionEncoder", "History", "PlayerEncoder", "SoulsAI74", "make_encoder"]


def make_encoder(given: Any, n: int, spec: FightSpec, *, history: int = 1) -> Encoder:
    """The encoder that is meant by `given` for `n` fights; with `history` above 1 it stacks that many encodings.

    That is a name; a table of `name`, `history` and further settings of what is named; an encoder; a class or function
    that makes one of `n` and `spec`; or a function of the fights that returns a row of numbers for each.
    """
    if n < 1:
        raise MisuseError(f"number of fights {n} is not possible; give 1 or more")
    part, settings = resolve("encoder", given, key="name", default="player")
    history = settings.pop("history", history)
    if takes_fights(part) and not hasattr(part, "encode"):
        refuse_unknown("encoder", settings, ("name", "history"))
        part = FunctionEncoder(part, n)
    encoder: Encoder = make_part("encoder", part, "encode", n, spec, **settings)
    _check(encoder)
    return encoder if history == 1 else History(encoder, n, history)


def _check(encoder: Encoder) -> None:
    """Refuse an encoder whose names and bounds are not as many as its numbers."""
    name = type(encoder).__name__
    for field in ("size", "names", "low", "high"):
        if not hasattr(encoder, field):
            raise MisuseError(f"encoder {name} has no {field!r}; see Encoder in soulsgym.parts.encoders")
    for field in ("names", "low", "high"):
        if len(getattr(encoder, field)) != encoder.size:
            raise MisuseError(f"encoder {name} has {encoder.size} numbers but {len(getattr(encoder, field))} {field}")
    if not (np.asarray(encoder.low) <= np.asarray(encoder.high)).all():
        raise MisuseError(f"encoder {name} has a low bound above its high one")
