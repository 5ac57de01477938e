"""Tests of letting the game run for one step and no further."""

import math
from fractions import Fraction

import pytest
from fake_game import FakeTime, fake_game

from soulsgym.errors import GameHung, MisuseError, SpeedControlError
from soulsgym.game import pacing
from soulsgym.game.pacing import SpeedPacer, TickPacer, choose_pacer, ticks_between


@pytest.fixture
def game():
    return fake_game(screen="arena")


def pacer_of(game, kind=TickPacer, **settings):
    return kind(game.clock, lambda: game.title.glance("iudex"), source=game.source, **settings)


def run(pacer, ticks=6, acts=None):
    seen = []
    passage = pacer.run(ticks, lambda tick, glance: seen.append((tick, glance.time_ms)), acts or {})
    return passage, seen


@pytest.mark.parametrize(
    ("before", "after", "ticks"),
    [(0, 0, 0), (0, 16, 1), (0, 17, 1), (100, 133, 2), (100, 108, 0), (100, 200, 6), (5000, 3, 1)],
)
def test_ticks_between_two_readings(before, after, ticks):
    assert ticks_between(before, after) == ticks


def test_a_step_is_exactly_six_ticks_each_told_once(game):
    pacer = pacer_of(game)
    pacer.begin()
    for _ in range(50):
        before = game.world.ticks
        passage, seen = run(pacer)
        assert game.world.ticks - before == 6
        assert (passage.ticks, passage.overshoot_s) == (6, 0.0)
        assert passage.game_s == pytest.approx(0.1)
        assert [tick for tick, _ in seen] == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("owed", [0.0, 0.2, 0.499, 0.74, 0.999])
def test_beginning_stops_half_a_tick_before_the_next(game, owed):
    game.world.owed = owed
    pacer = pacer_of(game)
    pacer.begin()
    assert game.world.speed == 0.0
    assert 0.25 <= game.world.owed <= 0.75


def test_an_act_follows_its_tick(game):
    pacer = pacer_of(game)
    pacer.begin()
    before, at = game.world.ticks, []
    run(pacer, acts={3: lambda: at.append(game.world.ticks - before), 6: lambda: at.append(game.world.ticks - before)})
    assert at == [3, 6]


def test_a_tick_too_many_shortens_the_rest_of_the_step(game):
    pacer = pacer_of(game)
    pacer.begin()
    game.world.give(2.0)  # two ticks that nobody asked for
    before = game.world.ticks
    passage, _ = run(pacer)
    assert passage.ticks == 6
    assert game.world.ticks - before == 4


def test_ticks_beyond_the_step_are_told_as_overshoot(game):
    pacer = pacer_of(game)
    pacer.begin()
    game.world.give(8.0)
    passage, _ = run(pacer)
    assert passage.ticks == 9
    assert passage.overshoot_s == pytest.approx(3 / 60)


def test_a_game_that_makes_no_tick_hangs_and_is_not_waited_for_long(game):
    pacer = pacer_of(game, limit_s=2.0)
    pacer.begin()
    game.world.habits.hung = True
    slept = game.source.slept
    with pytest.raises(GameHung, match="no tick for 2 s"):
        run(pacer)
    assert game.source.slept - slept < 2.5


def test_the_last_tick_is_looked_at_when_the_game_has_asked_for_the_time_again(game):
    """It may count before it works, and be held up in between for as long as other programs are busy."""
    pacer = pacer_of(game)
    pacer.begin()
    tick, pass_real, held_up = game.world.tick, game.world.pass_real, []

    def counts_first():
        hp = game.world.hp
        tick()
        held_up.append((game.source.at + 0.3, hp - 10))
        game.world.hp = hp

    def works_later(seconds):
        while held_up and (game.source.at >= held_up[0][0] or len(held_up) > 1):
            game.world.hp = held_up.pop(0)[1]
        if not held_up:
            pass_real(seconds)

    game.world.tick, game.world.pass_real = counts_first, works_later
    seen = []
    pacer.run(3, lambda _, glance: seen.append(glance.player_hp), {})
    assert seen[-1] == game.world.hp
    assert not held_up


