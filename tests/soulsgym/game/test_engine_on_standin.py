"""Whole fights with the stand-in: a Windows program with the memory, keys and clock of the game, under Wine."""

import dataclasses
import itertools
import math
import sys
import time

import numpy as np
import pytest

from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.engine import standard_starts
from soulsgym.envs.spaces import limits_of, observation_space
from soulsgym.errors import StageFailed
from soulsgym.game import reset
from soulsgym.game.attach import attach
from soulsgym.game.engine import GameEngine
from soulsgym.game.keyboard import load_bindings
from soulsgym.game.windows.keys import virtual_key
from soulsgym.spec import load_fight
from soulsgym.state import Outcome, observation_of

pytestmark = [pytest.mark.wine, pytest.mark.usefixtures("no_lapse")]

FORWARD, ROLL, LIGHT = 0, 8, 16
KEYS = {action: virtual_key(key) for action, key in load_bindings("darksouls3").items()}
ON_WINDOWS = sys.platform == "win32"
STEPS, EPISODES, SETUP_SPEED = (60, 2, 3.0) if ON_WINDOWS else (500, 10, 8.0)
"""By Windows Python under Wine a step takes a tenth of a second: every field is read by itself there."""


class Bout:
    """Engines on stand-ins, and what a test does with them."""

    def __init__(self, standins, boss="iudex", **settings):
        self.standins = list(standins)
        self.plan = load_fight(boss, moves=False).game
        games = [attach("darksouls3", standin.pid) for standin in self.standins]
        self.engine = GameEngine(self.plan, games, **{"game_speed": math.inf, **settings})
        self._random = np.random.default_rng(0)

    @property
    def standin(self):
        return self.standins[0]

    @property
    def fight(self):
        return self.engine.fights[0]

    @property
    def note(self):
        return self.engine.notes[0]

    def begin(self, seed=None, **start):
        n = len(self.standins)
        starts = standard_starts(n)
        for key, value in start.items():
            starts[key] = value
        seeds = None if seed is None else np.full(n, seed, np.uint64)
        self.engine.reset(np.ones(n, np.bool_), starts, seeds)
        assert (self.engine.fights["outcome"] == Outcome.RUNNING).all()
        return self

    def step(self, action=NOTHING, *, skip=False):
        self.engine.step(ACTION_CONTROLS[np.full(len(self.standins), action)], skip=skip)
        return self.fight

    def any_action(self):
        return int(self._random.choice(np.flatnonzero(self.fight["action_mask"])))

    def play(self, steps, action=None):
        """Play until the fight is over, at most so many steps; the ticks of each by the stand-in's own count."""
        ticks = []
        while len(ticks) < steps and self.fight["outcome"] == Outcome.RUNNING:
            before = self.standin.ticks
            self.step(self.any_action() if action is None else action)
            ticks.append(self.standin.ticks - before)
        return ticks

    def is_in_space(self):
        space = observation_space(limits_of(load_fight(self.plan.boss, moves=False)))
        return space.contains({key: values[0] for key, values in observation_of(self.engine.fights).items()})


@pytest.fixture
def bout(start_standin):
    """A function that makes an engine on a new stand-in; it is closed after the test."""
    made = []

    def make(*switches, boss="iudex", **settings):
        standin = start_standin("--start", "arena", "--boss", boss, *switches, room=1)
        made.append(Bout([standin], boss, **{"setup_speed": SETUP_SPEED, **settings}))
        return made[-1]

    yield make
    for one in made:
        one.engine.close()


@pytest.fixture(scope="module")
def _kept():
    made = []
    yield made
    for one in made:
        one.engine.close()


@pytest.fixture
def lasting(wine, standin_exe, _kept):
    """One engine for all tests that leave the game usable; another one if a test needed its room."""
    if not _kept or not _kept[-1].standin.is_running():
        _kept.append(Bout([wine.start("--start", "arena", executable=standin_exe)], setup_speed=SETUP_SPEED))
    return _kept[-1]


@pytest.fixture
def patient(lasting, monkeypatch):
    """The same, but it is waited for until every key has arrived, also beside busy programs."""
    fight = lasting.engine._fights[0]
    for name in ("_press", "_release"):
        seen = lasting.standin.until_seen(getattr(fight, name), KEYS, lambda: fight.game.keyboard.held)
        monkeypatch.setattr(fight, name, seen)
    return lasting


