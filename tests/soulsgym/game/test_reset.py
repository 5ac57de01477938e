"""Tests of setting up a fight, stage by stage, with a game that has bad habits."""

import dataclasses
import math

import numpy as np
import pytest
from fake_game import FakeGame, FakeTime, World, fake_game

from soulsgym.engine import standard_starts
from soulsgym.errors import GameHung, GameVersionError, StageFailed
from soulsgym.game import reset
from soulsgym.game.engine import GameEngine
from soulsgym.game.reset import STAGES, wanted_pose
from soulsgym.spec import load_fight
from soulsgym.spec.game import PhaseChange

LONGEST_S = 600.0
"""No reset takes longer, whatever the game does."""


class Ring:
    """An engine on a fake game."""

    def __init__(self, boss="iudex", screen="field", **settings):
        self.source = FakeTime()
        self.games = [fake_game(boss, screen=screen, source=self.source)]
        self.engine = GameEngine(
            load_fight(boss, moves=False).game,
            self.games,
            **{"game_speed": math.inf, "source": self.source, **settings},
        )

    @property
    def game(self) -> FakeGame:
        return self.engine.games[0]

    @property
    def world(self) -> World:
        return self.game.world

    @property
    def note(self):
        return self.engine.notes[0]

    def begin(self, seed=None, **start):
        starts = standard_starts(1)
        for key, value in start.items():
            starts[key] = value
        self.engine.reset(np.ones(1, np.bool_), starts, None if seed is None else np.array([seed], np.uint64))
        return self


@pytest.fixture
def ring():
    return Ring()


def relaunching(number=1, screen="title"):
    """A ring whose games are started again, and those that were."""
    started = []

    def relaunch(game):
        game.close()
        if len(started) >= number:
            raise GameHung("the game was not ready 180 s after its launch; start it by hand")
        started.append(fake_game(screen=screen, source=ring.source))
        return started[-1]

    ring = Ring(relaunch=relaunch)
    return ring, started


def test_every_stage_has_a_limit_and_says_what_must_hold():
    assert [stage.name for stage in STAGES] == [
        "focus", "in_game", "values", "flags", "reload", "menu", "fog_gate", "arena", "weapon", "pressing", "phase",
        "freeze", "poses", "lock_on", "ready",
    ]  # fmt: skip
    assert all(0.0 < stage.limit_s <= 120.0 and stage.holds for stage in STAGES)


def test_the_first_fight_is_set_up_from_the_bonfire(ring):
    ring.begin()
    world, plan = ring.world, ring.world.plan
    assert list(ring.note["stages"]) == [
        "focus", "in_game", "values", "flags", "reload", "menu", "fog_gate", "arena", "weapon", "pressing", "freeze",
        "poses", "lock_on", "ready",
    ]  # fmt: skip
    assert ring.note["attempts"] == []
    assert ring.note["reset_s"] == pytest.approx(sum(ring.note["stages"].values()), abs=0.01)
    assert world.screen == "arena"
    assert world.deaths == 1
    assert tuple(world.stats) == plan.attributes
    assert math.dist(world.pose, plan.player_start) < plan.near.player_m
    assert math.dist(world.boss_pose, plan.boss_start) < plan.near.boss_m
    assert world.lock
    assert (world.speed, world.keys.down) == (0.0, set())
    assert (world.bonus_range, world.unseen_s) == (45.0, 99.0)
    assert all(world.permissions[name] for name in ("allow_attacks", "allow_hits", "allow_moves"))
    assert not world.permissions["allow_deaths"]


def test_nothing_is_written_when_what_is_read_cannot_be_true(ring):
    ring.world.habits.faults = ("LockOn is 53 and must be from 0 to 1",)
    before = vars(ring.world).copy()
    with pytest.raises(GameVersionError, match=r"nothing is written into the game.*LockOn is 53.*souls doctor"):
        ring.begin()
    for name in ("hp", "stats", "bonfire", "pose", "boss_hp", "bonus_range"):
        assert getattr(ring.world, name) == before[name]
    ring.world.habits.faults = ()
    ring.begin()


def test_a_boss_whose_values_cannot_be_true_is_not_touched(ring):
    ring.world.habits.boss_faults = ("the most health of Iudex Gundyr is 1037, and memory says IudexMaxHP 7",)
    ring.world.boss_hp = 900
    with pytest.raises(GameVersionError, match="IudexMaxHP 7"):
        ring.begin()
    assert ring.world.boss_pose == list(ring.world.plan.boss_start)
    assert ring.world.bonus_range == 0.0


def test_the_next_fight_needs_no_reload(ring):
    ring.begin()
    ring.world.pose[1] += 6.0
    ring.begin()
    assert list(ring.note["stages"]) == ["focus", "in_game", "flags", "arena", "freeze", "poses", "lock_on", "ready"]
    assert ring.world.deaths == 1
    assert math.dist(ring.world.pose, ring.world.plan.player_start) < 1.0