def test_a_game_that_stops_asking_for_the_time_in_its_last_tick_hangs(game):
    pacer = pacer_of(game, limit_s=2.0)
    pacer.begin()
    game.world.pass_real = lambda seconds: None
    with pytest.raises(GameHung, match="has not asked for the time 2 times in 2 s"):
        run(pacer)


@pytest.mark.parametrize("behind", [1, 7, 30])
def test_beginning_waits_for_a_game_that_makes_up_for_many_ticks(game, behind):
    """Each of them may ask for the time, and the game may be held up between any two."""
    pacer = pacer_of(game)
    pass_real, left = game.world.pass_real, [behind]

    def slowly(seconds):
        pass_real(seconds)
        if left[0] and game.world.speed == 0.0:
            left[0] -= 1
            game.world.turns += 5
            game.world.give(1.0)

    game.world.pass_real = slowly
    pacer.begin()
    assert left == [0]
    before = game.world.ticks
    assert run(pacer)[0].ticks == 6
    assert game.world.ticks - before == 6


def test_a_clock_that_was_set_running_is_a_lapse_and_no_misuse(game):
    pacer = pacer_of(game)
    pacer.begin()

    def runs(ticks=1):
        raise MisuseError("the clock runs at speed 1; pause() it before advance()")

    game.clock.advance = runs
    with pytest.raises(SpeedControlError, match="runs at speed 1"):
        run(pacer)


def test_a_game_that_loads_cannot_be_begun(game):
    game.world.tick = lambda: None
    with pytest.raises(GameHung, match="no tick in 4 ticks' time"):
        pacer_of(game).begin()


@pytest.mark.parametrize("game_speed", [1.0, 3.0])
def test_a_finite_speed_is_kept(game, game_speed):
    pacer = pacer_of(game, game_speed=game_speed)
    pacer.begin()
    run(pacer)
    begin = game.source.now()
    for _ in range(10):
        run(pacer)
    assert game.source.now() - begin == pytest.approx(1.0 / game_speed, rel=0.02)


def test_time_that_the_agent_takes_is_not_made_up_for(game):
    pacer = pacer_of(game, game_speed=1.0)
    pacer.begin()
    run(pacer)
    game.source.sleep(5.0)
    begin = game.source.now()
    run(pacer)
    run(pacer)
    assert game.source.now() - begin > 0.18


def test_unlimited_speed_does_not_wait_for_the_clock_on_the_wall(game):
    pacer = pacer_of(game, game_speed=math.inf)
    pacer.begin()
    slept = game.source.slept
    for _ in range(10):
        run(pacer)
    assert game.source.slept - slept < 0.05


def test_polling_sleeps_between_looks(game):
    """A game that needs 10 ms for a tick is looked at some fifty times, not thousands."""
    pacer = pacer_of(game)
    pacer.begin()
    give, due = game.world.give, []
    game.world.give = lambda ticks: due.append(game.source.at + 0.01)
    pass_real = game.world.pass_real

    def late(seconds):
        pass_real(seconds)
        if due and game.source.at >= due[0]:
            due.clear()
            give(1)

    game.world.pass_real = late
    calls = game.title.calls
    run(pacer, 1)
    assert 20 < game.title.calls - calls < 80


@pytest.mark.parametrize("late_s", [0.0, 0.03, 0.4])
def test_by_speed_a_step_has_its_time_however_late_we_are_woken(game, late_s):
    pacer = pacer_of(game, SpeedPacer, game_speed=3.0)
    pacer.begin()
    prompt = game.source.sleep
    game.source.sleep = lambda seconds: prompt(seconds + late_s)
    before = game.world.ticks
    passages = [run(pacer)[0] for _ in range(20)]
    assert [passage.ticks for passage in passages] == [6] * 20
    assert all(abs(passage.overshoot_s) < 0.002 for passage in passages)
    assert game.world.ticks - before == 120
    assert game.world.speed == 0.0


def test_by_speed_a_clock_that_does_not_stop_is_told(game):
    pacer = pacer_of(game, SpeedPacer, game_speed=3.0)
    pacer.begin()
    game.clock.run = lambda ticks, factor: game.clock.set_speed(factor)
    with pytest.raises(SpeedControlError, match="kept running"):
        run(pacer)
    assert game.world.speed == 0.0


