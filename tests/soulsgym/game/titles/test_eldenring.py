"""Elden Ring: every property of its interface."""

import math

import numpy as np
import pytest
from fake_window import FakeWindow

from soulsgym.errors import MisuseError, StageFailed
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.titles import TITLES, EldenRing


def test_the_title_is_known_by_its_names():
    assert TITLES["eldenring"] is EldenRing
    assert (EldenRing.game_id, EldenRing.process_name) == ("EldenRing", "eldenring.exe")


SOULSGYM_NAMES = """img img_resolution player_hp player_sp player_mp player_max_hp player_max_sp player_max_mp
    reset_player_hp reset_player_sp reset_player_mp player_pose player_animation allow_player_death player_stats
    camera_pose last_bonfire lock_on gravity allow_weapon_durability_dmg is_ingame time timed sleep game_speed
    reload pause resume clear_cache"""


def test_every_property_of_soulsgym_is_there():
    names = SOULSGYM_NAMES.split()
    assert [name for name in names if not hasattr(EldenRing, name)] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("player_hp", 300), ("player_max_hp", 400), ("player_sp", 80), ("player_max_sp", 90), ("player_mp", 20),
        ("player_max_mp", 50), ("player_animation", "3000"), ("allow_player_death", True), ("gravity", True),
        ("lock_on", True), ("time", 5000), ("is_ingame", True), ("last_bonfire", "Limgrave - The First Step"),
        ("allow_weapon_durability_dmg", False), ("game_speed", 1.0),
    ],
)  # fmt: skip
def test_a_value_is_read(ring, name, value):
    assert getattr(ring, name) == value


def test_points_are_filled(ring):
    ring.reset_player_hp()
    ring.reset_player_sp()
    ring.reset_player_mp()
    assert (ring.player_hp, ring.player_sp, ring.player_mp) == (400, 90, 50)


def test_the_pose_is_that_in_the_world(ring):
    np.testing.assert_allclose(ring.player_pose, [10.0, 20.0, 5.0, 4.0 - math.tau], atol=1e-6)
    assert ring.player_pose.dtype == np.float64


def test_the_player_moves_within_his_chunk_by_the_same_distance(ring, rings):
    ring.player_pose = (11.0, 22.0, 8.0, 0.0)
    # x by 1, height by 3, y by 2; stored as x, height, y.
    assert rings.get("PlayerLocalXYZ") == (2.0, 5.0, 5.0)
    assert [address for address, _ in rings.process.writes] == [rings.addresses["PlayerLocalXYZ"]]


def test_the_camera_is_relative_to_its_chunk(ring):
    np.testing.assert_allclose(ring.camera_pose, [70.0, 190.0, 30.0, 0.6, 0.8, 0.0], atol=1e-6)


@pytest.mark.parametrize(("name", "field"), [("gravity", "PlayerGravity"), ("allow_player_death", "AllowPlayerDeath")])
def test_permissions_are_written_as_bits(ring, rings, name, field):
    rings.set(**{field: 0x80})
    setattr(ring, name, False)
    assert rings.get(field) == 0x81
    assert getattr(ring, name) is False
    setattr(ring, name, True)
    assert rings.get(field) == 0x80


def test_attributes_are_written_and_seen_again(ring):
    ring.player_stats = (9, 15, 10, 11, 14, 13, 9, 9, 7)
    assert ring.player_stats == (9, 15, 10, 11, 14, 13, 9, 9, 7)
    with pytest.raises(MisuseError, match="Arcane"):
        ring.player_stats = (9, 15, 10, 11, 14, 13, 9, 9, 0)


def test_a_grace_with_two_ids_is_read_by_both(ring, rings):
    rings.set(LastGrace=34122952)
    assert ring.last_bonfire == "Capital Outskirts - Divine Tower of West Altus"
    ring.last_bonfire = ring.last_bonfire
    assert rings.get("LastGrace") == 34122950


def test_weapons_do_not_wear_out(ring):
    ring.allow_weapon_durability_dmg = False
    with pytest.raises(MisuseError, match="wear out"):
        ring.allow_weapon_durability_dmg = True


def test_pause_resume_and_speed_work(ring, clock):
    ring.pause()
    ring.resume()
    ring.game_speed = 2.0
    assert clock.speeds == [0.0, 1.0, 2.0]


def test_the_resolution_of_the_picture_can_be_read_and_set(rings):
    ring = EldenRing(ProcessMemory(rings.process), window=FakeWindow())
    ring.img_resolution = (30, 40)
    assert ring.img_resolution == (30, 40)
    assert ring.img.shape == (30, 40, 3)


def test_what_was_remembered_is_put_back(ring, rings):
    saved = ring.remember()
    ring.gravity = ring.allow_player_death = False
    ring.put_back(saved)
    assert (rings.get("PlayerGravity"), rings.get("AllowPlayerDeath")) == (0, 0)


def test_reload_waits_until_the_player_is_back(ring, rings, passing):
    mends = []

    def respawn(seconds):
        if passing.seconds > 2.0 and not mends and rings.get("PlayerHP") == 0:
            mends.append(rings.cut("PlayerHP", 1))
        elif passing.seconds > 5.0 and len(mends) == 1:
            mends.pop()()
            mends.extend([None, None])
            rings.set(PlayerHP=400)

    passing.each = respawn
    ring.reload()
    assert ring.player_hp == 400


def test_a_reload_that_gets_nowhere_ends(ring, passing):
    with pytest.raises(StageFailed, match="does not die"):
        ring.reload()
    assert passing.seconds < 60
