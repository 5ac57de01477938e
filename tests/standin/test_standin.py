"""The stand-in is what it claims to be: the game's memory, keys, clock and fight, and its failures on demand."""

from __future__ import annotations

import math
import struct
import time
from pathlib import Path

import pytest
import standin_kit
from standin_kit import (
    SCREENS,
    SOURCES,
    WAIT_LIMIT_S,
    NotThere,
    NoWindow,
    Standin,
    StandinError,
    XKeys,
    date_of,
    rate_of,
)  # fmt: skip

from soulsgym.spec import load_fight

pytest.importorskip("Xlib", reason="keys are pressed through X")
pytestmark = pytest.mark.wine

W, SPACE, L = 0x57, 0x20, 0x4C
DINPUT = SOURCES.index("dinput")
LONG_TICKS = 600
"""For a state that a test ends itself once it has seen it."""
IUDEX_MOVES = [move.name for move in load_fight("iudex").boss.moves]
FOG_WALL = (125.710762, -64.05046082, 558.4857178)
BEHIND_FOG = (126.49, 560.53, -64.047)
START = (132.176, -68.066, 575.064)
PAST_THE_CLIFF = (161.5, -68.0, 592.0)


@pytest.fixture
def keys(wine):
    """The keyboard of the first room."""
    keys = XKeys(wine.display(), wine.running)
    yield keys
    keys.close()


@pytest.fixture
def swift(start_standin):
    """A stand-in whose time passes eight times as fast, for what takes long."""
    return start_standin("--rate", "8")


@pytest.fixture
def calm(standin):
    """A stand-in in whose arena the boss stands and does nothing."""
    standin.mail(boss_still=1)
    standin.wait_ticks(2)
    return standin


def teleport(standin, x, height, y):
    standin.fields.set("PlayerX", x, height, y)
    standin.wait_ticks(2)


def until(standin, happens, limit_s=WAIT_LIMIT_S):
    """Wait until something is so in the game's memory; pointers may be null on the way."""
    limit = time.monotonic() + limit_s
    while time.monotonic() < limit:
        try:
            if happens(standin.fields.get):
                return
        except StandinError:
            pass
        time.sleep(0.002)
    raise AssertionError(f"did not happen within {limit_s:g} s")


def change(standin, happens):
    """The tick of the last look before something became so, and of the first look after."""
    looks = [standin.ticks]
    standin.wait_for(lambda block: looks.append(block.ticks) or happens(block))
    return looks[-2], looks[-1]


# ---------------------------------------------------------------- memory


def test_every_pattern_occurs_exactly_once(standin):
    fields = standin.fields
    counts = {name: len(fields.hits(name)) for name, row in fields.table["base"].items() if "pattern" in row}
    assert counts == dict.fromkeys(counts, 1)


def test_all_fields_of_the_fight_can_be_read_with_their_values(standin):
    values = {name: standin.fields.get(name) for name in standin.fields.table["field"] if not name.startswith("Vordt")}
    assert values["PlayerHP"] == values["PlayerMaxHP"] == 454
    assert values["PlayerMaxSP"] == 95
    assert values["IudexHP"] == values["IudexMaxHP"] == 1037
    assert values["IudexFlags"] == 0x60
    assert values["LastBonfire"] == 4002951
    assert (values["LoSLockOnTime"], values["LockOnBonusRange"]) == (2.0, 0.0)
    assert (values["WindowScreenWidth"], values["WindowScreenHeight"]) == (800, 450)
    x, height, y = values["PlayerX"]
    block = standin.look()
    assert [x, y, height] == pytest.approx(list(block.player)[:3], abs=1.0)
    nx, nz, ny = values["CamQx"][:3]
    assert math.hypot(nx, ny, nz) == pytest.approx(1.0, abs=1e-5)
    with pytest.raises(NotThere):
        standin.fields.get("VordtHP")


def fixed_version(executable: Path) -> tuple[int, ...]:
    """The file version of the VERSIONINFO resource."""
    data = executable.read_bytes()
    at = data.index(struct.pack("<I", 0xFEEF04BD))
    high, low = struct.unpack_from("<II", data, at + 8)
    return high >> 16, high & 0xFFFF, low >> 16, low & 0xFFFF


