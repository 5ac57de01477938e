"""Turns the game's camera to a direction by pressing its keys: there is no other way to turn it that lasts."""

from __future__ import annotations

import math
from collections.abc import Callable

from soulsgym.errors import MisuseError, StageFailed
from soulsgym.game.keyboard import Keyboard
from soulsgym.game.titles.properties import wrapped
from soulsgym.game.waiting import TimeSource

TOLERANCE = 0.05
"""Radians, and metres of the unit vector's height, within which a direction is reached."""
MOST_PRESSES = 120
SHORTEST_S, LONGEST_S = 0.02, 0.15
"""A press lasts at least one tick of the game, and not so long that it goes far beyond."""
SECONDS_PER_ERROR = 0.1
SETTLE_S = 0.05
WRONG_WAY = 0.01
"""A press that turns so far away from the target shows that the player has reversed that axis."""

Direction = tuple[float, float, float]
AXES = (("cameraleft", "cameraright"), ("cameradown", "cameraup"))
"""Actions that lower and raise the bearing atan2(x, y), and the height, of the direction of view."""


class Turner:
    """Presses camera keys until the camera looks where it shall."""

    def __init__(self, keyboard: Keyboard, time: TimeSource, look: Callable[[], Direction]) -> None:
        self._keyboard, self._time, self._look = keyboard, time, look
        self._signs = [1.0, 1.0]

    def turn(self, wanted: Direction, speed: float) -> None:
        """Turn to a direction at the game's speed; StageFailed if it does not get there."""
        if speed <= 0.0:
            raise MisuseError("the camera cannot be turned while the game is paused: resume it first")
        wanted = unit(wanted)
        errors = self._errors(wanted)
        for _ in range(MOST_PRESSES):
            if max(map(abs, errors)) <= TOLERANCE:
                return
            self._press(errors, speed)
            errors = self._judged(errors, self._errors(wanted))
        if max(map(abs, errors)) > TOLERANCE:
            raise StageFailed(
                "camera",
                f"after {MOST_PRESSES} presses it is still {errors[0]:+.2f} rad and {errors[1]:+.2f} m off: "
                "check the camera keys and that nothing is locked on",
            )

    def _errors(self, wanted: Direction) -> list[float]:
        seen = unit(self._look())
        bearing = wrapped(math.atan2(wanted[0], wanted[1]) - math.atan2(seen[0], seen[1]))
        return [bearing, wanted[2] - seen[2]]

    def _press(self, errors: list[float], speed: float) -> None:
        """Both axes at once, each for as long as it is off."""
        presses = []
        for axis, error in enumerate(errors):
            if abs(error) > TOLERANCE:
                action = AXES[axis][error * self._signs[axis] > 0]
                presses.append((min(max(abs(error) * SECONDS_PER_ERROR, SHORTEST_S), LONGEST_S), action))
        presses.sort()
        try:
            for _, action in presses:
                self._keyboard.press(action)
            passed = 0.0
            for seconds, action in presses:
                self._time.sleep((seconds - passed) / speed)
                self._keyboard.release(action)
                passed = seconds
        finally:
            for action in {action for _, action in presses} & self._keyboard.held:
                self._keyboard.release(action)
        self._time.sleep(SETTLE_S / speed)

    def _judged(self, before: list[float], after: list[float]) -> list[float]:
        for axis in range(2):
            progress = math.copysign(1.0, before[axis]) * wrapped(before[axis] - after[axis])
            if abs(before[axis]) > TOLERANCE and progress < -WRONG_WAY:
                self._signs[axis] *= -1.0
        return after


def unit(direction: Direction) -> Direction:
    """The same direction with length 1."""
    length = math.hypot(*direction)
    if length < 1e-6:
        raise MisuseError(f"a camera cannot look along {direction!r}: give a direction that is not 0")
    return (direction[0] / length, direction[1] / length, direction[2] / length)