def test_the_title_screen_is_left():
    ring = Ring(screen="title").begin()
    assert ring.world.screen == "arena"


def test_a_game_that_ticks_faster_than_it_can_be_read_is_stopped_for_a_look(ring):
    ring.world.habits.slow_reads = True
    ring.begin()
    assert ring.note["attempts"] == []
    assert ring.world.lock


def test_an_open_menu_is_closed(ring):
    ring.world.habits.menu = True
    ring.begin()
    assert not ring.world.habits.menu


@pytest.mark.parametrize(
    ("habit", "sentence"),
    [
        ("ignores_keys", "menu: the walking key does not move the player; close open menus"),
        ("refuses_lock", "lock_on: the lock-on key has no effect"),
        ("unarmed", r"weapon: the attack key gave .*AttackBare.*; equip the sword"),
        ("stuck", "fog_gate: the player stands .* m from the fog wall"),
        ("never_dies", "reload: the player does not die"),
        ("never_respawns", "reload: the player does not come back after his death"),
        ("far_bonfire", "reload: the player came back 300 m from the bonfire Cemetery of Ash"),
    ],
)
def test_what_stays_wrong_is_named_and_not_waited_for_long(ring, habit, sentence):
    setattr(ring.world.habits, habit, True)
    begin = ring.source.now()
    with pytest.raises(StageFailed, match=sentence) as caught:
        ring.begin()
    assert ring.source.now() - begin < LONGEST_S
    assert "give a launch command" in str(caught.value)
    assert len(ring.note["attempts"]) >= 1
    assert not ring.world.keys.down


@pytest.mark.parametrize("habit", ["ignores_keys", "refuses_lock", "unarmed", "stuck", "never_respawns"])
def test_what_was_wrong_is_repaired_by_the_next_reset(ring, habit):
    setattr(ring.world.habits, habit, True)
    with pytest.raises(StageFailed):
        ring.begin()
    setattr(ring.world.habits, habit, False)
    ring.begin()
    assert ring.world.screen == "arena"


def test_the_lock_is_pressed_only_while_there_is_none(ring):
    ring.begin()
    assert ring.world.lock_presses == 1
    ring.begin()
    assert ring.world.lock_presses == 1


def test_a_camera_with_a_reversed_axis_finds_the_boss(ring):
    ring.world.habits.reversed_camera = True
    ring.world.view = 2.5
    ring.begin()
    assert ring.world.lock


def test_health_that_returns_without_a_death_is_no_respawn(ring):
    ring.world.habits.stands_up_dead = True
    ring.begin()
    assert ring.world.deaths == 1
    assert ring.world.loads == 1


def test_a_start_in_a_wall_is_left_for_another_one():
    plan, ring = load_fight("iudex", moves=False).game, Ring()
    order = np.random.default_rng(5).permutation(len(plan.player_starts))
    first, second = (plan.player_starts[i] for i in order[:2])
    ring.world.habits.bad_place = first
    ring.begin(seed=5, random_pose=1)
    assert math.dist(ring.world.pose, second) < 1.0
    assert ring.note["attempts"] == []


def test_stuck_players_fall_back_to_the_fog_wall_and_then_to_the_bonfire(ring):
    ring.begin()
    ring.world.pose[0] += 8.0
    ring.world.habits.stuck = True
    respawn = ring.world._respawn
    ring.world._respawn = lambda: (setattr(ring.world.habits, "stuck", False), respawn())
    ring.begin()
    stages = [attempt.partition(":")[0] for attempt in ring.note["attempts"]]
    assert stages[0] == "poses"
    assert stages[1:] in (["fog_gate"], ["menu"])
    assert ring.world.deaths == 2


def test_the_same_seed_draws_the_same_poses():
    places = []
    for seed in (1, 1, 2):
        ring = Ring().begin(seed=seed, random_pose=1)
        places.append(tuple(ring.world.pose))
        ring.begin(random_pose=1)
        places.append(tuple(ring.world.pose))
    assert places[:2] == places[2:4] != places[4:]


def test_a_given_pose_gets_the_height_of_the_ground_nearby(ring):
    ring.begin(player_pose=(146.0, 582.0, 1.0), boss_pose=(141.0, 592.0, 0.2))
    assert ring.world.pose == [146.0, 582.0, -69.248, 1.0]
    assert ring.world.boss_pose[:2] == [141.0, 592.0]
    plan = load_fight("iudex", moves=False).game
    assert wanted_pose(plan, np.full(3, np.nan), plan.boss_start) == plan.boss_start


