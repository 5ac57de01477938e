"""Encoders: what a network sees of a fight, as numbers."""

from __future__ import annotations

from collections.abc import Callable
from types import MappingProxyType

from soulsgym.errors import MisuseError, suggestion
from soulsgym.parts.encoders.encoder import NO_ACTION, Encoder
from soulsgym.parts.encoders.history import History
from soulsgym.parts.encoders.player import PlayerEncoder
from soulsgym.parts.encoders.soulsai74 import SoulsAI74
from soulsgym.spec import FightSpec

ENCODERS: MappingProxyType[str, Callable[[int, FightSpec], Encoder]] = MappingProxyType(
    {"player": PlayerEncoder, "soulsai74": SoulsAI74}
)
"""Makers of the encoders by name, for a number of fights and a moveset."""

__all__ = ["ENCODERS", "NO_ACTION", "Encoder", "History", "PlayerEncoder", "SoulsAI74", "make_encoder"]


def make_encoder(name: str, n: int, spec: FightSpec, *, history: int = 1) -> Encoder:
    """The encoder called `name` for `n` fights; with `history` above 1 it stacks that many encodings."""
    if name not in ENCODERS:
        raise MisuseError(f"encoder {name!r} is not known{suggestion(name, tuple(ENCODERS))}")
    if n < 1:
        raise MisuseError(f"number of fights {n} is not possible; give 1 or more")
    encoder = ENCODERS[name](n, spec)
    return encoder if history == 1 else History(encoder, n, history)
