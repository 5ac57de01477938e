"""SoulsGym's names of errors, for its users' scripts; ours are in `soulsgym.errors`.

Three of them are never raised: here a player or boss that leaves the arena cuts the fight off, and `info` says why.
"""

from soulsgym.errors import GameError, ResetError, ResetNeeded, SoulsError, SpeedControlError

SoulsGymException = SoulsError
GameStateError = GameError
InjectionFailure = SpeedControlError


class InvalidPlayerStateError(GameError):
    """The player is where he cannot be."""


class InvalidBossStateError(GameError):
    """The boss is where he cannot be."""


class LockOnFailure(ResetError):
    """The camera cannot be locked on to the boss."""


class InvalidGameSettings(GameError):
    """The settings of the game are not those that a fight needs."""


__all__ = [
    "GameStateError",
    "InjectionFailure",
    "InvalidBossStateError",
    "InvalidGameSettings",
    "InvalidPlayerStateError",
    "LockOnFailure",
    "ResetError",
    "ResetNeeded",
    "SoulsGymException",
]