def test_a_heading_across_the_seam_is_no_difference():
    ring = Ring("vordt").begin()
    turn = ring.world._boss_shows
    ring.world._boss_shows = lambda name: (turn(name), ring.world.boss_pose.__setitem__(3, -3.1))  # his start says 3.1
    ring.begin()
    assert ring.note["attempts"] == []
    assert ring.world.boss_pose[3] == -3.1


def test_wrong_flags_lead_to_a_reload(ring):
    ring.begin()
    ring.world.flags_ok = False
    ring.begin()
    assert ring.world.flags_ok
    assert ring.world.deaths == 2


def test_training_reloads_after_a_quarter_of_an_hour():
    ring = Ring().begin()
    ring.source.sleep(800.0)
    ring.begin()
    assert ring.world.deaths == 1
    ring.source.sleep(200.0)
    ring.begin()
    assert ring.world.deaths == 2


def test_a_real_fight_begins_with_a_reload_once_it_was_fought():
    ring = Ring(changes=True).begin()
    assert ring.world.permissions["allow_deaths"]
    ring.begin()
    assert ring.world.deaths == 2


def test_a_player_who_died_for_real_is_waited_for_and_not_killed_again():
    ring = Ring(changes=True).begin()
    ring.world.hp = 0
    ring.begin()
    assert ring.world.deaths == 2


def test_a_player_who_came_back_in_the_meantime_is_not_killed_again():
    ring = Ring(changes=True).begin()
    ring.world.hp = 0
    ring.world.speed = 1.0
    ring.source.sleep(10.0)
    ring.begin()
    assert ring.world.deaths == 2


def test_the_second_phase_is_brought_about_once():
    ring = Ring(phase=2).begin()
    assert ring.world.phase == 2
    assert ring.world.boss_hp == ring.world.boss_max_hp
    ring.begin()
    assert "phase" not in ring.note["stages"]
    ring.begin(phase=1)
    assert ring.world.phase == 1
    assert ring.world.deaths == 2
    ring.begin(phase=2)
    assert ring.world.phase == 2
    assert ring.world.deaths == 2


@pytest.mark.parametrize(("settings", "speed"), [({}, 3.0), ({"setup_speed": 8.0}, 8.0)])
def test_the_second_phase_of_a_boss_without_a_sign_is_waited_out_at_the_speed_of_setting_up(settings, speed):
    ring = Ring("vordt", phase=2, **settings)
    setup = ring.engine._fights[0].setup
    changes = tuple(dataclasses.replace(change, animation="") for change in setup.plan.changes)
    setup.plan = dataclasses.replace(setup.plan, changes=changes)
    ring.begin()
    assert ring.world.phase == 2
    assert ring.note["stages"]["phase"] == pytest.approx(20.0 / speed, abs=0.1)


def test_a_second_phase_that_does_not_come_is_named():
    ring = Ring(phase=2)
    ring.world.habits.no_second_phase = True
    with pytest.raises(StageFailed, match="phase: the boss does not begin phase 2 with 100 health"):
        ring.begin()


def test_a_later_phase_is_brought_about_one_by_one():
    later = (
        PhaseChange(boss_hp=400, animation="", begins_within_s=2.0, lasts_at_most_s=1.0),
        PhaseChange(boss_hp=100, animation="", begins_within_s=3.0, lasts_at_most_s=1.0),
    )
    ring = Ring("vordt")
    plan = ring.engine._fights[0].setup.plan
    ring.engine._fights[0].setup.plan = dataclasses.replace(plan, phases=3, changes=later)
    ring.begin(phase=3)
    assert ring.engine._fights[0].setup.phase == 3
    assert ring.note["stages"]["phase"] == pytest.approx(5.0 / 3.0, abs=0.1)
    assert ring.world.boss_hp == ring.world.boss_max_hp


@pytest.mark.parametrize(("hours", "is_reset"), [(3, False), (591, True), (-1, True)])
def test_the_play_time_is_set_back_only_before_it_overflows(ring, hours, is_reset):
    ring.world.time_ms = hours * 3_600_000.0
    ring.begin()
    assert (ring.world.time_ms < 60_000) is is_reset


def test_a_window_that_does_not_get_the_focus_is_named(ring):
    ring.world.window.focused = ring.world.window.regains = False
    with pytest.raises(StageFailed, match="focus: the window does not get the focus"):
        ring.begin()


def test_a_game_that_ended_is_started_again():
    ring, started = relaunching()
    old = ring.game
    ring.world.habits.gone = True
    ring.begin()
    assert ring.game is started[0]
    assert ring.note["restarts"] == 1
    assert old.closed == 1
    assert ring.world.screen == "arena"


@pytest.mark.parametrize("habit", ["hung", "never_respawns", "ignores_keys"])
def test_a_game_that_cannot_be_brought_round_is_started_again(habit):
    ring, started = relaunching()
    setattr(ring.world.habits, habit, True)
    begin = ring.source.now()
    ring.begin()
    assert ring.game is started[0]
    assert ring.source.now() - begin < LONGEST_S


