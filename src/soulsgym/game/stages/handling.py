"""What all stages do with a game: tap keys, wait for rest, turn the camera, measure distances."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from soulsgym.errors import ReadFailed

if TYPE_CHECKING:
    from soulsgym.game.reset import Setup
    from soulsgym.game.waiting import Waits
    from soulsgym.spec.game import Pose

TAP_S = 0.15
"""How long a key is held, in the game's seconds."""
POLL_S = 0.01
KEY_EFFECT_S = 1.0
"""A key that does anything has done it by then, in the game's seconds."""
STEADY_LOOKS = 3
VIEW_BEYOND = 0.15


def is_dead(setup: Setup) -> bool:
    """Has the player no health, or cannot be read because the game loads?"""
    try:
        return bool(setup.title.player_hp <= 0)
    except ReadFailed:
        return True


def tap(setup: Setup, action: str, waits: Waits, watch: Callable[[], bool] | None = None) -> None:
    """Press a key for a moment of the game's time."""
    keyboard = setup.game.keyboard
    keyboard.press(action)
    try:
        held_s = TAP_S / max(setup.speed, 1.0)
        if watch is None:
            waits.sleep(held_s)
        else:
            waits.comes_true(watch, limit_s=held_s, every_s=POLL_S)
    finally:
        keyboard.release(action)


def idle(setup: Setup, waits: Waits) -> None:
    """Wait until the player stands still."""
    waits.until(lambda: setup.body().animation == setup.names.idle, "the player does not come to rest", limit_s=8.0)


def turn_camera(setup: Setup, waits: Waits, target: Sequence[float]) -> None:
    """Turn the camera as far as it goes in a while; the fog wall can be passed without."""

    def turned() -> bool:
        keys = setup.camera.towards(setup.title.camera_pose[3:], target, VIEW_BEYOND)
        setup.game.keyboard.hold(keys)
        return not keys

    try:
        waits.comes_true(turned, limit_s=5.0)
    finally:
        setup.game.keyboard.hold(())


def steady(waits: Waits, condition: Callable[[], bool], failure: Callable[[], str], limit_s: float = 5.0) -> None:
    """Wait until something holds several looks in a row: a teleported player slides or falls first."""
    if not waits.comes_true(steadily(condition), limit_s=limit_s, every_s=POLL_S):
        raise waits.failed(failure())


def steadily(condition: Callable[[], bool]) -> Callable[[], bool]:
    """The same condition, true once it has held several times in a row."""
    looks = 0

    def holds() -> bool:
        nonlocal looks
        looks = looks + 1 if condition() else 0
        return looks >= STEADY_LOOKS

    return holds


def distance(pose: Sequence[float], place: Sequence[float]) -> float:
    """Metres between two places, headings left out."""
    return math.dist(pose[:3], place[:3])


def is_at(pose: Sequence[float], place: Pose, within_m: float, within_rad: float) -> bool:
    """Is somebody at a place, and turned as there?"""
    turned = abs(math.remainder(pose[3] - place[3], 2.0 * math.pi))
    return distance(pose, place) <= within_m and turned <= within_rad
