"""Where the camera looks and where it should, and which keys bring it there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from soulsgym.game.titles import Sight

IN_VIEW = 0.8
"""Cosine between the view and the way to the boss above which the game finds him for its lock."""
TURN_BEYOND = 0.3
"""Radians sideways, and height of the unit vector, that are worth a key."""
PRESS_EVERY_STEPS = 4
"""The lock takes its time to catch; another press before would undo it."""
HELD = ("ThrowAtk", "ThrowDef")
"""In a riposte or a throw the game allows no lock."""
REVERSED_BY = 0.02
"""The error must have grown by this much to blame it on a reversed axis, not on who moved."""
REVERSED_AFTER = 2


@dataclass(frozen=True)
class Aim:
    """Keys for the camera: those to hold, and whether the lock's own is to be tapped."""

    hold: tuple[str, ...] = ()
    tap_lock: bool = False


NO_AIM = Aim()


def view_to_boss(sight: Sight) -> tuple[float, float, float]:
    """The unit vector from the player to the boss."""
    dx, dy, dz = (boss - player for boss, player in zip(sight.boss_pose[:3], sight.player_pose[:3], strict=True))
    length = math.hypot(dx, dy, dz) or 1.0
    return dx / length, dy / length, dz / length


def cosine(view: Sequence[float], target: Sequence[float]) -> float:
    """1 when the view is straight at the target."""
    return sum(a * b for a, b in zip(view, target, strict=True))


class CameraKeys:
    """Chooses camera keys, and learns if the player's settings reverse an axis."""

    def __init__(self) -> None:
        self._signs = [1.0, 1.0]
        self._last: list[float | None] = [None, None]
        self._worse = [0, 0]

    def towards(self, view: Sequence[float], target: Sequence[float], beyond: float = TURN_BEYOND) -> tuple[str, ...]:
        """The keys to hold so that the camera turns from `view` to `target`; none if it is within `beyond`."""
        sideways = math.remainder(math.atan2(target[0], target[1]) - math.atan2(view[0], view[1]), 2.0 * math.pi)
        errors = sideways, target[2] - view[2]
        names = (("cameraright", "cameraleft"), ("cameraup", "cameradown"))
        keys = []
        for axis, (error, pair) in enumerate(zip(errors, names, strict=True)):
            self._learn(axis, error)
            if abs(error) > beyond:
                keys.append(pair[0] if error * self._signs[axis] > 0.0 else pair[1])
                self._last[axis] = error
            else:
                self._last[axis] = None
        return tuple(keys)

    def _learn(self, axis: int, error: float) -> None:
        last = self._last[axis]
        if last is None:
            self._worse[axis] = 0
            return
        # Near half a turn the error jumps from one side to the other, which tells nothing.
        grown = last * error > 0.0 and abs(error) > abs(last) + REVERSED_BY
        self._worse[axis] = self._worse[axis] + 1 if grown else 0
        if self._worse[axis] >= REVERSED_AFTER:
            self._signs[axis], self._worse[axis] = -self._signs[axis], 0


class LockKeeper:
    """Asks for the keys that bring the lock back when it is lost in a fight."""

    def __init__(self, camera: CameraKeys) -> None:
        self._camera = camera
        self._wait = 0

    def aim(self, sight: Sight) -> Aim:
        """The keys for the next step, by what is seen before it."""
        if sight.lock_on or sight.player_animation in HELD:
            self._wait = 0
            return NO_AIM
        target = view_to_boss(sight)
        self._wait -= 1
        if cosine(sight.camera_pose[3:], target) > IN_VIEW:
            if self._wait > 0:
                return NO_AIM
            self._wait = PRESS_EVERY_STEPS
            return Aim(tap_lock=True)
        return Aim(hold=self._camera.towards(sight.camera_pose[3:], target))
