"""Dark Souls III: every property, what is written and what stays, and looks at a fight."""

import math

import numpy as np
import pytest
from fake_process import KNIGHT, FakeProcess, LaidOut
from fake_window import FakeWindow

from soulsgym.errors import GameGone, MisuseError, ReadFailed, SpeedControlError
from soulsgym.game.addresses import load_addresses
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.titles import TITLES, DarkSoulsIII

SWITCHES = {
    "allow_player_death": "PlayerNoDeath",
    "allow_deaths": "AllNoDeath",
    "allow_hits": "AllNoHit",
    "allow_attacks": "AllNoAttack",
    "allow_moves": "AllNoMove",
    "allow_weapon_durability_dmg": "AllNoDurabilityLoss",
}


def same(pose, *numbers):
    assert pose.dtype == np.float64
    np.testing.assert_allclose(pose, numbers, atol=1e-6)
    return True


def test_the_title_is_known_by_its_names():
    assert TITLES["darksouls3"] is DarkSoulsIII
    assert (DarkSoulsIII.game_id, DarkSoulsIII.process_name) == ("DarkSoulsIII", "DarkSoulsIII.exe")


SOULSGYM_NAMES = """img img_resolution window_resolution screen_mode player_hp player_sp player_max_hp player_max_sp
    reset_player_hp reset_player_sp player_pose player_animation player_animation_time player_animation_max_time
    allow_player_death player_stats player_frost_resistance player_frost_effect iudex_flags vordt_flags iudex_hp
    vordt_hp iudex_max_hp vordt_max_hp reset_boss_hp iudex_pose vordt_pose iudex_animation
    vordt_animation iudex_animation_time iudex_animation_max_time vordt_animation_time vordt_animation_max_time
    iudex_attacks vordt_attacks camera_pose last_bonfire allow_attacks allow_hits allow_moves allow_deaths
    allow_weapon_durability_dmg lock_on lock_on_bonus_range los_lock_on_deactivate_time time timed sleep game_speed
    pause resume gravity is_ingame reload clear_cache look glance remember put_back die"""


def test_every_property_of_soulsgym_is_there():
    names = SOULSGYM_NAMES.split()
    assert [name for name in names if not hasattr(DarkSoulsIII, name)] == []
    assert all(getattr(DarkSoulsIII, name).__doc__ for name in names)


# ---- plain values


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("player_hp", 454, int), ("player_max_hp", 454, int), ("player_sp", 95, int), ("player_max_sp", 95, int),
        ("player_animation", "Idle", str), ("player_animation_time", 0.25, float),
        ("player_animation_max_time", 2.5, float),
        ("player_frost_resistance", 0.5, float), ("player_frost_effect", 0.5, float), ("gravity", True, bool),
        ("lock_on", True, bool), ("lock_on_bonus_range", 0.0, float), ("los_lock_on_deactivate_time", 2.0, float),
        ("screen_mode", "window", str), ("iudex_hp", 1037, int), ("iudex_max_hp", 1037, int),
        ("iudex_animation", "Attack3001", str), ("iudex_animation_time", 0.5, float),
        ("iudex_animation_max_time", 1.5, float),
        ("iudex_attacks", True, bool), ("vordt_hp", 1328, int), ("vordt_max_hp", 1328, int),
        ("vordt_animation", "IdleBattle", str), ("vordt_animation_time", 0.75, float),
        ("vordt_animation_max_time", 4.0, float), ("vordt_attacks", True, bool), ("last_bonfire", "Iudex Gundyr", str),
        ("time", 1_000_000, int), ("game_speed", 1.0, float), ("is_ingame", True, bool), ("iudex_flags", True, bool),
        ("vordt_flags", True, bool), ("window_resolution", (800, 450), tuple),
    ],
)  # fmt: skip
def test_a_value_is_read_with_its_type(game, name, value, kind):
    assert getattr(game, name) == value
    assert type(getattr(game, name)) is kind


@pytest.mark.parametrize(
    ("name", "value", "field", "stored"),
    [
        ("player_hp", 12, "PlayerHP", 12), ("player_hp", 0, "PlayerHP", 0), ("player_sp", -20, "PlayerSP", -20),
        ("iudex_hp", 3, "IudexHP", 3), ("vordt_hp", np.int64(4), "VordtHP", 4),
        ("lock_on_bonus_range", 30.0, "LockOnBonusRange", 30.0),
        ("los_lock_on_deactivate_time", 100, "LoSLockOnTime", 100.0),
        ("screen_mode", "fullscreen", "ScreenMode", 1), ("time", 3_000_000_000, "Time", 3_000_000_000),
        ("player_frost_resistance", 0.25, "PlayerFrostResistance", 35),
    ],
)  # fmt: skip
def test_a_value_is_written_and_seen_again(game, souls, name, value, field, stored):
    setattr(game, name, value)
    assert souls.get(field) == stored
    assert getattr(game, name) == value


