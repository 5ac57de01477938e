"""Elden Ring: every property of its interface."""

import math
import struct

import numpy as np
import pytest
from fake_window import FakeWindow

from soulsgym.errors import DataError, MisuseError, ReadFailed, StageFailed
from soulsgym.game.addresses import load_addresses, read_addresses
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.titles import TITLES, EldenRing, fight_title, watch_title
from soulsgym.game.titles.labels import load_labels, name_of
from soulsgym.game.titles.plausible import own_fields
from soulsgym.recordings.person import Watcher
from soulsgym.spec import load_fight
from soulsgym.state import Outcome


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


# ---- a fight that a person plays


def played(number, seconds=0.0, at=3):
    """A ring of animations of which this one plays, and the others have."""
    entries = [(number, seconds, seconds, 2.0) if one == at else (7000 + one, 1.0, 1.0, 2.0) for one in range(10)]
    return b"".join(struct.pack("<ifff", *entry) for entry in entries) + struct.pack("<2I", (at + 1) % 10, at)


@pytest.fixture
def fight(ring, rings):
    """Margit before the player, who rolls."""
    rings.set(
        PlayerAnimations=played(27100, 0.25), PlayerQ=(0.0, 0.0, 0.0, 1.0), MargitHP=4000, MargitMaxHP=4174,
        MargitXYZ=(-20.0, -7.0, -17.0), MargitQ=(0.0, math.sin(0.25), 0.0, math.cos(0.25)),
        MargitAnimations=played(2003021, 1.5, 9), PlayerLocalXYZ=(18.0, -7.0, -12.0),
    )  # fmt: skip
    return ring


def test_a_fight_is_seen_in_the_coordinates_of_the_arena(fight):
    sight = fight.look("margit")
    assert (sight.player_hp, sight.boss_hp, sight.boss_max_hp) == (300, 4000, 4174)
    assert sight.player_pose[:3] == (-12.0, -18.0, -7.0)
    assert sight.boss_pose[:3] == (-17.0, 20.0, -7.0)
    assert (sight.player_pose[3], sight.boss_pose[3]) == pytest.approx((math.pi / 2, math.pi / 2 + 0.5), abs=1e-6)
    assert (sight.player_animation, sight.player_animation_s) == ("RollingMedium", 0.25)
    assert (sight.boss_animation, sight.boss_animation_s) == ("Attack3021", 1.5)
    assert sight.lock_on
    assert math.hypot(*sight.camera_pose[3:]) == pytest.approx(1.0)
    glance = fight.glance("margit")
    assert (glance.time_ms, glance.boss_hp, glance.player_animation) == (5000, 4000, "RollingMedium")


def test_a_boss_who_is_not_loaded_is_not_seen_and_found_when_he_is(fight, rings):
    rings.list_characters()
    with pytest.raises(ReadFailed, match="Margit is none of the 2 characters that are loaded: not in game"):
        fight.look("margit")
    assert fight.boss_faults(load_fight("margit").watch) is None
    rings.list_characters("Margit", others=5)
    assert fight.look("margit").boss_hp == 4000


def test_a_boss_is_followed_to_where_he_is_loaded_again(fight, rings):
    assert fight.look("margit").boss_hp == 4000
    rings.move("MargitHP", 0)
    rings.list_characters("Margit")
    rings.set(MargitHP=3000)
    assert fight.look("margit").boss_hp == 3000
    assert fight.glance("margit").boss_hp == 3000


def test_another_character_in_his_place_is_not_taken_for_him(fight, rings):
    fight.look("margit")
    (character,) = struct.unpack("<Q", rings.process.get(rings.bases["Margit"], 8))
    rings.process.put(character + 0x64, struct.pack("<i", 4750))
    with pytest.raises(ReadFailed, match="none of the 3 characters"):
        fight.glance("margit")


@pytest.mark.parametrize("ends", [(0, 0), (0x7FF000000, 0x7FFFF0000), (0x7FF000010, 0x7FF000000)])
def test_a_list_that_can_be_none_is_no_game(fight, rings, ends):
    rings.set(CharactersByDistance=struct.pack("<2Q", *ends))
    with pytest.raises(ReadFailed, match="not in game"):
        fight.look("margit")


