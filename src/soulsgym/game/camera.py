"""Where the game's camera looks and where it should, and the keys that turn it: nothing else turns it for long."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

if TYPE_CHECKING:
    from soulsgym.game.keyboard import Keyboard
    from soulsgym.game.titles import Sight

Direction = Sequence[float] | npt.NDArray[Any]

IN_VIEW = 0.8
"""Cosine between the view and the way to the boss above which the game finds him for its lock."""
TURN_BEYOND = 0.3
"""Radians sideways, and height of the unit vector, that are worth a key in a fight."""
EXACT = 0.05
"""The same for a camera that shall look in a direction."""
MOST_PRESSES = 120
SHORTEST_S, LONGEST_S, S_PER_ERROR = 0.02, 0.15, 0.1
"""A press lasts at least one tick of the game, and not so long that it goes far beyond."""
PULSE_S = 0.025
"""No press is shorter in real time, or a game that shows 60 frames a second may miss it."""
SETTLE_S = 0.05
PRESS_EVERY_STEPS = 4
"""The lock takes its time to catch; another press before would undo it."""
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
    return unit((dx, dy, dz))


def cosine(view: Direction, target: Direction) -> float:
    """1 when the view is straight at the target."""
    return float(sum(a * b for a, b in zip(view, target, strict=True)))


class CameraKeys:
    """Chooses camera keys, and learns if the player's settings reverse an axis."""

    def __init__(self) -> None:
        self._signs = [1.0, 1.0]
        self._last: list[float | None] = [None, None]
        self._worse = [0, 0]

    def towards(self, view: Direction, target: Direction, beyond: float = TURN_BEYOND) -> tuple[str, ...]:
        """The keys to hold so that the camera turns from `view` to `target`; none if it is within `beyond`."""
        names = (("cameraright", "cameraleft"), ("cameraup", "cameradown"))
        keys = []
        for axis, (error, pair) in enumerate(zip(_errors(view, target), names, strict=True)):
            self._learn(axis, error)
            if abs(error) > beyond:
                keys.append(pair[0] if error * self._signs[axis] > 0.0 else pair[1])
                self._last[axis] = error
            else:
                self._last[axis] = None
        return tuple(keys)

    def turn(
        self,
        keyboard: Keyboard,
        look: Callable[[], Direction],
        target: Direction,
        sleep: Callable[[float], None],
        speed: float,
        within: float = EXACT,
    ) -> bool:
        """Turn the camera of a game that runs at `speed` by short presses, other keys stay held; does it get there?"""
        target = unit(target)
        for _ in range(MOST_PRESSES):
            view = unit(look())
            keys = self.towards(view, target, within)
            if not keys:
                return True
            # As long as the smaller error takes, so that no axis goes far beyond.
            smallest = min(abs(error) for error in _errors(view, target) if abs(error) > within)
            try:
                for key in keys:
                    keyboard.press(key)
                sleep(max(min(max(S_PER_ERROR * smallest, SHORTEST_S), LONGEST_S) / speed, PULSE_S))
            finally:
                for key in keys:
                    keyboard.release(key)
            sleep(SETTLE_S / speed)
        return False

    def _learn(self, axis: int, error: float) -> None:
        last = self._last[axis]
        if last is None:
            self._worse[axis] = 0
            return
        grown = math.copysign(1.0, last) * math.remainder(error - last, math.tau)
        self._worse[axis] = self._worse[axis] + 1 if grown > REVERSED_BY else 0
        if self._worse[axis] >= REVERSED_AFTER:
            self._signs[axis], self._worse[axis] = -self._signs[axis], 0


def _errors(view: Direction, target: Direction) -> tuple[float, float]:
    """How far to turn to the right [rad], and how much higher to look."""
    sideways = math.atan2(target[0], target[1]) - math.atan2(view[0], view[1])
    return math.remainder(sideways, math.tau), float(target[2] - view[2])


def unit(direction: Direction) -> tuple[float, float, float]:
    """The same direction with length 1."""
    x, y, z = map(float, direction)
    length = math.hypot(x, y, z) or 1.0
    return x / length, y / length, z / length


class LockKeeper:
    """Asks for the keys that bring the lock back when it is lost in a fight."""

    def __init__(self, camera: CameraKeys, throws: tuple[str, ...] = ()) -> None:
        self._camera, self._throws = camera, throws
        self._wait = 0

    def aim(self, sight: Sight) -> Aim:
        """The keys for the next step, by what is seen before it."""
        if sight.lock_on or sight.player_animation in self._throws:  # in a throw the game allows no lock
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