def test_by_speed_ticks_and_acts_are_told_as_they_are_seen(game):
    pacer = pacer_of(game, SpeedPacer, game_speed=1.0)
    pacer.begin()
    before, at = game.world.ticks, []
    passage, seen = run(pacer, acts={3: lambda: at.append(game.world.ticks - before)})
    assert [tick for tick, _ in seen] == list(range(1, passage.ticks + 1))
    assert at == [3]


def test_by_speed_a_standing_game_hangs_and_is_left_paused(game):
    pacer = pacer_of(game, SpeedPacer, game_speed=1.0, limit_s=2.0)
    pacer.begin()
    game.world.tick = lambda: None
    with pytest.raises(GameHung, match="stood still for 2 s"):
        run(pacer)
    assert game.world.speed == 0.0


def choose(game, **settings):
    return choose_pacer(game.clock, lambda: game.title.glance("iudex"), source=game.source, **settings)


def test_a_game_that_obeys_is_stepped_tick_by_tick(game):
    pacer = choose(game)
    assert pacer.stepping == "ticks"
    assert "12 of 12" in pacer.reason


@pytest.mark.parametrize(
    ("habit", "reason"),
    [
        ("uneven", "was 3 ticks"),
        ("double_ticks", "was 2 ticks"),
        ("runs_on", "keeps running while its clock is stopped"),
    ],
)
def test_a_game_that_does_not_is_run_and_stopped(game, habit, reason, caplog):
    setattr(game.world.habits, habit, True)
    pacer = choose(game)
    assert pacer.stepping == "speed"
    assert reason in pacer.reason
    assert reason in caplog.text
    assert game.world.speed == 0.0


def animated_of(game):
    def animated():
        sight = game.title.look("iudex")
        return sight.player_animation_s, sight.boss_animation_s

    return animated


@pytest.mark.parametrize("stepping", ["auto", "ticks"])
def test_play_time_that_passes_by_itself_is_not_what_ticks_are_counted_by(game, stepping):
    game.world.habits.own_time = True
    pacer = choose(game, animated=animated_of(game), stepping=stepping)
    assert pacer.stepping == "ticks"
    if stepping == "auto":
        assert "12 of 12" in pacer.reason
        assert "counted by its clock" in pacer.reason
    for _ in range(20):
        before = game.world.ticks
        passage, seen = run(pacer)
        assert (passage.ticks, game.world.ticks - before) == (6, 6)
        assert [tick for tick, _ in seen] == [1, 2, 3, 4, 5, 6]
        game.source.sleep(0.7)  # a learner thinks


def test_by_speed_play_time_that_passes_by_itself_is_no_part_of_a_step(game):
    game.world.habits.own_time = True
    pacer = choose(game, animated=animated_of(game), stepping="speed", game_speed=3.0)
    for _ in range(10):
        before = game.world.ticks
        assert run(pacer)[0].ticks == 6
        assert game.world.ticks - before == 6
        game.source.sleep(0.7)


def test_a_game_with_its_own_play_time_that_makes_two_ticks_at_once_is_run_and_stopped(game):
    game.world.habits.own_time = game.world.habits.double_ticks = True
    pacer = choose(game, animated=animated_of(game))
    assert pacer.stepping == "speed"
    assert "did not move the animations on by one tick" in pacer.reason


def test_a_game_that_goes_on_itself_is_not_taken_for_one_with_its_own_play_time(game):
    game.world.habits.runs_on = True
    pacer = choose(game, animated=animated_of(game))
    assert (pacer.stepping, pacer.reason) == ("speed", pacing.GOES_ON)


def test_a_busy_machine_is_not_taken_for_a_game_that_waits_for_the_screen(game):
    prompt, sleeps = game.source.sleep, []

    def held_up(seconds):
        sleeps.append(seconds)
        prompt(seconds + (0.05 if len(sleeps) % 3 == 0 else 0.0))

    game.source.sleep = held_up
    pacer = choose(game, game_speed=3.0)
    assert (pacer.stepping, pacer.ticks_per_frame) == ("ticks", 1)
    assert pacer.reason == "12 of 12 ticks came one by one"


