"""Tests of waiting with limits."""

import time

import pytest
from fake_game import FakeTime

from soulsgym.errors import GameGone, GameHung, ReadFailed, StageFailed
from soulsgym.game.waits import RealTime, Waits, sleep_until


@pytest.fixture
def source():
    return FakeTime()


def waits(source, limit_s=10.0, running=lambda: True, pulse=None):
    return Waits("poses", limit_s, source, running, pulse)


def test_what_comes_true_ends_the_wait(source):
    answers = iter([False, False, True])
    waits(source).until(lambda: next(answers), "no", every_s=0.5)
    assert source.slept == pytest.approx(1.0)


def test_what_does_not_come_true_fails_by_its_name_and_in_time(source):
    with pytest.raises(StageFailed, match="poses: he does not stand") as caught:
        waits(source).until(lambda: False, "he does not stand", limit_s=2.0)
    assert caught.value.stage == "poses"
    assert source.slept == pytest.approx(2.0, abs=0.02)


def test_the_limit_of_the_stage_holds_for_all_waits_together(source):
    one = waits(source, 3.0)
    assert not one.comes_true(lambda: False, limit_s=2.0)
    assert not one.comes_true(lambda: False, limit_s=2.0)
    assert source.slept == pytest.approx(3.0, abs=0.03)
    assert one.left_s() == 0.0
    with pytest.raises(StageFailed, match="too long altogether"):
        one.sleep(0.1)


def test_a_loading_game_may_be_unreadable_but_no_other(source):
    def unreadable():
        raise ReadFailed(1, "not in game")

    assert not waits(source).comes_true(unreadable, limit_s=1.0, unreadable=True)
    with pytest.raises(ReadFailed):
        waits(source).comes_true(unreadable, limit_s=1.0)


def test_a_game_that_has_ended_is_said_to_be_gone(source):
    with pytest.raises(GameGone):
        waits(source, running=lambda: False).until(lambda: False, "no", limit_s=0.1)


def test_a_game_without_a_pulse_hangs(source):
    with pytest.raises(GameHung, match="done nothing for 5 s"):
        waits(source, 100.0, pulse=lambda: 3).until(lambda: False, "no")
    assert source.slept < 6.0


def test_a_game_with_a_pulse_is_waited_for(source):
    beats = iter(range(10_000))
    assert not waits(source, 8.0, pulse=lambda: next(beats)).comes_true(lambda: False)


def test_a_game_that_hardly_gets_to_run_is_given_more_time(source):
    """A key has no effect in a program that has not turned since."""

    def turns():
        return int(20 * source.at)  # of a busy machine: 20 turns a second

    begun = source.at
    assert waits(source, pulse=turns).comes_true(lambda: turns() - int(20 * begun) >= 25, limit_s=0.5)
    assert not waits(source, pulse=turns).comes_true(lambda: False, limit_s=0.5)
    assert source.at - begun < 1.5 + 1.6
    begun = source.at
    assert not waits(source, 1.0, pulse=turns).comes_true(lambda: False, limit_s=0.5)
    assert source.at - begun < 1.1


def test_real_time_passes_while_one_sleeps():
    source = RealTime()
    moment = time.perf_counter() + 0.002
    sleep_until(source, moment)
    assert time.perf_counter() >= moment


@pytest.mark.parametrize("late_s", [0.0, 0.0001, 0.00019])
def test_a_moment_is_met_although_the_system_wakes_up_late(source, monkeypatch, late_s):
    prompt = source.sleep
    monkeypatch.setattr(source, "sleep", lambda seconds: prompt(seconds + late_s))
    moment = source.now() + 0.002
    sleep_until(source, moment)
    assert moment <= source.at < moment + 5e-6