@pytest.mark.parametrize(
    "name",
    ["player_max_hp", "player_max_sp", "player_animation", "player_frost_effect", "lock_on",
     "player_animation_time", "iudex_max_hp", "vordt_animation_time"],
)  # fmt: skip
def test_what_cannot_be_set_says_so_and_why(game, souls, name):
    with pytest.raises(MisuseError, match=f"{name} cannot be set: "):
        setattr(game, name, 1)
    assert souls.process.writes == []


@pytest.mark.parametrize(
    ("name", "value"),
    [("player_hp", -1), ("player_hp", 1.5), ("player_hp", True), ("iudex_hp", -5), ("time", -1), ("time", 1 << 32),
     ("lock_on_bonus_range", math.nan), ("player_frost_resistance", 1.5), ("screen_mode", "borderless"),
     ("window_resolution", (800, 0)), ("window_resolution", (800.5, 450)), ("window_resolution", (800,))],
)  # fmt: skip
def test_a_value_that_cannot_be_is_refused_and_nothing_written(game, souls, name, value):
    with pytest.raises(MisuseError):
        setattr(game, name, value)
    assert souls.process.writes == []


@pytest.mark.parametrize(("name", "field"), SWITCHES.items())
def test_a_permission_is_the_opposite_of_its_flag_and_only_its_bit_is_written(game, souls, name, field):
    souls.set(**{field: 0xF0})
    assert getattr(game, name) is True
    setattr(game, name, False)
    assert souls.get(field) == 0xF1
    assert getattr(game, name) is False
    setattr(game, name, True)
    assert souls.get(field) == 0xF0


@pytest.mark.parametrize(
    ("name", "field"), [("gravity", "noGravity"), ("iudex_attacks", "IudexAttacks"), ("vordt_attacks", "VordtAttacks")]
)
def test_bit_six_forbids_and_its_neighbours_stay(game, souls, name, field):
    souls.set(**{field: 0b1000_0001})
    setattr(game, name, False)
    assert souls.get(field) == 0b1100_0001
    assert getattr(game, name) is False
    setattr(game, name, True)
    assert souls.get(field) == 0b1000_0001


def test_a_play_time_of_six_hundred_hours_is_positive(game, souls):
    souls.set(Time=600 * 3600 * 1000)
    assert game.time == 2_160_000_000


def test_hp_and_stamina_are_filled(game, souls):
    souls.set(PlayerHP=1, PlayerSP=-5, IudexHP=2, VordtHP=3)
    game.reset_player_hp()
    game.reset_player_sp()
    game.reset_boss_hp("iudex")
    game.reset_boss_hp("vordt")
    assert (game.player_hp, game.player_sp, game.iudex_hp, game.vordt_hp) == (454, 95, 1037, 1328)


def test_an_unknown_boss_suggests_one(game):
    with pytest.raises(MisuseError, match="did you mean 'iudex'"):
        game.look("iudx")
    with pytest.raises(MisuseError, match="did you mean 'vordt'"):
        game.reset_boss_hp("vort")


def test_frost_is_taken_away(game, souls):
    game.clear_statuses()
    assert souls.get("PlayerFrostResistance") == 140


def test_frost_without_a_maximum_is_none_at_all(game, souls):
    souls.set(PlayerFrostResistanceMax=0)
    assert game.player_frost_resistance == 1.0


def test_attributes_are_written_and_seen_again(game, souls):
    values = (9, 12, 10, 11, 15, 13, 12, 9, 9, 7)
    game.player_stats = values
    assert game.player_stats == values
    block = souls.get("PlayerStats")
    assert block[0x2C] == 9  # soul level
    assert block[0x28] == 15  # vitality
    assert [block[at] for at in range(0, 0x20, 4)] == [12, 10, 11, 13, 12, 9, 9, 7]
    assert block[0x20:0x28] == bytes(8), "what lies between is not ours"


@pytest.mark.parametrize("values", [(9,), (9, 12, 10, 11, 15, 13, 12, 9, 9, 100), (0, 12, 10, 11, 15, 13, 12, 9, 9, 7)])
def test_attributes_that_the_game_does_not_allow_are_named(game, souls, values):
    with pytest.raises(MisuseError, match=r"Luck|Soul Level"):
        game.player_stats = values
    assert souls.process.writes == []


