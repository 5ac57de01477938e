"""What one look at a fight tells."""

from __future__ import annotations

from dataclasses import dataclass

Pose = tuple[float, float, float, float]
"""x, y, z in metres with z up, and the heading in radians within -pi and pi."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A fight at one moment of the game."""

    time_ms: int
    player_hp: int
    player_max_hp: int
    player_sp: int
    player_max_sp: int
    boss_hp: int
    boss_max_hp: int
    player_pose: Pose
    boss_pose: Pose
    camera_pose: tuple[float, float, float, float, float, float]
    """Where it is, and the direction in which it looks."""
    player_animation: str
    boss_animation: str
    """With what the game overwrites during hits put right."""
    player_animation_s: float
    player_animation_length_s: float
    boss_animation_s: float
    boss_animation_length_s: float
    lock_on: bool
    frost_resistance: float
    """Share of it that is left: 1 without any build-up."""
    frost_effect: float


@dataclass(frozen=True, slots=True)
class Glance:
    """The few values that are polled while waiting for something. They may be of two moments."""

    time_ms: int
    player_hp: int
    boss_hp: int
    player_animation: str
    boss_animation: str