def test_it_has_the_version_of_the_game(standin_exe):
    assert fixed_version(standin_exe) == (1, 15, 2, 0)


def test_the_other_version_has_another_number_and_none_of_the_patterns(start_standin, tmp_path):
    wrong = standin_kit.other_version(tmp_path)
    assert fixed_version(wrong) == (1, 15, 1, 0)
    other = start_standin(executable=wrong)
    assert not any(other.fields.hits(name) for name, row in other.fields.table["base"].items() if "pattern" in row)


def test_objects_lie_elsewhere_after_a_load(start_standin):
    standin = start_standin("--start", "arena", "--load-ticks", "180")
    before = standin.fields.address("PlayerHP")
    standin.fields.set("PlayerHP", 0)
    standin.wait_for(lambda block: SCREENS[block.screen] == "loading")
    with pytest.raises(StandinError):
        standin.memory.read(before, 4)
    standin.wait_for(lambda block: block.loads == 2)


# ---------------------------------------------------------------- time and picture


def test_it_makes_sixty_ticks_a_second_and_its_play_time_follows(standin):
    assert rate_of(lambda: standin.ticks, 60.0, rel=0.1, seconds=1.0) == pytest.approx(60.0, rel=0.1)
    first = standin.ticks
    standin.fields.set("Time", 0)
    second = standin.wait_ticks(2)
    standin.wait_ticks(60)
    # It was set back between the first two ticks, and is read between the last two; it is written before its tick is.
    least, time_ms, most = standin.ticks - second, standin.fields.get("Time"), standin.ticks - first + 1
    assert least * 1000 // 60 <= time_ms <= most * 1000 // 60


def test_its_time_can_pass_faster(swift):
    assert rate_of(lambda: swift.ticks, 480.0, rel=0.5) == pytest.approx(480.0, rel=0.5)