def test_the_window_has_width_and_height(game, souls):
    game.window_resolution = (1280, 720)
    assert (souls.get("WindowScreenWidth"), souls.get("WindowScreenHeight")) == (1280, 720)


# ---- poses


def test_poses_have_height_as_their_third_number(game):
    assert same(game.player_pose, 132.0, 575.0, -68.0, 1.5)
    assert same(game.iudex_pose, 141.0, 592.0, -68.5, 0.5)
    assert same(game.vordt_pose, 27.0, 2.0, -25.0, 3.0)
    assert same(game.camera_pose, 133.0, 571.0, -66.0, 0.0, 1.0, -0.25)


@pytest.mark.parametrize(
    ("stored", "read"), [(3.5, 3.5 - math.tau), (-4.0, math.tau - 4.0), (9 * math.pi, math.pi), (0.0, 0.0)]
)
def test_headings_are_wrapped_when_read(game, souls, stored, read):
    souls.set(PlayerA=stored)
    assert abs(math.remainder(game.player_pose[3] - read, math.tau)) < 1e-5
    assert -math.pi - 1e-6 <= game.player_pose[3] <= math.pi + 1e-6


def test_the_player_is_moved_in_one_write_without_gravity_or_death(game, souls):
    seen = []
    where = {souls.addresses[name]: name for name in ("PlayerX", "PlayerA", "noGravity", "PlayerNoDeath", "PlayerHP")}
    souls.process.before_write = lambda address, data: seen.append((where[address], data))
    game.player_pose = (1.0, 2.0, 3.0, 4.0)
    assert [name for name, _ in seen] == [
        "PlayerNoDeath", "noGravity", "PlayerX", "PlayerA", "noGravity", "PlayerNoDeath",
    ]  # fmt: skip
    assert len(seen[2][1]) == 12
    assert souls.get("PlayerX") == (1.0, 3.0, 2.0)
    assert souls.get("PlayerA") == pytest.approx(4.0 - math.tau)
    assert (souls.get("noGravity"), souls.get("PlayerNoDeath")) == (0, 0)


def test_moving_the_player_does_not_heal_him_unless_asked(game, souls):
    souls.set(PlayerHP=5)
    game.player_pose = (1, 2, 3, 0)
    assert souls.get("PlayerHP") == 5
    game.move_player((1, 2, 3, 0), heal=True)
    assert souls.get("PlayerHP") == 454


def test_flags_are_as_before_the_player_was_moved(game, souls):
    souls.set(PlayerNoDeath=1, noGravity=0x41)
    game.player_pose = (1, 2, 3, 0)
    assert (souls.get("PlayerNoDeath"), souls.get("noGravity")) == (1, 0x41)


def test_flags_are_restored_if_the_move_fails(game, souls):
    def fail(address, data):
        if address == souls.addresses["PlayerX"]:
            raise ReadFailed(address, "cannot be written")

    souls.process.before_write = fail
    with pytest.raises(ReadFailed, match="cannot be written"):
        game.player_pose = (1, 2, 3, 0)
    assert (souls.get("PlayerNoDeath"), souls.get("noGravity")) == (0, 0)


def test_a_player_who_vanishes_during_the_move_leaves_the_flag_as_it_was(game, souls):
    def vanish(address, data):
        if address == souls.addresses["PlayerX"]:
            souls.cut("PlayerHP", 1)

    souls.process.before_write = vanish
    game.player_pose = (1, 2, 3, 0)
    assert souls.get("PlayerNoDeath") == 0


@pytest.mark.parametrize("pose", [(1, 2, 3), (1, 2, 3, math.nan), (1, 2, 3, math.inf), "abcd", None, (1, 2, 3, 4, 5)])
def test_a_pose_that_is_none_is_refused_and_nothing_written(game, souls, pose):
    for name in ("player_pose", "iudex_pose", "vordt_pose"):
        with pytest.raises(MisuseError, match=name):
            setattr(game, name, pose)
    assert souls.process.writes == []


