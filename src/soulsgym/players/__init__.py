"""Scripted players: from one that does nothing to one that wins."""

from soulsgym.players.player import Player
from soulsgym.players.registry import PLAYERS, make_player
from soulsgym.players.results import FightResults, run_fights

__all__ = ["PLAYERS", "FightResults", "Player", "make_player", "run_fights"]