def test_play_time_moves_in_whole_ticks_unless_uneven(start_standin):
    def remainders(standin):
        standin.fields.set("Time", 0)
        standin.wait_ticks(2)
        seen = set()
        until(standin, lambda get: seen.add(get("Time")) or len(seen) >= 40)
        whole = {tick * 1000 // 60 for tick in range(max(seen))}
        return seen - whole

    assert not remainders(start_standin())
    assert len(remainders(start_standin("--uneven"))) > 20


def test_two_runs_with_the_same_seed_go_the_same_way(start_standin):
    def digests(*switches):
        standin = start_standin("--rate", "8", "--seed", *switches)
        return list(standin.wait_for(lambda block: block.ticks > 181).digests)[1:4]

    first = digests("5")
    assert first == digests("5")
    assert first != digests("6")


@pytest.mark.parametrize("size", [(800, 450), (640, 360)])
def test_a_captured_frame_can_be_dated(start_standin, keys, size):
    import mss
    import numpy as np

    standin = start_standin("--size", f"{size[0]}x{size[1]}")
    left, top, width, height = keys.client_area("DARK SOULS III")
    assert (width, height) == size
    fresh, limit = 0, time.monotonic() + WAIT_LIMIT_S
    with mss.MSS(display=standin.display) as camera:
        while fresh < 20:
            assert time.monotonic() < limit, f"only {fresh} pictures were of their moment"
            time.sleep(0.02)
            early = standin.ticks
            picture = np.array(camera.grab({"left": left, "top": top, "width": width, "height": height}))
            tick = date_of(picture)
            if tick is not None:  # None: torn, it was just drawing
                assert tick <= standin.ticks
                fresh += tick >= early - 1
    assert picture[standin_kit.BLOCK_PIXELS * 2 + 10 :].max() > 100  # more than the date is drawn


# ---------------------------------------------------------------- keys


def test_a_key_is_seen_by_all_four_ways_of_windows(standin, keys):
    for name in ("w", "space", "l"):
        keys.tap(name)
        standin.wait_ticks(3)
    block = standin.wait_for(lambda block: list(block.ups) == [3, 3, 3, 3])
    for source in SOURCES:
        seen = [(vk, down) for by, vk, down, _ in block.seen() if by == source]
        assert seen == [(W, True), (W, False), (SPACE, True), (SPACE, False), (L, True), (L, False)]


@pytest.mark.parametrize("driver", [*SOURCES, "all"])
def test_each_way_can_drive_the_game(start_standin, keys, driver):
    standin = start_standin("--input", driver)
    keys.down("w")
    standin.wait_for(lambda block: block.player_move == -1 and math.dist(block.player[:2], (START[0], START[2])) > 1.0)


def test_an_unknown_switch_ends_it(wine, standin_exe):
    with pytest.raises(StandinError, match="ended with code"):
        wine.start("--no-such-thing", executable=standin_exe)


# ---------------------------------------------------------------- the player


def test_a_prefix_whose_desktop_has_no_screen_is_started_again(wine, standin_exe):
    nowhere = {**wine.environment(), "DISPLAY": ":65000"}
    wine.prefix().restart()  # what runs there has a desktop
    with pytest.raises(NoWindow):
        Standin.start(standin_exe, environment=nowhere)
    assert wine.start("--start", "arena").screen == "arena"


@pytest.mark.parametrize(("held", "ahead", "right"), [("w", 1, 0), ("s", -1, 0), ("d", 0, 1), ("a", 0, -1)])
def test_the_player_walks_in_the_frame_of_the_camera(calm, keys, held, ahead, right):
    before = calm.look()
    cam = before.camera
    keys.down(held)
    until(calm, lambda get: get("PlayerAnimation") == "Move")
    after = calm.wait_for(lambda block: math.dist(block.player[:2], before.player[:2]) > 0.5)
    keys.up(held)
    dx, dy = after.player[0] - before.player[0], after.player[1] - before.player[1]
    moved = math.hypot(dx, dy)
    assert (-math.sin(cam) * dx - math.cos(cam) * dy) / moved == pytest.approx(ahead, abs=0.05)
    assert (-math.cos(cam) * dx + math.sin(cam) * dy) / moved == pytest.approx(right, abs=0.05)
    until(calm, lambda get: get("PlayerAnimation") == "Idle")


def test_a_roll_costs_stamina_moves_far_and_ends_in_standing(calm, keys):
    place = list(calm.look().player)[:2]
    keys.down("w", "space")
    until(calm, lambda get: get("PlayerAnimation") == "RollingMedium")
    keys.up("space", "w")
    lowest = 95

    def is_over(get):
        nonlocal lowest
        lowest = min(lowest, get("PlayerSP"))
        return get("PlayerAnimation") == "Idle"

    until(calm, is_over)
    assert lowest == 79
    assert math.dist(place, calm.look().player[:2]) > 2.5
    assert calm.look().rolls == 1
    until(calm, lambda get: get("PlayerSP") == 95)


@pytest.mark.parametrize(
    ("key", "first", "counter"),
    [("l", "AttackRightLight1", "light_attacks"), ("h", "AttackRightHeavy1Sta", "heavy_attacks"),
     ("m", "ParryLeftStart", "parries")],
)  # fmt: skip
def test_attacks_and_parry_begin_with_their_animation(standin, keys, key, first, counter):
    keys.down(key)
    until(standin, lambda get: get("PlayerAnimation") == first)
    assert getattr(standin.look(), counter) == 1


def test_a_button_pressed_while_busy_is_remembered_for_a_moment(calm, keys):
    for attacks in range(0, 10, 2):  # again if this program was too late: then it is another first attack
        for number in (1, 2):
            keys.down("l")
            calm.wait_for(lambda block, count=attacks + number: block.light_attacks == count)
            keys.up("l")
            calm.wait_ticks(20)
        name = calm.fields.get("PlayerAnimation")
        until(calm, lambda get: get("PlayerAnimation") == "Idle")
        if name == "AttackRightLight2":
            break
    assert name == "AttackRightLight2"


def test_camera_keys_turn_the_camera(calm, keys):
    before = calm.look().camera
    keys.tap("p", ticks=18)
    block = calm.look()
    pressed, released = (tick for source, _, _, tick in block.seen() if source == "dinput")
    after = block.camera
    assert math.remainder(after - before - 2.0 / 60 * (released - pressed), math.tau) == pytest.approx(0.0, abs=0.04)
    nx, _, ny = calm.fields.get("CamQx")[:3]
    assert math.atan2(-nx, -ny) == pytest.approx(calm.look().camera, abs=0.02)
    keys.tap("o", ticks=18)
    assert math.remainder(calm.look().camera - after, math.tau) < -0.2
    view = calm.fields.get("CamQx")[1]
    keys.tap("j", ticks=12)
    assert calm.fields.get("CamQx")[1] > view


def test_lock_on_needs_range_and_holds_the_camera_on_the_boss(calm, keys):
    keys.tap("q")
    calm.wait_for(lambda block: block.lock_presses == 1)
    calm.wait_ticks(2)
    assert calm.fields.get("LockOn") == 0  # he is 19 m away
    calm.fields.set("LockOnBonusRange", 45.0)
    keys.tap("q")
    until(calm, lambda get: get("LockOn") == 1)
    teleport(calm, 150.0, -68.5, 592.0)
    block = calm.wait_for(lambda block: abs(math.remainder(block.camera - math.pi / 2, math.tau)) < 0.05)
    assert block.lock_presses == 2
    keys.tap("q")
    until(calm, lambda get: get("LockOn") == 0)
    calm.mail(refuse_lock_on=1)
    keys.tap("q")
    calm.wait_for(lambda block: block.lock_presses == 4)
    calm.wait_ticks(3)
    assert calm.fields.get("LockOn") == 0


def test_lock_on_ends_when_the_boss_is_out_of_sight_for_too_long(calm, keys):
    calm.fields.set("LockOnBonusRange", 45.0)
    keys.tap("q")
    until(calm, lambda get: get("LockOn") == 1)
    calm.fields.set("LoSLockOnTime", 0.5)
    early = calm.ticks
    calm.fields.set("LockOnBonusRange", 0.0)
    late, locked = calm.ticks, [0]

    def is_over(get):
        tick = calm.ticks
        if get("LockOn") == 0:
            return True
        locked.append(tick)
        return False

    until(calm, is_over)
    assert calm.ticks - early >= 30
    assert locked[-1] - late < 120  # which is what it takes at first


# ---------------------------------------------------------------- places


def test_from_the_title_through_loading_to_the_bonfire_and_through_the_fog(start_standin, keys):
    standin = start_standin("--start", "title", "--load-ticks", "180")
    time_before = standin.fields.get("Time")
    with pytest.raises(NotThere):
        standin.fields.get("PlayerHP")
    standin.wait_ticks(30)
    assert standin.fields.get("Time") == time_before
    keys.tap("e")
    standin.wait_for(lambda block: SCREENS[block.screen] == "loading")
    with pytest.raises(NotThere):
        standin.fields.get("PlayerX")
    until(standin, lambda get: get("PlayerAnimation") == "Event63000")
    until(standin, lambda get: get("PlayerAnimation") == "Idle")
    assert math.dist(standin.look().player[:3], (104.0, 507.0, -50.0)) < 1.0
    keys.tap("e")  # nothing to interact with here
    standin.wait_ticks(5)
    assert standin.fields.get("PlayerAnimation") == "Idle"
    teleport(standin, *FOG_WALL)
    standin.wait_ticks(12)
    assert math.dist(standin.fields.get("PlayerX"), FOG_WALL) < 0.1
    keys.tap("e")
    until(standin, lambda get: get("PlayerAnimation").startswith("Event"))
    until(standin, lambda get: get("PlayerAnimation") == "Idle")
    block = standin.look()
    assert math.dist(block.player[:3], BEHIND_FOG) < 0.2
    assert SCREENS[block.screen] == "arena"
    assert block.boss_active


def test_a_boss_who_was_not_met_through_the_fog_does_nothing(start_standin):
    standin = start_standin("--start", "field")
    teleport(standin, *START)
    boss = list(standin.look().boss)
    standin.wait_ticks(60)
    assert list(standin.look().boss) == boss
    assert not standin.look().boss_active


def test_death_leads_through_loading_to_the_bonfire_and_takes_souls_and_flags(start_standin):
    standin = start_standin("--start", "arena", "--load-ticks", "180")
    standin.fields.set("AllNoAttack", 1)
    standin.fields.set("PlayerHP", 0)
    until(standin, lambda get: get("PlayerAnimation") == "DeathIdle")
    assert SCREENS[standin.look().screen] == "death"
    standin.wait_for(lambda block: SCREENS[block.screen] == "loading")
    until(standin, lambda get: get("PlayerAnimation") == "Event63000")
    until(standin, lambda get: get("PlayerAnimation") == "Idle")
    block = standin.look()
    assert (SCREENS[block.screen], block.player_deaths, block.souls) == ("field", 1, 0)
    assert standin.fields.get("PlayerHP") == 454
    assert standin.fields.get("AllNoAttack") == 0
    assert not block.boss_active


def test_respawn_goes_where_the_last_bonfire_says_and_reckons_with_the_attributes(swift):
    swift.fields.set("LastBonfire", 3002954)
    stats = swift.fields.address("PlayerStats")
    swift.memory.write(stats, struct.pack("<i", 13))
    swift.memory.write(stats + 8, struct.pack("<i", 13))
    swift.fields.set("PlayerHP", 0)
    until(swift, lambda get: get("VordtHP") == 1328)
    with pytest.raises(NotThere):
        swift.fields.get("IudexHP")
    assert swift.fields.get("PlayerMaxHP") == 483
    assert swift.fields.get("PlayerMaxSP") == 99


@pytest.mark.parametrize("name", ["PlayerNoDeath", "AllNoDeath"])
def test_nobody_dies_who_is_not_allowed_to(calm, name):
    calm.fields.set(name, 1)
    calm.fields.set("PlayerHP", 0)
    calm.wait_ticks(5)
    assert calm.look().player_deaths == 0
    assert calm.fields.get("PlayerAnimation") != "DeathIdle"


def test_the_cliff_is_deadly_and_a_teleport_out_of_the_fall_saves(calm):
    teleport(calm, *PAST_THE_CLIFF)
    until(calm, lambda get: get("PlayerAnimation") in ("FallStart", "FallLoop"))
    until(calm, lambda get: get("PlayerX")[1] < -73.0)
    calm.fields.set("PlayerX", *START)
    until(calm, lambda get: get("PlayerAnimation") == "Idle")
    assert calm.look().player_deaths == 0
    teleport(calm, *PAST_THE_CLIFF)
    calm.wait_for(lambda block: block.player_deaths == 1)


def test_without_gravity_the_player_stays_in_the_air(calm):
    calm.fields.set("noGravity", 0x40)
    teleport(calm, START[0], START[1] + 5.0, START[2])
    calm.wait_ticks(10)
    assert calm.fields.get("PlayerX")[1] == pytest.approx(START[1] + 5.0, abs=1e-4)
    calm.fields.set("noGravity", 0)
    until(calm, lambda get: get("PlayerX")[1] < START[1] + 0.5)


# ---------------------------------------------------------------- the boss


def test_the_boss_walks_up_attacks_and_hurts(swift):
    block = swift.wait_for(lambda block: block.hits_on_player >= 1, 40.0)
    assert block.boss_attacks >= 1
    assert swift.fields.get("PlayerHP") < 454


def test_forbidding_attacks_and_moves_makes_the_boss_stand(swift):
    swift.wait_ticks(120)
    swift.fields.set("AllNoMove", 1)
    swift.fields.set("AllNoAttack", 1)
    until(swift, lambda get: get("IudexAnimation") == "IdleBattle")
    swift.wait_ticks(20)
    before = list(swift.look().boss)
    swift.wait_ticks(60)
    assert list(swift.look().boss) == before


def test_hits_can_be_forbidden(swift):
    teleport(swift, 141.0, -69.3, 589.5)
    swift.fields.set("AllNoHit", 1)
    swift.wait_for(lambda block: block.boss_attacks >= 3, 40.0)
    assert swift.look().hits_on_player == 0


def test_a_hit_boss_shows_another_name_while_the_register_keeps_the_truth(calm, keys):
    x, y = calm.look().boss[:2]
    teleport(calm, x - 0.5, -69.3, y - 1.9)
    keys.tap("q")
    until(calm, lambda get: get("LockOn") == 1)
    calm.fields.set("PlayerNoDeath", 1)
    calm.fields.set("AllNoMove", 1)
    truth = [("Attack3014", 3014), ("SABlend_Add", 3014), ("Attack3014", 3014), ("Attack3014", -1), ("IdleBattle", -1)]
    for _ in range(5):  # each lasts for some tenths of a second, in which this program must look
        calm.force(IUDEX_MOVES.index("slam"))
        keys.down("l")  # his blow lands before the boss's
        seen = []

        def is_over(get, seen=seen):
            now = get("IudexAnimation").removesuffix("_Front"), get("IudexAttackID")
            if seen[-1:] != [now]:
                seen.append(now)
            return len(seen) > 1 and now == truth[-1]

        until(calm, is_over)
        keys.up("l")
        assert calm.fields.get("IudexHP") == 1037 - 52 * calm.look().hits_on_boss < 1037
        if [one for one in seen if one in truth][-5:] == truth:
            break
    assert [one for one in seen if one in truth][-5:] == truth


def test_little_health_brings_the_second_phase(swift):
    swift.fields.set("AllNoHit", 1)
    swift.fields.set("IudexHP", 100)
    until(swift, lambda get: get("IudexAnimation") == "Attack1500" and get("IudexAttackID") == 1500, 40.0)
    swift.wait_for(lambda block: block.phase == 2, 20.0)


def test_a_dead_boss_is_gone_after_the_next_load(swift):
    swift.fields.set("IudexHP", 0)
    swift.wait_for(lambda block: block.boss_deaths == 1)
    until(swift, lambda get: get("IudexFlags") == 0x60 | 0x80)
    assert swift.look().souls > 0
    swift.mail(kill_player=1)
    swift.wait_for(lambda block: block.loads == 2)
    with pytest.raises(NotThere):
        swift.fields.get("IudexHP")


def test_vordt_fights_and_his_blows_freeze(start_standin):
    standin = start_standin("--boss", "vordt", "--rate", "8")
    standin.fields.set("PlayerNoDeath", 1)
    teleport(standin, 27.0, -25.3, 8.0)
    seen = standin.fields.get("PlayerFrostResistanceMax")
    until(standin, lambda get: get("PlayerFrostResistance") < seen, 60.0)
    until(standin, lambda get: get("PlayerFrostEffect") > 0.5, 90.0)


# ---------------------------------------------------------------- failures on demand


def test_it_crashes(start_standin):
    standin = start_standin()
    standin.mail(crash=1)
    assert standin.process.wait(WAIT_LIMIT_S) != 0
    later = start_standin("--crash-after", "60")
    assert later.process.wait(WAIT_LIMIT_S) != 0


def test_it_hangs_and_comes_back(standin):
    standin.mail(hang=1)
    assert rate_of(lambda: standin.look().turns, 0.0) == 0.0
    ticks = standin.ticks
    time.sleep(0.3)
    assert standin.ticks == ticks
    assert standin.is_running()
    standin.mail(hang=0)
    standin.wait_ticks(5)


def test_names_that_nobody_knows(standin):
    standin.mail(player_unknown_ticks=LONG_TICKS, boss_unknown_ticks=LONG_TICKS)
    until(standin, lambda get: get("PlayerAnimation") == "Event99099" and get("IudexAnimation") == "Event20099")
    standin.mail(player_unknown_ticks=5, boss_unknown_ticks=5)
    until(standin, lambda get: get("PlayerAnimation") == "Idle" and get("IudexAnimation") != "Event20099")


def test_stuck_in_a_wall(calm, keys):
    calm.mail(stuck=1)
    calm.wait_ticks(2)
    before = list(calm.look().player)[:2]
    keys.down("w")
    teleport(calm, 140.0, -69.3, 600.0)
    calm.wait_ticks(20)
    assert list(calm.look().player)[:2] == before
    x, _, y = calm.fields.get("PlayerX")
    assert [x, y] == pytest.approx(before, abs=1e-4)
    calm.mail(stuck=0)
    calm.wait_for(lambda block: list(block.player)[:2] != before)


def test_pointers_that_are_not_valid_for_a_while(standin):
    standin.mail(null_chains_ticks=LONG_TICKS)
    standin.wait_ticks(5)
    for name in ("PlayerHP", "PlayerX", "IudexHP"):
        with pytest.raises(NotThere):
            standin.fields.get(name)
    standin.mail(null_chains_ticks=5)
    until(standin, lambda get: get("PlayerHP") > 0)


def test_another_window_takes_the_keys_for_a_while(calm, keys):
    calm.mail(lose_focus_ticks=-1)
    calm.wait_for(lambda block: not block.has_focus)
    calm.wait_ticks(5)
    rolls = calm.look().rolls
    keys.tap("space", ticks=6)
    calm.wait_ticks(10)
    assert calm.look().rolls == rolls
    calm.mail(lose_focus_ticks=0)
    calm.wait_for(lambda block: block.has_focus)


def test_an_open_menu_takes_the_keys_until_escape(calm, keys):
    calm.mail(menu_open=1)
    keys.tap("space")
    calm.wait_ticks(10)
    assert calm.look().rolls == 0
    keys.tap("Escape")
    calm.wait_for(lambda block: block.mail.menu_open == 0)
    keys.tap("space")
    calm.wait_for(lambda block: block.rolls == 1)


def test_without_a_weapon_attacks_look_different_and_hit_nobody(calm, keys):
    calm.mail(unarmed=1)
    x, y = calm.look().boss[:2]
    teleport(calm, x - 0.5, -69.3, y - 1.9)
    keys.tap("q")
    keys.down("l")
    until(calm, lambda get: get("PlayerAnimation") == "HandChangeStart")
    calm.wait_ticks(60)
    assert calm.look().hits_on_boss == 0


def test_wrong_flags_remove_the_boss_with_the_next_load(swift):
    swift.mail(wrong_flags=1)
    until(swift, lambda get: get("IudexFlags") == 0xE0)
    swift.mail(kill_player=1)
    swift.wait_for(lambda block: block.loads == 2)
    assert not swift.look().boss_here


def test_it_drops_the_player_and_kills_boss_and_player(standin):
    standin.fields.set("AllNoAttack", 1)
    standin.mail(fall=1)
    until(standin, lambda get: get("PlayerAnimation") == "FallStart")
    standin.mail(kill_boss=1)
    standin.wait_for(lambda block: block.boss_deaths == 1)
    standin.wait_for(lambda block: block.player_deaths == 1)


def test_it_lags_and_goes_back_to_the_title(standin):
    standin.mail(lag_ms=30)
    before = standin.look()
    after = standin.wait_for(lambda block: block.ticks > before.ticks + 40)
    assert after.turns - before.turns < after.ticks - before.ticks
    standin.mail(lag_ms=0, to_title=1)
    standin.wait_for(lambda block: SCREENS[block.screen] == "title")


def test_loading_takes_as_long_as_asked(start_standin):
    standin = start_standin("--load-ticks", "150")
    standin.mail(kill_player=1)
    loading = change(standin, lambda block: SCREENS[block.screen] == "loading")
    field = change(standin, lambda block: SCREENS[block.screen] == "field")
    assert field[0] - loading[1] - 1 <= 150 <= field[1] - loading[0] + 1


def test_a_roll_can_wait_for_the_key_to_be_let_go(start_standin, keys):
    standin = start_standin("--roll-on-release")
    keys.down("space")
    standin.wait_for(lambda block: block.held[DINPUT][SPACE])
    standin.wait_ticks(10)
    assert standin.look().rolls == 0
    keys.up("space")
    standin.wait_for(lambda block: block.rolls == 1)


def test_two_of_them_do_not_hear_each_other(start_standin, keys):
    # In the field: in the arena the boss may kill the one before the other has started.
    first, second = (start_standin("--start", "field", room=room) for room in (0, 1))
    keys.tap("space")
    first.wait_for(lambda block: block.rolls == 1)
    second.wait_ticks(10)
    assert list(second.look().downs) == [0, 0, 0, 0]