def test_a_boss_is_moved_while_the_game_stands_still(game, souls, clock):
    clock.speed = 3.0
    speeds = []
    souls.process.before_write = lambda address, data: speeds.append(clock.speed)
    game.iudex_pose = np.array([1.0, 2.0, 3.0, -1.0])
    game.vordt_pose = (4.0, 5.0, 6.0, 7.0)
    assert souls.get("IudexPoseX") == (1.0, 3.0, 2.0)
    assert souls.get("VordtPoseX") == (4.0, 6.0, 5.0)
    assert same(game.vordt_pose, 4, 5, 6, 7 - math.tau)
    assert speeds == [0.0] * 4
    assert clock.speeds == [0.0, 3.0, 0.0, 3.0]


def test_a_boss_of_a_paused_game_is_moved_and_the_game_stays_paused(game, clock):
    clock.speed = 0.0
    game.iudex_pose = (1, 2, 3, 0)
    assert clock.speeds == []


def test_speed_comes_back_if_moving_a_boss_fails(game, souls, clock):
    souls.cut("IudexHP", 1)
    with pytest.raises(ReadFailed):
        game.iudex_pose = (1, 2, 3, 0)
    assert clock.speed == 1.0


def test_without_a_clock_a_boss_is_moved_all_the_same(souls):
    game = DarkSoulsIII(ProcessMemory(souls.process))
    game.iudex_pose = (1, 2, 3, 0)
    assert souls.get("IudexPoseX") == (1.0, 3.0, 2.0)


# ---- story and bonfires


@pytest.mark.parametrize(
    ("fields", "ready"),
    [
        ({}, True),
        ({"IudexFlags": 0x7F}, True),
        ({"IudexFlags": 0xE0}, False),
        ({"IudexFlags": 0x40}, False),
        ({"IudexFlags": 0x20}, False),
        ({"FirelinkShrineGates": 0x08}, False),
        ({"FirelinkShrineGates": 0xF7}, True),
        ({"UntendedGravesFlag": 0x0A}, False),
    ],
)
def test_iudex_can_be_fought_if_all_flags_say_so(game, souls, fields, ready):
    souls.set(**fields)
    assert game.iudex_flags is ready


def test_iudex_is_made_ready_bit_by_bit(game, souls):
    souls.set(IudexFlags=0b1001_0011, FirelinkShrineGates=0b1111_1111, UntendedGravesFlag=0x0A)
    game.iudex_flags = True
    assert (souls.get("IudexFlags"), souls.get("FirelinkShrineGates")) == (0b0111_0011, 0b1111_0111)
    assert souls.get("UntendedGravesFlag") == 0
    assert game.iudex_flags is True


def test_iudex_is_made_a_stranger(game, souls):
    souls.set(IudexFlags=0b1111_0011)
    game.iudex_flags = False
    assert souls.get("IudexFlags") == 0b0001_0011
    assert game.iudex_flags is False


@pytest.mark.parametrize(("byte", "ready"), [(0x40, True), (0xC0, False), (0x00, False), (0x7F, True)])
def test_vordt_can_be_fought_if_met_and_not_defeated(game, souls, byte, ready):
    souls.set(VordtFlags=byte)
    assert game.vordt_flags is ready


def test_vordts_flags_are_written_as_bits(game, souls):
    souls.set(VordtFlags=0x85)
    game.vordt_flags = True
    assert souls.get("VordtFlags") == 0x45
    game.vordt_flags = False
    assert souls.get("VordtFlags") == 0x05


@pytest.mark.parametrize(
    ("name", "number", "variant"),
    [("Firelink Shrine", 4002950, 0), ("Untended Graves", 4002953, 0x0A), ("Champion Gundyr", 4002954, 0x0A)],
)
def test_a_bonfire_is_set_with_the_variant_of_the_map_it_needs(game, souls, name, number, variant):
    souls.set(UntendedGravesFlag=0x0A - variant)
    game.last_bonfire = name
    assert (souls.get("LastBonfire"), souls.get("UntendedGravesFlag")) == (number, variant)
    assert game.last_bonfire == name


def test_a_bonfire_that_no_table_has_is_named(game, souls):
    souls.set(LastBonfire=123)
    with pytest.raises(ReadFailed, match="123"):
        _ = game.last_bonfire
    with pytest.raises(MisuseError, match="did you mean 'Firelink Shrine'"):
        game.last_bonfire = "Firelink Shrin"
    assert souls.process.writes == []


# ---- looks


