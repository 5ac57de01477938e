"""The scripted players by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from soulsgym.errors import MisuseError, suggestion
from soulsgym.players.duellist import Duellist
from soulsgym.players.player import Player
from soulsgym.players.prober import Prober
from soulsgym.players.simple import AttackSpam, Idle, Random, RollSpam, Runner
from soulsgym.spec import FightSpec

PLAYERS: dict[str, Callable[..., Player]] = {
    "idle": Idle,
    "random": Random,
    "attack_spam": AttackSpam,
    "roll_spam": RollSpam,
    "runner": Runner,
    "duellist": Duellist,
    "prober": Prober,
}


def make_player(name: str, spec: FightSpec, n: int, seed: int = 0, **options: Any) -> Player:
    """A player for `n` fights of a kind; `options` go to its constructor, such as `delay_s` of the duellist."""
    if name not in PLAYERS:
        raise MisuseError(f"player {name!r} is not known{suggestion(name, tuple(PLAYERS))}")
    return PLAYERS[name](spec, n, seed, **options)