def test_a_ring_that_can_be_none_is_no_game(fight, rings):
    rings.set(MargitAnimations=played(2003000)[:-4] + struct.pack("<I", 12))
    with pytest.raises(ReadFailed, match="animation 12 of 10 plays"):
        fight.look("margit")


@pytest.mark.parametrize(
    ("who", "number", "name"),
    [
        ("player", 5231, "DamageMiddle"), ("player", 5450, "DamageExLarge"), ("player", 10020100, "Move"),
        ("player", 123, "123"), ("boss", 2003039, "Attack3039"), ("boss", 2006002, "Step6002"),
        ("boss", 2002000, "WalkFrontBattle"), ("boss", 2009000, "2009000"),
    ],
)  # fmt: skip
def test_numbers_of_animations_have_the_names_of_the_tables(who, number, name):
    assert name_of(getattr(load_labels("eldenring"), who), number) == name


def test_every_label_is_in_the_tables_of_animations():
    spec, labels = load_fight("margit"), load_labels("eldenring")
    assert {one.name for one in labels.player} <= {one.name for one in spec.player_animations}
    assert {one.name for one in labels.boss if one.less is None} <= set(spec.boss_animations)
    numbers = [int(name.removeprefix("Attack")) for name in spec.boss_animations if name.startswith("Attack")]
    assert all(name_of(labels.boss, 2_000_000 + number) == f"Attack{number}" for number in numbers)


def test_a_fight_is_watched_and_what_would_be_needed_to_play_it_is_said(fight):
    assert watch_title(fight) is fight
    with pytest.raises(MisuseError, match="EldenRing cannot be fought in yet: its data lack the way to the boss"):
        fight_title(fight)


def test_what_cannot_be_true_of_a_boss_is_told(fight, rings):
    plan = load_fight("margit").watch
    assert fight.boss_faults(plan) == []
    rings.set(MargitHP=5000, MargitQ=(0.0, 0.5, 0.0, 0.5))
    assert fight.boss_faults(plan) == [
        "Margit, the Fell Omen has 5000 of 4174 HP",
        "the quaternion by which Margit, the Fell Omen is turned has length 0.71 and not 1",
    ]


def test_fields_of_a_boss_are_none_of_the_character(fight):
    assert not [name for name in own_fields(fight.pointers, "eldenring") if name.startswith("Margit")]
    assert "PlayerAnimations" in own_fields(fight.pointers, "eldenring")


def test_a_fight_of_a_person_becomes_records(fight, rings):
    watcher = Watcher(load_fight("margit").watch, fight)
    watcher.begin(fight.look("margit"))
    for tick in range(1, 25):
        rings.set(
            Time=5000 + round(1000 * tick / 60), MargitHP=4000 - 50 * (tick > 10), PlayerHP=300 - 100 * (tick > 18),
            PlayerAnimations=played(5201 if tick > 18 else 27100, tick / 60),
            MargitAnimations=played(2003000, tick / 60),
        )  # fmt: skip
        assert watcher.look() is Outcome.RUNNING
    assert [int(record["step"]) for record in watcher.records] == [0, 1, 2, 3, 4]
    assert sum(float(record["damage_dealt"]) for record in watcher.records) == 50.0
    last = watcher.records[-1]
    names = load_fight("margit").watch.boss_animations
    assert (float(last["player_hp"][0]), names[last["boss_animation"]]) == (200.0, "Attack3000")
    assert watcher.unknown == {}


def test_a_character_needs_the_list_of_those_who_are_loaded(tmp_path):
    file = tmp_path / "addresses.toml"
    text = load_addresses.__wrapped__.__globals__["_data_file"]("eldenring", "addresses.toml").read_text()
    before, _, rest = text.partition("[characters]")
    file.write_text(before + rest[rest.index("[base.Margit]") :])
    with pytest.raises(DataError, match=r"base.Margit.character = 2130: needs a table \[characters\]"):
        read_addresses(file, "eldenring")
    file.write_text(text.replace('field = "CharactersByDistance"', 'field = "Time"'))
    with pytest.raises(DataError, match=r"characters.field = 'Time': must be a field of type bytes16"):
        read_addresses(file, "eldenring")
