"""Players: scripts, from one that does nothing to one that wins, and exported policies."""

from soulsgym.players.onnx_policy import OnnxPolicy, load_policy
from soulsgym.players.player import Player
from soulsgym.players.registry import PLAYERS, make_player
from soulsgym.players.results import FightResults, run_fights

__all__ = ["PLAYERS", "FightResults", "OnnxPolicy", "Player", "load_policy", "make_player", "run_fights"]