def test_a_sight_has_everything_in_one_call(game, souls):
    game.look("iudex")
    calls = souls.process.calls
    sight = game.look("iudex")
    assert souls.process.calls - calls == 1
    assert sight.time_ms == 1_000_000
    assert (sight.player_hp, sight.player_max_hp, sight.player_sp, sight.player_max_sp) == (454, 454, 95, 95)
    assert (sight.boss_hp, sight.boss_max_hp) == (1037, 1037)
    assert sight.player_pose == (132.0, 575.0, -68.0, 1.5)
    assert sight.boss_pose == (141.0, 592.0, -68.5, 0.5)
    assert sight.camera_pose == (133.0, 571.0, -66.0, 0.0, 1.0, -0.25)
    assert (sight.player_animation, sight.boss_animation) == ("Idle", "Attack3001")
    assert (sight.player_animation_s, sight.boss_animation_s) == (0.25, 0.5)
    assert sight.lock_on is True
    assert dict(zip(game.statuses, sight.statuses, strict=True)) == {"frost_resistance": 0.5, "frost_effect": 0.5}


def test_vordt_is_seen_as_well(game):
    sight = game.look("vordt")
    assert (sight.boss_hp, sight.boss_pose, sight.boss_animation) == (1328, (27.0, 2.0, -25.0, 3.0), "IdleBattle")
    assert sight.boss_animation_s == 0.75


def test_a_sight_says_what_the_properties_say(game):
    sight = game.look("iudex")
    assert sight.player_pose == tuple(game.player_pose)
    assert sight.boss_pose == tuple(game.iudex_pose)
    assert sight.camera_pose == tuple(game.camera_pose)
    assert sight.boss_animation == game.iudex_animation
    assert sight.statuses[0] == game.player_frost_resistance


def test_a_glance_is_one_call_and_minds_no_tick(game, souls):
    game.glance("iudex")
    souls.process.before_span = lambda number, span: souls.set(Time=souls.get("Time") + 16)
    calls = souls.process.calls
    glance = game.glance("iudex")
    assert souls.process.calls - calls == 1
    assert (glance.player_hp, glance.boss_hp) == (454, 1037)
    assert (glance.player_animation, glance.boss_animation) == ("Idle", "Attack3001")
    assert glance.time_ms > 1_000_000


@pytest.mark.parametrize(
    ("name", "first", "second", "seen"),
    [
        ("Attack3001", 3001, -1, "Attack3001"),
        ("Attack3001", -1, -1, "IdleBattle"),
        ("SABlend_Small", 3007, 5, "Attack3007"),
        ("SABlend_Small", -1, 3008, "Attack3008"),
        ("SABlend_Small", -1, -1, "IdleBattle"),
        ("PartBlend", 0, -1, "Attack0"),
        ("WalkFrontBattle", 3001, -1, "WalkFrontBattle"),
        ("", 3001, -1, ""),
    ],
)
def test_what_a_boss_does_is_put_right(game, souls, name, first, second, seen):
    souls.set(IudexAnimation=name, IudexAttackID=first, IudexAttackID2=second)
    souls.set(VordtAnimation=name, VordtAttackID=first, VordtAttackID2=second)
    assert game.iudex_animation == game.vordt_animation == seen
    assert game.look("iudex").boss_animation == game.glance("iudex").boss_animation == seen


@pytest.mark.parametrize(
    "fields",
    [
        {"PlayerHP": 455},
        {"PlayerHP": -2},
        {"PlayerMaxHP": 0, "PlayerHP": 0},
        {"IudexHP": -2},
        {"PlayerX": (math.nan, 0.0, 0.0)},
        {"PlayerA": math.inf},
        {"IudexPoseX": (0.0, math.inf, 0.0)},
        {"CamQx": (math.nan,) * 7},
    ],
)
def test_a_sight_that_cannot_be_true_means_not_in_game(game, souls, fields):
    souls.set(**fields)
    with pytest.raises(ReadFailed, match="not in game"):
        game.look("iudex")


def test_the_doubtful_maximum_of_iudex_is_not_believed(game, souls):
    souls.set(IudexMaxHP=0)
    assert game.look("iudex").boss_hp == 1037


def test_a_skipped_float_of_the_camera_may_be_anything(game, souls):
    souls.set(CamQx=(0.0, -0.25, 1.0, math.nan, 133.0, -66.0, 571.0))
    assert game.look("iudex").camera_pose == (133.0, 571.0, -66.0, 0.0, 1.0, -0.25)


def test_not_in_game_while_pointers_are_null(game, souls):
    assert game.is_ingame
    mend = souls.cut("PlayerHP", 1)
    assert not game.is_ingame
    with pytest.raises(ReadFailed, match="not in game"):
        game.look("iudex")
    mend()
    assert game.is_ingame
    souls.set(PlayerHP=9999)
    assert not game.is_ingame