def test_a_long_run_of_steps_is_six_ticks_each_and_stays_in_the_observation_space(lasting):
    steps = 0
    while steps < STEPS:
        lasting.begin()
        ticks = lasting.play(min(250, STEPS - steps))
        assert set(ticks) == {6}
        assert lasting.is_in_space()
        steps += len(ticks)
    assert lasting.note["stepping"] == "ticks"
    assert lasting.note["lapses"] == 0


def test_episode_after_episode_needs_nobody(lasting):
    outcomes = []
    for episode in range(EPISODES):
        lasting.begin(seed=episode, player_hp=30.0, boss_pose=(134.0, 578.0, 0.4), random_pose=episode % 2)
        lasting.play(30, NOTHING)
        outcomes.append(int(lasting.fight["outcome"]))
    assert Outcome.DIED in outcomes
    assert Outcome.BROKEN not in outcomes


def test_keys_arrive_in_the_first_tick_and_are_held_for_three(patient):
    patient.begin()
    before = patient.standin.look()
    patient.step(ROLL)
    events = [event for event in patient.standin.look().seen() if event[0] == "dinput" and event[3] >= before.ticks]
    pressed = {(key, down): tick - before.ticks for _, key, down, tick in events}
    assert pressed[0x20, True] <= 1
    assert pressed[0x20, False] - pressed[0x20, True] == 3
    assert patient.note["player_animation_name"].startswith("Rolling")
    played = 5 - pressed[0x20, True]  # ticks; beside busy programs a key is seen, or used, a tick late
    assert round(6 * float(patient.fight["player_animation_duration"][0]) / 0.097, 2) in (played, played - 1)


def test_a_closed_action_presses_nothing(patient):
    patient.begin()
    patient.step(ROLL)
    rolls = patient.standin.look().rolls
    for _ in range(3):
        assert not patient.fight["action_mask"][ROLL]
        patient.step(ROLL)
    assert patient.standin.look().rolls == rolls


def test_skipping_goes_on_until_there_is_a_choice(patient):
    patient.begin()
    before = patient.standin.ticks
    fight = patient.step(LIGHT, skip=True)
    assert fight["step"] > 5
    assert patient.standin.ticks - before == 6 * fight["step"]
    assert fight["action_mask"][:NOTHING].any()


@pytest.mark.parametrize(
    "trouble",
    [
        {"player_unknown_ticks": 20}, {"boss_unknown_ticks": 20}, {"null_chains_ticks": 30}, {"drop_lock_on": 1},
        {"lag_ms": 15}, {"lose_focus_ticks": 40}, {"fall": 1}, {"kill_player": 1}, {"wrong_flags": 1}, {"menu_open": 1},
    ],
    ids=lambda trouble: next(iter(trouble)),
)  # fmt: skip
def test_trouble_in_a_fight_is_survived(lasting, trouble):
    lasting.begin()
    lasting.standin.mail(**trouble)
    lasting.play(25, FORWARD)
    assert lasting.is_in_space()
    if "lag_ms" in trouble:
        lasting.standin.mail(lag_ms=0)
    lasting.begin()
    assert set(lasting.play(5)) == {6}


def test_an_unknown_animation_is_counted(lasting):
    lasting.begin()
    lasting.standin.mail(player_unknown_ticks=12)
    assert lasting.step()["player_animation"] == -1
    assert sum(lasting.note["unknown_animations"].values()) >= 1


def test_a_lost_lock_comes_back(patient):
    patient.begin()
    patient.standin.mail(drop_lock_on=1)
    assert not patient.step()["lock_on"]
    for _ in range(8):
        patient.step()
    assert patient.fight["lock_on"]


def test_a_fall_is_caught_before_the_game_loads(lasting):
    lasting.begin()
    loads = lasting.standin.look().loads
    lasting.standin.mail(fall=1)
    lasting.play(3)
    assert lasting.fight["outcome"] == Outcome.FELL
    assert lasting.fight["player_hp"][0] == 0
    assert lasting.fight["damage_taken"] == lasting.plan.player_hp
    lasting.begin()
    assert lasting.standin.look().loads == loads


def test_the_title_screen_breaks_a_fight_off_and_is_left_again(lasting):
    lasting.begin()
    lasting.standin.mail(to_title=1)
    lasting.play(5)
    assert lasting.fight["outcome"] == Outcome.BROKEN
    assert "not in game" in lasting.note["failure"]
    lasting.begin()