def test_a_fault_that_does_not_show_again_is_none_of_the_game(game):
    pause, tries = game.clock.pause, []

    def begin():
        tries.append("begun")
        game.world.habits.double_ticks = len(tries) == 1
        pause()

    game.clock.pause = begin
    assert choose(game).stepping == "ticks"
    assert len(tries) == 2


def test_the_user_may_insist(game):
    game.world.habits.double_ticks = True
    assert choose(game, stepping="ticks").stepping == "ticks"
    game.world.habits.double_ticks = False
    assert choose(game, stepping="speed").stepping == "speed"
    with pytest.raises(MisuseError, match="stepping 'tick' is not known"):
        choose(game, stepping="tick")


def test_quarters_add_up_without_drift(game):
    """The clock is asked for exact fractions: their sum is a whole number of ticks and a half."""
    asked = []
    game.clock.advance = lambda ticks=1: (asked.append(ticks), game.world.give(float(ticks)))
    pacer = pacer_of(game)
    pacer.begin()
    assert all(isinstance(ticks, (int, Fraction)) for ticks in asked)
    assert sum(asked) * 4 == int(sum(asked) * 4)


def test_fake_time_notices_endless_waits():
    with pytest.raises(AssertionError, match="for ever"):
        FakeTime().sleep(10_000.0)


def chosen(game, **settings):
    return choose_pacer(game.clock, lambda: game.title.glance("iudex"), source=game.source, **settings)


def steps_per_s(game, pacer, steps=20):
    begun = game.source.at
    for _ in range(steps):
        assert run(pacer)[0].ticks == 6
    return steps / (game.source.at - begun)


def test_a_game_that_waits_for_the_screen_gets_several_ticks_a_frame(game, caplog):
    game.world.habits.frame_s = 1 / 60
    pacer = chosen(game, game_speed=3.0)
    assert pacer.stepping == "ticks"
    assert pacer.ticks_per_frame > 1
    assert "vertical sync" in pacer.reason
    assert "steps a second" in caplog.text
    assert steps_per_s(game, pacer) > 15.0


def test_acts_keep_their_tick_with_several_a_frame(game):
    pacer = pacer_of(game)
    pacer.ticks_per_frame = 6
    pacer.begin()
    before, at = game.world.ticks, []
    run(pacer, acts={0: lambda: at.append(0), 3: lambda: at.append(game.world.ticks - before)})
    assert at == [0, 3]


def test_a_slow_game_that_makes_one_tick_a_frame_stays_exact_and_says_so(game):
    game.world.habits.frame_s, game.world.habits.one_tick_a_frame = 1 / 20, True
    pacer = chosen(game, game_speed=1.0)
    assert (pacer.stepping, pacer.ticks_per_frame) == ("ticks", 1)
    assert "frames a second" in pacer.reason
    assert "one tick at a time" in pacer.reason


def test_a_game_that_is_surely_faster_by_speed_is_run_so(game, monkeypatch):
    monkeypatch.setattr(pacing, "SEVERAL", ())  # as if it never made what it is given at once
    game.world.habits.frame_s = 1 / 60
    pacer = chosen(game, game_speed=3.0)
    assert pacer.stepping == "speed"
    assert "steps a second by speed" in pacer.reason


def test_a_game_without_vertical_sync_gets_its_ticks_one_by_one(game):
    pacer = chosen(game, game_speed=3.0)
    assert (pacer.stepping, pacer.ticks_per_frame) == ("ticks", 1)
    assert pacer.reason == "12 of 12 ticks came one by one"


def test_no_tick_of_a_long_pause_can_come_between_the_look_and_the_step(game):
    """The clock is touched first, so that none passes by itself while keys are pressed."""
    pacer, order = pacer_of(game), []
    pacer.begin()
    game.clock.touch = lambda: order.append("touched") or 0
    run(pacer, acts={0: lambda: order.append("pressed")})
    assert order == ["touched", "pressed"]


def test_ticks_of_a_long_pause_are_no_part_of_the_next_step(game):
    pacer = pacer_of(game)
    pacer.begin()
    game.world.give(4.0)
    game.clock.trickled = 4
    before = game.world.ticks
    passage, _ = run(pacer)
    assert (passage.ticks, game.world.ticks - before) == (6, 6)
