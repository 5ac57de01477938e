"""Tests of turning the camera and keeping the lock."""

import dataclasses
import math

import pytest
from test_tracking import STANDING

from soulsgym.game.camera import CameraKeys, LockKeeper, cosine, view_to_boss


def seen(*, lock_on=False, view=(0.0, 1.0, 0.0), animation="Idle", boss=(132.0, 585.0, -68.0, 0.0)):
    return dataclasses.replace(
        STANDING, lock_on=lock_on, camera_pose=(0.0, 0.0, 0.0, *view), player_animation=animation,
        player_pose=(132.0, 575.0, -68.0, 0.0), boss_pose=boss,
    )  # fmt: skip


def test_the_way_to_the_boss_is_a_unit_vector():
    assert view_to_boss(seen()) == (0.0, 1.0, 0.0)
    assert math.hypot(*view_to_boss(seen(boss=(140.0, 569.0, -60.0, 0.0)))) == pytest.approx(1.0)
    assert cosine((0.6, 0.8, 0.0), (0.0, 1.0, 0.0)) == pytest.approx(0.8)


@pytest.mark.parametrize(
    ("view", "target", "keys"),
    [
        ((0.0, 1.0, 0.0), (1.0, 0.0, 0.0), ("cameraright",)),
        ((0.0, 1.0, 0.0), (-1.0, 0.0, 0.0), ("cameraleft",)),
        ((0.0, 1.0, 0.0), (0.2, 0.98, 0.0), ()),
        ((0.0, 1.0, 0.0), (0.0, 0.8, 0.6), ("cameraup",)),
        ((0.0, 0.8, 0.6), (0.0, 1.0, 0.0), ("cameradown",)),
        ((-0.1, -1.0, 0.0), (0.1, -1.0, 0.5), ("cameraup",)),  # across the seam behind
        ((-0.6, -0.8, 0.0), (0.6, -0.8, 0.0), ("cameraleft",)),
    ],
)
def test_the_nearer_way_round_is_taken(view, target, keys):
    assert CameraKeys().towards(view, target) == keys


def test_a_reversed_axis_is_learnt():
    camera, angle, pressed = CameraKeys(), 0.0, []
    for _ in range(40):
        keys = camera.towards((math.sin(angle), math.cos(angle), 0.0), (1.0, 0.0, 0.0))
        pressed.append(keys)
        if not keys:
            break
        angle -= 0.06 if "cameraright" in keys else -0.06
    assert pressed[0] == ("cameraright",)
    assert pressed[-1] == ()


def test_with_a_lock_nothing_is_pressed():
    aim = LockKeeper(CameraKeys()).aim(seen(lock_on=True))
    assert (aim.hold, aim.tap_lock) == ((), False)


@pytest.mark.parametrize("animation", ["ThrowAtk", "ThrowDef"])
def test_in_a_throw_the_lock_is_left_alone(animation):
    assert not LockKeeper(CameraKeys(), ("ThrowAtk", "ThrowDef")).aim(seen(animation=animation)).tap_lock


def test_the_key_is_pressed_every_fourth_step_when_the_boss_is_in_view():
    keeper = LockKeeper(CameraKeys())
    assert [keeper.aim(seen()).tap_lock for _ in range(9)] == [True, False, False, False] * 2 + [True]


def test_out_of_view_the_camera_is_turned_first():
    keeper = LockKeeper(CameraKeys())
    aim = keeper.aim(seen(view=(1.0, 0.0, 0.0)))
    assert (aim.hold, aim.tap_lock) == (("cameraleft",), False)
    assert keeper.aim(seen(view=(0.1, 0.99, 0.0))).tap_lock


def test_a_lock_that_came_back_forgets_the_waiting():
    keeper = LockKeeper(CameraKeys())
    assert keeper.aim(seen()).tap_lock
    keeper.aim(seen(lock_on=True))
    assert keeper.aim(seen()).tap_lock
