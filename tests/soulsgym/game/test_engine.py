"""Tests of whole fights with a game that has bad habits."""

import math

import numpy as np
import pytest
from fake_game import FakeTime, fake_game

from soulsgym.actions import ACTION_CONTROLS, CONTROL, NO_DIRECTION, NOTHING, Button
from soulsgym.engine import Snapshot, standard_starts
from soulsgym.envs.spaces import limits_of, observation_space
from soulsgym.errors import FocusLost, MisuseError, StageFailed, StartError
from soulsgym.game.attach import Game
from soulsgym.game.engine import KIND, GameEngine
from soulsgym.game.memory import ProcessMemory
from soulsgym.game.titles import EldenRing
from soulsgym.spec import load_fight
from soulsgym.state import FIGHT, Outcome, observation_of

FORWARD, RIGHT, ROLL, LIGHT = 0, 2, 8, 16
EVERYONE = np.ones(1, np.bool_)


class Ring:
    """An engine on fake games, begun."""

    def __init__(self, boss="iudex", n=1, **settings):
        self.source = FakeTime()
        games = [fake_game(boss, source=self.source) for _ in range(n)]
        self.plan = load_fight(boss, moves=False).game
        self.engine = GameEngine(self.plan, games, **{"game_speed": math.inf, "source": self.source, **settings})
        self.n = n

    def begin(self, **start):
        starts = standard_starts(self.n)
        for key, value in start.items():
            starts[key] = value
        self.engine.reset(np.ones(self.n, np.bool_), starts, np.arange(self.n, dtype=np.uint64))
        return self

    @property
    def world(self):
        return self.engine.games[0].world

    @property
    def fight(self):
        return self.engine.fights[0]

    @property
    def note(self):
        return self.engine.notes[0]

    def step(self, *actions, skip=False):
        self.engine.step(ACTION_CONTROLS[list(actions or (NOTHING,) * self.n)], skip=skip)
        return self.fight

    def play(self, steps, action=NOTHING):
        for _ in range(steps):
            self.step(action)
        return self.fight

    def meet(self, away_m=2.0):
        """Put the boss before the player."""
        self.world.boss_pose[:2] = self.world.pose[0], self.world.pose[1] + away_m
        return self


@pytest.fixture
def ring():
    return Ring().begin()


@pytest.fixture
def peaceful(ring):
    """A fight in which the boss does nothing."""
    ring.world.permissions["allow_attacks"] = False
    return ring


def in_space(ring):
    space = observation_space(limits_of(load_fight(ring.plan.boss, moves=False)))
    return space.contains({key: values[0] for key, values in observation_of(ring.engine.fights).items()})


