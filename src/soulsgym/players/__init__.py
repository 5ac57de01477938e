"""Scripted players: from one that does nothing to one that wins."""

from soulsgym.players.fights import FightResults, run_fights
from soulsgym.players.player import Player
from soulsgym.players.registry import PLAYERS, make_player

__all__ = ["PLAYERS", "FightResults", "Player", "make_player", "run_fights"]