@pytest.mark.parametrize(
    ("trouble", "action", "stage"),
    [
        ({"stuck": 1}, FORWARD, "poses"),
        ({"refuse_lock_on": 1, "drop_lock_on": 1}, NOTHING, "lock_on"),
        ({"unarmed": 1}, LIGHT, "weapon"),
        ({"ignore_keys": 1}, FORWARD, "menu"),
    ],
)
def test_trouble_in_a_reset_is_named_and_survived_once_it_has_passed(lasting, trouble, action, stage, monkeypatch):
    begun = lasting.begin().fight["player_pose"].copy()
    for _ in range(10):  # keys may get lost beside busy programs, and who has not left needs no help
        lasting.play(12, FORWARD)
        if np.linalg.norm(lasting.fight["player_pose"][:3] - begun[:3]) > 0.5:
            break
    hasty = [dataclasses.replace(one, limit_s=4.0) if one.name == stage else one for one in reset.STAGES]
    lasting.standin.mail(**trouble)
    try:
        lasting.play(5, action)
        with monkeypatch.context() as less:
            less.setattr(reset, "MOST_ATTEMPTS", 1)
            less.setattr(reset, "STAGES", hasty)
            with pytest.raises(StageFailed, match=stage):
                lasting.begin()
    finally:
        lasting.standin.mail(**dict.fromkeys(trouble, 0))
    lasting.begin()
    assert set(lasting.play(5)) == {6}


def test_the_second_phase(bout):
    one = bout(phase=2).begin()
    assert one.standin.look().phase == 2
    assert one.fight["phase"] == 2
    assert one.fight["boss_hp"][0] == one.plan.boss_hp
    assert set(one.play(40)) == {6}
    one.begin()
    assert "phase" not in one.note["stages"]
    one.begin(phase=1)
    assert one.standin.look().phase == 1
    assert one.fight["phase"] == 1


def test_vordt_in_both_phases_with_his_frost(bout):
    one = bout(boss="vordt").begin()
    assert set(one.play(60)) == {6}
    assert one.is_in_space()
    assert 0.0 <= one.engine.statuses["frost_resistance"][0, 0] <= 1.0
    one.begin(phase=2)
    assert one.fight["phase"] == 2
    assert set(one.play(5)) == {6}


def test_a_real_fight_is_lost_and_fought_again(bout):
    one = bout(changes=True).begin()
    for _ in range(2):
        deaths = one.standin.look().player_deaths
        one.engine.games[0].title.player_hp = 30
        one.step()
        for _ in itertools.takewhile(lambda _: one.fight["outcome"] == Outcome.RUNNING, range(600)):
            one.step(FORWARD if one.fight["step"] % 8 else NOTHING)
        assert one.fight["outcome"] == Outcome.DIED
        assert one.fight["player_hp"][0] == 0
        one.begin()
        assert one.standin.look().player_deaths > deaths
        assert one.note["stages"]["reload"] > 0
        assert one.note["stages"]["fog_gate"] > 0


def test_a_real_fight_goes_on_to_the_second_phase_and_is_won(bout):
    one = bout(changes=True).begin()
    title = one.engine.games[0].title
    assert one.fight["phase"] == 1
    title.iudex_hp = 400
    one.play(60, NOTHING)
    assert one.fight["phase"] == 2
    title.iudex_hp = 0
    one.play(10, NOTHING)
    assert one.fight["outcome"] == Outcome.WON
    one.begin()
    assert one.fight["phase"] == 1


def test_a_game_that_does_not_tick_by_our_clock_is_run_and_stopped(bout):
    one = bout("--uneven", game_speed=1.0).begin()
    assert one.note["stepping"] == "speed"
    assert one.note["stepping_because"]
    ticks = one.play(40)
    assert np.median(ticks) >= 5.5  # how many more there are until it stops depends on how busy the machine is
    assert one.fight["time_s"] == pytest.approx(sum(ticks) / 60, rel=0.2)


def test_play_time_that_passes_by_itself_is_found_out_and_not_counted_by(bout):
    one = bout("--own-time").begin()
    assert one.note["stepping"] == "ticks"
    assert "counted by its clock" in one.note["stepping_because"]
    ticks = one.play(40)
    # Nothing but the clock tells of ticks: some may be made a moment after their step, but none are lost or added.
    assert np.median(ticks) == 6
    assert sum(ticks) == pytest.approx(6 * len(ticks), abs=1)
    assert one.fight["time_s"] == pytest.approx(0.1 * int(one.fight["step"]))
    before = one.standin.ticks
    time.sleep(0.3)  # a learner thinks
    one.step(FORWARD)
    assert one.note["ticks"] == 6
    assert 5 <= one.standin.ticks - before <= 7