def test_a_hang_is_told_from_loading_by_its_silence():
    ring, _ = relaunching()
    ring.begin()
    ring.world.flags_ok = False
    tick = ring.world.tick
    ring.world.tick = lambda: (tick(), setattr(ring.world.habits, "hung", ring.world.screen == "loading"))
    begin = ring.source.now()
    ring.begin()
    assert ring.source.now() - begin < 30.0


def test_a_restart_that_fails_is_told_with_everything_tried():
    ring, _ = relaunching(number=0)
    ring.world.habits.gone = True
    with pytest.raises(StageFailed, match=r"focus: .*has ended.*restart: the game was not ready 180 s") as caught:
        ring.begin()
    assert "launch command" not in str(caught.value)


def test_restarts_do_not_go_on_for_ever():
    ring, started = relaunching(number=99)

    def also_bad():
        for game in ring.games + started:
            game.world.habits.ignores_keys = True

    also_bad()
    relaunch = ring.engine._fights[0].setup.relaunch
    ring.engine._fights[0].setup.relaunch = lambda game: (relaunch(game), also_bad())[0] or started[-1]
    with pytest.raises(StageFailed, match="could not be set up"):
        ring.begin()
    assert len(started) <= reset.MOST_ATTEMPTS


def test_an_interrupted_reset_leaves_no_key_down_and_closing_restores_all(ring):
    world = ring.world
    before = dict(world.permissions)
    world.habits.interrupt_at_tick = 200
    with pytest.raises(KeyboardInterrupt):
        ring.begin()
    assert not world.keys.down
    ring.engine.close()
    assert world.permissions == before
    assert (world.bonus_range, world.unseen_s, world.speed) == (0.0, 2.0, 1.0)


@pytest.mark.parametrize("tick", range(5, 400, 45))
def test_an_interrupt_at_any_moment_of_a_reset_is_survived(tick):
    ring = Ring()
    ring.world.habits.interrupt_at_tick = tick
    try:
        ring.begin()
    except KeyboardInterrupt:
        assert not ring.world.keys.down
        ring.begin()
    assert ring.world.screen == "arena"


def test_a_start_that_is_wanted_mid_fight(ring):
    ring.begin(player_hp=100.0, boss_hp=200.0, player_sp=40.0)
    fight = ring.engine.fights[0]
    assert (fight["player_hp"][0], fight["boss_hp"][0], fight["player_sp"][0]) == (100.0, 200.0, 40.0)
    assert (ring.world.hp, ring.world.boss_hp, ring.world.sp) == (454, 1037, 40)


def test_a_real_fight_from_its_middle_has_real_health():
    ring = Ring(changes=True).begin(player_hp=100.0, boss_hp=800.0)
    assert (ring.world.hp, ring.world.boss_hp) == (100, 800)
    fight = ring.engine.fights[0]
    assert (fight["player_hp"][0], fight["boss_hp"][0]) == (100.0, 800.0)


def test_stage_limits_hold_even_if_a_condition_never_answers(ring, monkeypatch):
    slow = dataclasses.replace(next(stage for stage in STAGES if stage.name == "poses"), limit_s=1.0)
    monkeypatch.setattr(reset, "STAGES", tuple(slow if stage.name == "poses" else stage for stage in STAGES))
    ring.begin()
    ring.world.pose[0] += 9.0
    ring.world.habits.bad_place = ring.world.plan.player_start
    with pytest.raises(StageFailed, match="poses: the player is"):
        ring.begin()


def test_the_key_of_the_fog_wall_is_held_as_long_at_any_speed(monkeypatch):
    ring = Ring(setup_speed=8.0)
    keyboard, began, held_s = ring.game.keyboard, {}, []
    press, release = keyboard.press, keyboard.release

    def pressed(action):
        began[action] = ring.source.now()
        press(action)

    def released(action):
        if action == "interact":
            held_s.append(ring.source.now() - began[action])
        release(action)

    monkeypatch.setattr(keyboard, "press", pressed)
    monkeypatch.setattr(keyboard, "release", released)
    ring.begin()
    assert held_s
    assert min(held_s) >= 0.15


def test_weapons_do_not_wear_after_a_reload(ring):
    ring.begin()
    assert ring.world.loads == 1
    assert ring.world.permissions["allow_weapon_durability_dmg"] is False


def test_a_lock_on_somebody_else_is_dropped(ring):
    ring.begin()
    ring.world.habits.foreign_lock = True
    ring.begin()
    assert ring.note["attempts"] == []
    assert ring.world.lock
    assert not ring.world.habits.foreign_lock


def test_vordts_second_phase_begins_with_its_animation():
    ring = Ring("vordt", phase=2).begin()
    assert ring.world.phase == 2
    assert ring.engine.plan.changes[0].animation == "Attack1500"
