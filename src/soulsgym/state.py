"""FIGHT, the one record of a fight after a step.

Both engines fill it and everything else reads it: encoders, rewards, endings, the renderer and recordings. The first
fifteen fields are the observation in its final dtypes: an observation is a view of a copied record, not a conversion.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt

NUM_ACTIONS = 20
MAX_DURATION_S = 10.0
"""Upper end of the declared space of both animation durations; longer ones are shown as this."""

OBSERVATION_KEYS = (
    "phase",
    "player_hp",
    "player_max_hp",
    "player_sp",
    "player_max_sp",
    "boss_hp",
    "boss_max_hp",
    "player_pose",
    "boss_pose",
    "camera_pose",
    "player_animation",
    "player_animation_duration",
    "boss_animation",
    "boss_animation_duration",
    "lock_on",
)

FIGHT = np.dtype(
    [
        # The observation.
        ("phase", "i8"),
        ("player_hp", "f4", (1,)),
        ("player_max_hp", "i8"),
        ("player_sp", "f4", (1,)),
        ("player_max_sp", "i8"),
        ("boss_hp", "f4", (1,)),
        ("boss_max_hp", "i8"),
        ("player_pose", "f4", (4,)),  # x, y, z [m], heading [rad]
        ("boss_pose", "f4", (4,)),
        ("camera_pose", "f4", (6,)),  # x, y, z [m], unit vector of the view
        ("player_animation", "i8"),  # -1: not in the animation table
        ("player_animation_duration", "f4", (1,)),  # [s] of the label clock
        ("boss_animation", "i8"),
        ("boss_animation_duration", "f4", (1,)),
        ("lock_on", "i8"),
        # What is open to the player next.
        ("action_mask", "i1", (NUM_ACTIONS,)),
        # What happened in the last step.
        ("damage_dealt", "f4"),
        ("damage_taken", "f4"),
        ("hit_by", "i4"),  # boss move that hit the player, -1 none
        ("landed", "i4"),  # player move that hit the boss, -1 none
        ("dodged", "i4"),  # boss move whose blow passed through an invulnerable player, -1 none
        # What is really going on, for pictures and analysis. A running game gives its best guess.
        ("boss_move", "i4"),
        ("boss_move_s", "f4"),
        ("player_move", "i4"),
        ("player_move_s", "f4"),
        ("invulnerable", "i1"),
        # The fight as a whole.
        ("outcome", "i4"),  # Outcome
        ("step", "i4"),
        ("time_s", "f4"),  # game time since the start
        ("dealt_total", "f4"),
        ("taken_total", "f4"),
        ("killed_by", "i4"),  # boss move of the fatal blow, -1 none or a fall
    ],
    align=True,
)

ROW = np.dtype((np.void, FIGHT.itemsize))
"""A record as plain bytes: NumPy copies structured arrays field by field, ten times slower."""

Fights = npt.NDArray[Any]
"""An array of dtype FIGHT with one leading axis of fights."""


class Outcome(IntEnum):
    """How a fight stands."""

    RUNNING = 0
    WON = 1
    DIED = 2
    FELL = 3
    BROKEN = 4  # a running game failed: nobody won or lost


def copied(records: Fights) -> Fights:
    """A copy of records, as plain bytes: NumPy copies structured arrays field by field, ten times slower."""
    return records.view(np.uint8).copy().view(records.dtype)


def observation_of(fights: Fights) -> dict[str, npt.NDArray[Any]]:
    """The observation as views into `fights`; copy the record first if it will be stepped on."""
    return {key: fights[key] for key in OBSERVATION_KEYS}


def action_mask_of(fights: Fights) -> npt.NDArray[np.bool_]:
    """The open actions as booleans, a view into `fights`."""
    return fights["action_mask"].view(np.bool_)