def test_a_game_that_counts_before_it_works_is_looked_at_after(bout):
    one = bout("--time-first").begin()
    assert one.note["stepping"] == "ticks"
    assert set(one.play(100)) == {6}


@pytest.mark.skipif(ON_WINDOWS, reason="two games on one Windows desktop share the keyboard")
def test_two_games_at_once_do_not_disturb_each_other(two_standins):
    bout = Bout(two_standins, setup_speed=8.0)
    try:
        bout.begin()
        for _ in range(12):
            before = [standin.ticks for standin in two_standins]
            bout.engine.step(ACTION_CONTROLS[[FORWARD, NOTHING]])
            assert [standin.ticks - last for standin, last in zip(two_standins, before, strict=True)] == [6, 6]
        moved = [math.dist(bout.plan.player_start[:2], fight["player_pose"][:2]) for fight in bout.engine.fights]
        assert moved[0] > 2.0 > 0.1 > moved[1]
    finally:
        bout.engine.close()


@pytest.mark.parametrize("trouble", ["crash", "hang"])
def test_a_game_that_ends_or_hangs_is_started_again(wine, standin_exe, trouble):
    started = []

    def launch():
        started.append(wine.start("--start", "title", executable=standin_exe, room=1))
        return started[-1]

    def relaunch(game):
        game.close()
        return attach("darksouls3", launch().pid)

    bout = Bout([launch()], relaunch=relaunch, setup_speed=SETUP_SPEED)
    try:
        bout.begin()
        bout.standin.mail(**{trouble: 1})
        bout.step(FORWARD)
        assert bout.fight["outcome"] == Outcome.BROKEN
        assert bout.note["failure"]
        bout.begin()
        bout.standins = started[-1:]
        assert bout.note["restarts"] == 1
        assert bout.engine.games[0].process.pid == started[-1].pid
        assert set(bout.play(5)) == {6}
    finally:
        bout.engine.close()
        started[-1].stop()


def test_closing_puts_everything_back(bout):
    one = bout()
    title = one.engine.games[0].title
    flags = ("allow_deaths", "allow_hits", "allow_attacks", "allow_moves", "lock_on_bonus_range", "gravity")
    before = {name: getattr(title, name) for name in flags}
    one.begin()
    one.step(FORWARD)
    assert title.lock_on_bonus_range != before["lock_on_bonus_range"]
    one.engine.close()
    one.engine.close()
    one.standin.nothing_held()
    again = attach("darksouls3", one.standin.pid)
    try:
        assert {name: getattr(again.title, name) for name in flags} == before
        assert again.clock.speed == 1.0
    finally:
        again.close()


def test_an_interrupted_step_leaves_no_key_down(bout, monkeypatch):
    one = bout().begin()
    monkeypatch.setattr(one.engine.games[0].clock, "advance", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        one.step(FORWARD)
    monkeypatch.undo()
    assert not one.engine.games[0].keyboard.held
    one.engine.close()
    one.standin.nothing_held()


def _interrupt(*_):
    raise KeyboardInterrupt


def test_a_game_that_uses_keys_up_while_its_clock_stands_is_found_out(start_standin):
    one = Bout([start_standin("--start", "arena", "--keys-every-frame")]).begin()
    try:
        assert one.note["keys_pressed"].startswith("while time passes")
        one.standin.mail(boss_still=1)
        before = one.standin.look()
        for _ in range(8):
            one.step(LIGHT)
            for _ in range(15):
                one.step(NOTHING)
        after = one.standin.look()
        assert after.light_attacks - before.light_attacks == one.note["presses_answered"] >= 4
    finally:
        one.engine.close()


def test_a_game_that_waits_for_the_screen_is_measured_and_said(start_standin):
    one = Bout([start_standin("--start", "arena", "--vsync")], game_speed=3.0).begin()
    try:
        assert "vertical sync" in one.note["stepping_because"]
        for _ in range(20):
            one.step(FORWARD)
            if one.note["stepping"] == "ticks":
                assert one.note["ticks"] == 6
    finally:
        one.engine.close()


def test_ticks_of_a_long_pause_are_told_and_no_part_of_a_step(bout):
    one = bout().begin()
    one.step(FORWARD)
    one.engine.games[0].clock.trickle_after_s = 0.2
    deadline = time.monotonic() + 60.0
    while one.engine.games[0].clock.trickled < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    one.engine.games[0].clock.trickle_after_s = math.inf
    one.step(FORWARD)
    assert one.note["idle_ticks"] >= 3
    assert one.note["ticks"] == 6