# ---- what is asked for


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"phase": 3}, "phase 3 is not there; Iudex Gundyr has phases 1 to 2"),
        ({"game_speed": 0.0}, "game_speed 0.0 is not possible"),
        ({"game_speed": math.nan}, "game_speed nan is not possible"),
        ({"setup_speed": 0.0}, "setup_speed 0.0 is not possible"),
        ({"stepping": "frames"}, "stepping 'frames' is not known"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(MisuseError, match=message):
        GameEngine(load_fight("iudex", moves=False).game, [fake_game()], **settings)


def test_an_engine_needs_a_game():
    with pytest.raises(MisuseError, match="no game is given"):
        GameEngine(load_fight("iudex", moves=False).game, [])


def test_wrong_shapes_are_refused(ring):
    with pytest.raises(MisuseError, match="starts are 2 x"):
        ring.engine.reset(EVERYONE, standard_starts(2))
    with pytest.raises(MisuseError, match="controls are 2 x"):
        ring.engine.step(ACTION_CONTROLS[[0, 0]])


@pytest.mark.parametrize(
    ("key", "value"),
    [("phase", 3), ("player_hp", 0.0), ("player_hp", 455.0), ("boss_hp", 2000.0), ("player_sp", -61.0),
     ("player_pose", (0.0, 0.0, 0.0)), ("boss_pose", (140.0, 590.0, 4.0))],
)  # fmt: skip
def test_impossible_starts_are_refused(ring, key, value):
    starts = standard_starts(1)
    ring.engine.check_starts(starts)
    starts[key] = value
    with pytest.raises(StartError, match=key):
        ring.engine.check_starts(starts)


@pytest.mark.parametrize(("boss", "more"), [("iudex", ()), ("vordt", ())])
def test_an_engine_says_what_it_cannot_tell(boss, more):
    missing = Ring(boss).engine.missing_fields
    assert missing == ("dodged", "invulnerable", *more)
    assert set(missing) <= set(FIGHT.names)


def test_a_title_without_what_fights_need_is_refused_in_one_sentence(rings):
    game = fake_game()
    game.title = EldenRing(ProcessMemory(rings.process))
    with pytest.raises(MisuseError, match="EldenRing cannot be fought in yet: its data lack the way to the boss"):
        GameEngine(load_fight("iudex", moves=False).game, [game])


# ---- steps


def test_a_step_is_six_ticks_and_tells_of_itself(peaceful):
    for _ in range(30):
        before = peaceful.world.ticks
        peaceful.step(FORWARD)
        assert peaceful.world.ticks - before == 6
    assert peaceful.fight["step"] == 30
    assert peaceful.fight["time_s"] == pytest.approx(3.0)
    assert in_space(peaceful)
    wanted = {"ticks", "overshoot_s", "stepping", "memory_calls", "real_s", "lapses", "unknown_animations",
              "player_animation_name", "boss_animation_name", "reset_s", "stages"}  # fmt: skip
    assert wanted <= peaceful.note.keys()
    assert (peaceful.note["ticks"], peaceful.note["stepping"]) == (6, "ticks")


def test_held_keys_stay_down_and_are_sent_once(peaceful):
    keys = peaceful.world.keys
    peaceful.step(FORWARD)
    sent = len(keys.sent)
    peaceful.play(5, FORWARD)
    assert len(keys.sent) == sent
    assert keys.down == {"W"}
    peaceful.step(1)
    assert keys.down == {"W", "D"}
    peaceful.step(NOTHING)
    assert keys.down == set()


def test_a_button_follows_its_direction_and_is_held_for_three_ticks(peaceful):
    world, log = peaceful.world, []
    world.keys.watch = lambda key, down: log.append((key, down, world.ticks))
    begin = world.ticks
    peaceful.step(ROLL + 2)
    assert log == [("D", True, begin), ("Space", True, begin), ("Space", False, begin + 3)]
    assert world.rolls == 1
    assert peaceful.fight["player_animation_duration"][0] == pytest.approx(0.097)


def test_keys_are_given_time_to_arrive_only_when_some_are_sent(peaceful):
    naps = []
    sleep = peaceful.source.sleep
    peaceful.source.sleep = lambda seconds: (naps.append(seconds), sleep(seconds))
    peaceful.step(FORWARD)
    assert naps.count(0.003) == 1
    naps.clear()
    peaceful.step(FORWARD)
    assert naps.count(0.003) == 0
    peaceful.step(LIGHT)
    assert naps.count(0.003) == 2  # down and up


def test_a_closed_action_presses_nothing(peaceful):
    peaceful.step(ROLL)
    sent, lights = len(peaceful.world.keys.sent), peaceful.world.lights
    assert not peaceful.fight["action_mask"][LIGHT]
    peaceful.step(LIGHT)
    assert peaceful.world.lights == lights
    assert ("L", True) not in peaceful.world.keys.sent[sent:]


def test_a_backstep_is_possible(peaceful):
    peaceful.engine.step(np.array([(NO_DIRECTION, Button.ROLL)], CONTROL))
    assert peaceful.world.rolls == 1


def test_skipping_merges_the_steps_without_a_choice(peaceful):
    peaceful.meet()
    fight = peaceful.step(LIGHT, skip=True)
    assert fight["step"] == 7  # attacks are open again after 0.63 s of the label clock
    assert fight["damage_dealt"] == 52.0
    assert fight["landed"] == peaceful.plan.player_move("AttackRightLight1")
    assert fight["action_mask"][LIGHT]


def test_merged_steps_tell_of_the_last_blow_and_of_all_damage(peaceful):
    script = iter([(10.0, 5, 0), (20.0, 2, 0), (0.0, -1, 1)])

    def scripted(direction, button):
        taken, hit_by, is_open = next(script)
        peaceful.fight["damage_taken"], peaceful.fight["hit_by"] = taken, hit_by
        peaceful.fight["action_mask"][:NOTHING] = is_open

    peaceful.engine._fights[0]._step = scripted
    fight = peaceful.step(skip=True)
    assert (fight["damage_taken"], fight["hit_by"], fight["landed"]) == (30.0, 2, -1)


def test_skipping_has_an_end(peaceful):
    peaceful.world.animation = "LandFaceUp"
    peaceful.world._act = lambda down, taps: None
    fight = peaceful.step(skip=True)
    assert 250 < fight["step"] < 310


def test_training_counts_health_and_gives_the_game_its_own_back(ring):
    ring.meet()
    while ring.fight["player_hp"][0] == 454:
        ring.step()
    assert ring.fight["player_hp"][0] == 334.0
    assert ring.plan.move_names[ring.fight["hit_by"]] == "swing"
    assert ring.world.hp == 454
    for _ in range(100):
        ring.step()
    assert ring.fight["outcome"] == Outcome.DIED
    assert ring.plan.move_names[ring.fight["killed_by"]] == "swing"
    assert (ring.fight["taken_total"], ring.world.hp, ring.world.deaths) == (454.0, 454, 1)


def test_a_fight_that_is_over_stays_as_it_is(ring):
    ring.begin(player_hp=10.0)
    ring.meet()
    while ring.fight["outcome"] == Outcome.RUNNING:
        ring.step(RIGHT if ring.fight["step"] % 2 else FORWARD)
    assert not ring.world.keys.down
    assert ring.fight["outcome"] == Outcome.DIED
    ticks, steps = ring.world.ticks, ring.fight["step"]
    fight = ring.step(FORWARD)
    assert (fight["damage_taken"], fight["hit_by"], fight["step"]) == (0.0, -1, steps)
    assert ring.world.ticks == ticks
    assert not ring.world.keys.down


def test_winning_in_training_leaves_the_boss_alive(peaceful):
    peaceful.begin(boss_hp=50.0)
    peaceful.world.permissions["allow_attacks"] = False
    peaceful.meet()
    fight = peaceful.step(LIGHT, skip=True)
    assert fight["outcome"] == Outcome.WON
    assert peaceful.world.boss_hp == 1037


def test_a_fall_is_caught_at_once(peaceful):
    peaceful.world.pose[2] = -80.0
    fight = peaceful.step()
    assert (fight["outcome"], fight["player_hp"][0]) == (Outcome.FELL, 0.0)
    assert peaceful.world.pose == list(peaceful.plan.player_start)
    assert peaceful.world.hp == 454
    peaceful.begin()
    assert peaceful.world.loads == 1


def test_a_real_death_in_training_ends_the_fight_and_the_next_begins_at_the_bonfire(peaceful):
    peaceful.world.permissions["allow_deaths"] = peaceful.world.permissions["allow_player_death"] = True
    peaceful.world.hp = 0
    assert peaceful.step()["outcome"] == Outcome.DIED
    peaceful.begin()
    assert peaceful.world.loads == 2
    assert peaceful.fight["outcome"] == Outcome.RUNNING


def test_a_player_outside_the_arena_breaks_the_fight_off(peaceful):
    peaceful.world.pose[0] = 300.0
    fight = peaceful.step()
    assert fight["outcome"] == Outcome.BROKEN
    assert peaceful.note["failure"] == "arena: the player is outside at x 300.0, y 575.1"
    assert in_space(peaceful)
    peaceful.begin()


def test_a_real_fight_is_lost_for_real():
    ring = Ring(changes=True).begin().meet()
    ring.play(120)
    assert ring.fight["outcome"] == Outcome.DIED
    assert ring.fight["player_hp"][0] == 0.0
    assert ring.world.speed == 1.0
    ring.begin()
    assert ring.fight["outcome"] == Outcome.RUNNING
    assert ring.world.loads == 2


def test_a_real_fight_reaches_the_second_phase():
    ring = Ring(changes=True).begin()
    ring.world.boss_hp = 400
    phases = [int(ring.step()["phase"]) for _ in range(20)]
    assert phases[-1] == 2


# ---- lock


def test_a_lost_lock_is_taken_up_again_by_one_press(peaceful):
    peaceful.world.lock = False
    presses = peaceful.world.lock_presses
    peaceful.play(3)
    assert peaceful.world.lock
    assert peaceful.world.lock_presses == presses + 1


def test_a_lock_that_comes_back_by_itself_is_not_undone(peaceful):
    peaceful.world.lock = False
    assert not peaceful.step()["lock_on"]
    presses = peaceful.world.lock_presses
    peaceful.world.lock = True  # after the look that did not see it
    peaceful.step()
    assert peaceful.world.lock
    assert peaceful.world.lock_presses == presses


def test_a_lock_that_is_tapped_late_in_a_step_is_released_in_it(peaceful):
    world = peaceful.world
    world.lock, world.habits.refuses_lock = False, True
    assert not peaceful.step()["lock_on"]
    begin, presses, tick = world.ticks, world.lock_presses, world.tick

    def lapse_after_the_release():
        tick()
        if world.ticks == begin + 4:
            world.habits.lapse, world.habits.refuses_lock = True, False

    world.tick = lapse_after_the_release
    peaceful.step()
    assert peaceful.note["lapses"] == 1
    assert world.lock_presses == presses + 2
    assert world.lock
    assert not world.keys.down
    peaceful.step()
    assert world.lock_presses == presses + 2


def test_a_boss_behind_the_camera_is_turned_to(peaceful):
    peaceful.world.lock = False
    peaceful.world.view += math.pi - 0.2
    peaceful.play(15)
    assert peaceful.world.lock


# ---- trouble


def test_pointers_that_fail_for_a_while_are_waited_out(peaceful):
    peaceful.world.habits.unreadable_ticks = 20
    fight = peaceful.step(FORWARD)
    assert fight["outcome"] == Outcome.RUNNING
    assert peaceful.note["ticks"] >= 20
    assert peaceful.step(FORWARD)["outcome"] == Outcome.RUNNING
    assert peaceful.note["ticks"] == 6


@pytest.mark.parametrize(
    ("habit", "value", "failure"),
    [
        ("unreadable_ticks", 10**6, "not in game"),
        ("hung", True, "no tick for 2 s"),
        ("gone", True, "has ended"),
        ("menu", True, "keys: 10 actions had no effect; a menu may be open"),
        ("ignores_keys", True, "keys: 10 actions had no effect"),
    ],
)
def test_what_does_not_pass_breaks_the_fight_off_and_raises_nothing(peaceful, habit, value, failure):
    setattr(peaceful.world.habits, habit, value)
    slept = peaceful.source.slept
    fight = peaceful.play(12, FORWARD)
    assert fight["outcome"] == Outcome.BROKEN
    assert failure in peaceful.note["failure"]
    assert peaceful.source.slept - slept < 10.0
    assert not fight["action_mask"][:NOTHING].any()
    assert in_space(peaceful)
    assert not peaceful.world.keys.down


def test_after_a_menu_the_next_reset_closes_it(peaceful):
    peaceful.world.habits.menu = True
    peaceful.play(12, FORWARD)
    peaceful.begin()
    assert not peaceful.world.habits.menu
    assert "failure" not in peaceful.note


def test_bare_hands_are_noticed_and_the_next_reset_looks_at_the_weapon(peaceful):
    peaceful.world.habits.unarmed = True
    peaceful.step(LIGHT)
    assert "AttackBare" in peaceful.note["weapon"]
    peaceful.world.habits.unarmed = False
    peaceful.play(5)
    peaceful.begin()
    assert "weapon" in peaceful.note["stages"]


def test_lost_focus_is_regained_and_the_keys_pressed_again(peaceful):
    peaceful.step(FORWARD)
    peaceful.world.window.focused = False
    fight = peaceful.step(FORWARD)
    assert fight["outcome"] == Outcome.RUNNING
    assert peaceful.note["focus_lost"] == 1
    assert peaceful.world.window.focused
    assert peaceful.world.keys.down == {"W"}
    assert peaceful.note["ticks"] == 6


def test_focus_lost_for_good_breaks_the_fight_off(peaceful):
    peaceful.world.window.focused = peaceful.world.window.regains = False
    assert peaceful.step(FORWARD)["outcome"] == Outcome.BROKEN
    assert "focus" in peaceful.note["failure"]
    peaceful.world.window.regains = True
    peaceful.begin()


def test_focus_that_is_lost_while_pressing_is_regained(peaceful):
    send, failures = peaceful.world.keys.send, [FocusLost("another window is in front")]

    def fail_once(changes):
        if failures:
            raise failures.pop()
        send(changes)

    peaceful.world.keys.send = fail_once
    assert peaceful.step(FORWARD)["outcome"] == Outcome.RUNNING
    assert peaceful.world.keys.down == {"W"}


def test_focus_that_the_system_is_wrong_about_is_asked_for_again(peaceful):
    world = peaceful.world
    world.habits.ignores_keys = True
    activate = world.window.activate
    world.window.activate = lambda *limit: (setattr(world.habits, "ignores_keys", False), activate())
    assert peaceful.play(8, FORWARD)["outcome"] == Outcome.RUNNING
    assert peaceful.note["player_animation_name"] == "Move"


def test_a_clock_that_ran_on_is_taken_up_again(peaceful):
    peaceful.world.habits.lapse = True
    assert peaceful.step(FORWARD)["outcome"] == Outcome.RUNNING
    assert peaceful.note["lapses"] == 1
    before = peaceful.world.ticks
    peaceful.step(FORWARD)
    assert peaceful.world.ticks - before == 6


def test_a_game_that_ended_needs_a_launch_command(peaceful):
    peaceful.world.habits.gone = True
    peaceful.step()
    with pytest.raises(StageFailed, match="give a launch command"):
        peaceful.begin()
    assert peaceful.fight["outcome"] == Outcome.BROKEN


def test_another_health_than_the_data_say_is_noted():
    ring = Ring()
    ring.world._respawn = _wounded(ring.world, ring.world._respawn)
    ring.begin()
    assert "(400, 95, 1037)" in ring.note["maxima"]
    assert in_space(ring)


def _wounded(world, respawn):
    def weaker():
        respawn()
        world.hp = world.max_hp = 400

    return weaker


# ---- several games


def test_several_games_side_by_side_are_as_one_after_the_other():
    def played(n):
        ring = Ring(n=n).begin()
        for i in range(30):
            ring.step(*[FORWARD if i % 3 else LIGHT] * n)
        ring.engine.close()
        return [record.tobytes() for record in ring.engine.fights]

    assert played(2) == played(1) * 2


def test_one_broken_game_does_not_end_the_other():
    ring = Ring(n=2).begin()
    ring.world.habits.gone = True
    ring.step(FORWARD, FORWARD)
    assert ring.engine.fights["outcome"].tolist() == [Outcome.BROKEN, Outcome.RUNNING]
    ring.step(FORWARD, FORWARD)
    assert ring.engine.fights["step"].tolist() == [1, 2]
    ring.engine.close()


def test_only_the_masked_fights_begin_anew():
    ring = Ring(n=2).begin()
    ring.step(FORWARD, FORWARD)
    ring.engine.reset(np.array([True, False]), standard_starts(2))
    assert ring.engine.fights["step"].tolist() == [0, 1]
    ring.engine.close()


def test_an_error_in_one_reset_is_raised_when_all_are_done():
    ring = Ring(n=2)
    ring.world.habits.ignores_keys = True
    with pytest.raises(StageFailed, match="menu"):
        ring.begin()
    assert ring.engine.fights["outcome"].tolist() == [Outcome.BROKEN, Outcome.RUNNING]
    ring.engine.close()


# ---- snapshots and closing


def test_a_snapshot_gives_back_health_and_phase_in_a_new_fight(ring):
    ring.meet()
    while ring.fight["player_hp"][0] == 454:
        ring.step()
    snapshot = ring.engine.snapshot()
    ring.play(10)
    ring.engine.restore(snapshot)
    assert snapshot.kind == KIND
    assert (ring.fight["player_hp"][0], ring.fight["step"], ring.fight["outcome"]) == (334.0, 0, Outcome.RUNNING)
    assert math.dist(ring.world.pose, ring.plan.player_start) < 1.0


def test_a_snapshot_of_a_finished_fight_stays_finished(ring):
    ring.begin(player_hp=10.0)
    ring.meet()
    ring.play(40)
    snapshot = ring.engine.snapshot()
    ring.begin()
    ring.engine.restore(snapshot)
    assert ring.fight["outcome"] == Outcome.DIED


def test_a_snapshot_of_another_kind_is_refused(ring):
    snapshot = ring.engine.snapshot()
    with pytest.raises(StartError, match="kind 'sim-1'"):
        ring.engine.restore(Snapshot("sim-1", snapshot.fights, snapshot.hidden))
    with pytest.raises(StartError, match="holds 2 fights"):
        ring.engine.restore(Snapshot(KIND, np.repeat(snapshot.fights, 2), snapshot.hidden))


def test_closing_puts_everything_back_and_may_be_done_again():
    ring = Ring()
    before = dict(ring.world.permissions)
    game = ring.engine.games[0]
    ring.begin().step(FORWARD)
    assert ring.world.permissions != before
    ring.engine.close()
    ring.engine.close()
    assert ring.world.permissions == before
    assert (ring.world.bonus_range, ring.world.unseen_s, ring.world.speed) == (0.0, 2.0, 1.0)
    assert not ring.world.keys.down
    assert game.closed == 1
    with pytest.raises(MisuseError, match="closed"):
        ring.step()


@pytest.mark.parametrize("habit", ["gone", "hung"])
def test_closing_a_broken_game_raises_nothing(peaceful, habit):
    setattr(peaceful.world.habits, habit, True)
    peaceful.step()
    peaceful.engine.close()
    assert peaceful.engine.games[0].closed == 1


def test_an_interrupted_step_lets_go_of_the_keys(peaceful):
    peaceful.world.habits.interrupt_at_tick = peaceful.world.ticks + 3
    with pytest.raises(KeyboardInterrupt):
        peaceful.step(FORWARD)
    assert not peaceful.world.keys.down
    peaceful.engine.close()
    assert peaceful.world.speed == 1.0


def test_a_game_run_by_speed_counts_its_own_time():
    ring = Ring(stepping="speed", game_speed=1.0).begin()
    ring.world.permissions["allow_attacks"] = False
    ring.play(20, FORWARD)
    assert ring.note["stepping"] == "speed"
    assert ring.fight["time_s"] == pytest.approx(2.0, rel=0.1)
    assert ring.world.speed == 0.0


def test_a_game_that_another_environment_took_is_named():
    game = fake_game()
    engine = GameEngine(load_fight("iudex", moves=False).game, [game], source=game.source)
    Game.close(game)
    with pytest.raises(MisuseError, match=r"the game \(pid 7\) was taken by another environment of this program"):
        engine.reset(np.ones(1, np.bool_), standard_starts(1))
    engine.close()


@pytest.mark.parametrize("stepping", ["ticks", "speed"])
def test_a_game_that_uses_keys_up_while_its_clock_stands_gets_them_while_it_runs(stepping):
    ring = Ring(stepping=stepping, game_speed=1.0)
    ring.engine.games[0].world.habits.keys_every_frame = True
    ring.begin()
    world, before = ring.engine.games[0].world, ring.engine.games[0].world.lights
    assert ring.engine.notes[0]["keys_pressed"].startswith("while time passes")
    world.permissions["allow_attacks"] = False  # of the boss
    for _ in range(10):
        ring.step(LIGHT)
        for _ in range(12):
            ring.step(NOTHING)
    assert world.lights == before + 10
    assert (ring.engine.notes[0]["presses"], ring.engine.notes[0]["presses_answered"]) == (10, 10)


def test_a_game_that_takes_keys_at_any_time_gets_them_while_its_clock_stands():
    ring = Ring().begin()
    assert ring.engine.notes[0]["keys_pressed"] == "while the clock stands"


def test_one_press_that_a_busy_machine_lost_does_not_decide_how_keys_are_pressed():
    ring, lost = Ring(), []

    def lose_the_first(key, down):
        if down and ring.world.speed == 0.0 and not lost:
            lost.append(key)
            ring.world.keys.down.discard(key)

    ring.world.keys.watch = lose_the_first
    ring.begin()
    assert lost
    assert ring.note["keys_pressed"] == "while the clock stands"


def test_presses_that_are_not_answered_break_the_fight_off_with_a_name():
    ring = Ring().begin()
    ring.engine.games[0].world.habits.keys_every_frame = True  # from now on: nobody has found out
    ring.engine.games[0].world.permissions["allow_attacks"] = False
    for _ in range(40):
        ring.step(LIGHT)
        ring.step(FORWARD)
        ring.step(FORWARD)
        if ring.engine.fights["outcome"][0] != Outcome.RUNNING:
            break
    assert ring.engine.fights["outcome"][0] == Outcome.BROKEN
    assert "12 presses in a row were not answered, 0 of 12 in this fight" in ring.engine.notes[0]["failure"]
    ring.begin()
    assert ring.engine.notes[0]["keys_pressed"].startswith("while time passes")
