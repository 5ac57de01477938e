"""The scripted players by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from soulsgym.errors import MisuseError, suggestion
from soulsgym.players.attack_spam import AttackSpam
from soulsgym.players.duellist import Duellist
from soulsgym.players.idle import Idle
from soulsgym.players.player import Player
from soulsgym.players.random import Random
from soulsgym.players.roll_spam import RollSpam
from soulsgym.players.runner import Runner
from soulsgym.spec import load_fight

PLAYERS: dict[str, Callable[..., Player]] = {
    "idle": lambda n, seed: Idle(),
    "random": Random,
    "attack_spam": lambda n, seed: AttackSpam(),
    "roll_spam": RollSpam,
    "runner": lambda n, seed, boss="iudex": Runner(load_fight(boss).arena.centre_m),
    "duellist": Duellist,
}


def make_player(name: str, n: int, seed: int = 0, **options: Any) -> Player:
    """A player for `n` fights; `options` go to its constructor, such as `delay_s` of the duellist."""
    if name not in PLAYERS:
        raise MisuseError(f"player {name!r} is not known{suggestion(name, tuple(PLAYERS))}")
    return PLAYERS[name](n, seed, **options)