def test_a_game_that_ended_is_gone_and_not_out_of_game(game, souls):
    souls.process.gone = True
    with pytest.raises(GameGone):
        _ = game.is_ingame


def test_after_a_load_looks_see_the_new_objects(game, souls):
    game.look("iudex")
    souls.move("PlayerHP", 1)
    souls.move("IudexHP", 3)
    souls.set(PlayerHP=77, IudexHP=88)
    sight = game.look("iudex")
    assert (sight.player_hp, sight.boss_hp) == (77, 88)
    game.clear_cache()
    assert game.look("iudex") == sight


def test_two_games_never_mix():
    table = load_addresses("darksouls3")
    laid = [LaidOut(table, FakeProcess(pid), heap=0x100000000 * pid) for pid in (3, 5)]
    for one in laid:
        one.set(**KNIGHT)
    first, second = (DarkSoulsIII(ProcessMemory(one.process)) for one in laid)
    first.player_hp = 11
    second.player_hp = 22
    first.allow_hits = False
    assert (first.player_hp, second.player_hp, second.allow_hits) == (11, 22, True)
    assert (first.look("iudex").player_hp, second.look("iudex").player_hp) == (11, 22)


# ---- speed, keeping, picture


def test_speed_is_the_clocks(game, clock):
    game.pause()
    assert game.game_speed == 0.0
    game.resume()
    game.game_speed = 2.5
    assert clock.speeds == [0.0, 1.0, 2.5]


@pytest.mark.parametrize("factor", [-1.0, math.nan, math.inf])
def test_a_speed_that_cannot_be_is_refused(game, clock, factor):
    with pytest.raises(MisuseError, match="speed"):
        game.game_speed = factor
    assert clock.speeds == []


def test_without_a_clock_the_speed_is_one_and_cannot_be_set(souls):
    game = DarkSoulsIII(ProcessMemory(souls.process))
    assert game.game_speed == 1.0
    for action in (game.pause, game.resume):
        with pytest.raises(SpeedControlError, match="speed control"):
            action()


def test_what_was_remembered_is_put_back_and_the_games_own_bits_stay(game, souls):
    souls.set(AllNoHit=1, LockOnBonusRange=1.5, noGravity=0x03)
    saved = game.remember()
    for name in SWITCHES:
        setattr(game, name, name == "allow_hits")
    game.lock_on_bonus_range, game.los_lock_on_deactivate_time, game.gravity = 50.0, 99.0, False
    souls.set(noGravity=0x44)  # the game has changed what is its own
    game.put_back(saved)
    assert [souls.get(field) for field in SWITCHES.values()] == [0, 0, 1, 0, 0, 0]
    assert (souls.get("LockOnBonusRange"), souls.get("LoSLockOnTime"), souls.get("noGravity")) == (1.5, 2.0, 0x04)


def test_remembering_is_one_call_once_the_way_is_known(game, souls):
    game.remember()
    calls = souls.process.calls
    game.remember()
    assert souls.process.calls - calls == 1


def test_one_value_that_cannot_be_put_back_does_not_keep_the_others(game, souls):
    saved = game.remember()
    game.allow_hits, game.los_lock_on_deactivate_time = False, 99.0
    souls.cut("LockOn", 0)
    with pytest.raises(ReadFailed):
        game.put_back(saved)
    assert souls.get("AllNoHit") == 0


def test_the_picture_is_that_of_the_window(souls):
    window = FakeWindow()
    game = DarkSoulsIII(ProcessMemory(souls.process), window=window)
    assert game.img_resolution == (90, 160)
    assert game.img.shape == (90, 160, 3)
    game.img_resolution = (45, 80)
    assert game.img.shape == (45, 80, 3)
    assert game.img_resolution == (45, 80)
    with pytest.raises(MisuseError, match="0 x 80"):
        game.img_resolution = (0, 80)


def test_without_a_window_there_is_no_picture(game):
    with pytest.raises(MisuseError, match="no window"):
        _ = game.img


def test_an_untouched_game_forbids_nothing(souls):
    game = DarkSoulsIII(ProcessMemory(souls.process))
    game.allow_deaths = game.allow_hits = game.gravity = False
    game.lock_on_bonus_range = 45.0
    game.put_back(game.untouched())
    assert game.allow_deaths
    assert game.allow_hits
    assert game.gravity
    assert game.lock_on_bonus_range == 0.0
    assert game.los_lock_on_deactivate_time == 2.0
    assert set(game.untouched().values) == set(DarkSoulsIII.kept)
