"""Fights that are played tick by tick, and their recording."""

import numpy as np
import pytest

from soulsgym.actions import ACTION_NAMES, CONTROL, NO_DIRECTION, NOTHING, Button
from soulsgym.envs.simulated import FightSettings
from soulsgym.play.session import FEWEST_RECORDS, PlaySession, action_of
from soulsgym.recordings import read_recording, write_recording
from soulsgym.recordings.exact import exact_departures
from soulsgym.state import Outcome

IDLE = np.array([(NO_DIRECTION, Button.NONE)], CONTROL)


def mash(session, ticks, seed=0):
    """Random keys, a new one every few ticks."""
    rng = np.random.default_rng(seed)
    for tick in range(ticks):
        if tick % 5 == 0:
            control = np.array([(rng.integers(-1, 8), rng.integers(0, 5))], CONTROL)
        session.tick(control)
        control["button"] = Button.NONE


@pytest.mark.parametrize("boss", ["iudex", "vordt", "margit"])
def test_repeated_to_the_last_bit(boss, tmp_path):
    session = PlaySession(FightSettings(boss, changes=True), seed=3)
    for number in range(2):
        mash(session, 700, number)
        session.begin()
    write_recording(tmp_path / "played.npz", session.recording())
    recording = read_recording(tmp_path / "played.npz")
    assert len(recording.bounds()) == 2
    assert recording.simulation.seeds == (3, 4)
    assert recording.controls.shape == (len(recording), 6, 2)
    assert [departure.step for departure in exact_departures(recording)] == [None, None]


def test_another_key_is_another_fight():
    session = PlaySession(FightSettings("iudex"), seed=3)
    for _ in range(180):
        session.tick(IDLE)
    session.keep()
    recording = session.recording()
    recording.controls[20] = (2, Button.NONE)
    assert exact_departures(recording)[0].step == 20


def test_a_fight_is_kept_once_and_only_if_it_was_one(session):
    for _ in range(6 * (FEWEST_RECORDS - 2)):
        session.tick(IDLE)
    assert not session.keep()
    assert session.recording() is None
    for _ in range(6):
        session.tick(IDLE)
    assert session.keep()
    assert not session.keep()
    assert session.seeds == [5]
    session.begin()
    assert session.seed == 6


def test_nothing_happens_after_the_end(session):
    for _ in range(20_000):
        session.tick(IDLE)
        if session.is_over:
            break
    assert session.fight["outcome"] == Outcome.DIED
    before = session.fight.copy()
    session.tick(IDLE)
    assert session.fight == before
    session.keep()
    recording = session.recording()
    assert recording.fights["outcome"][-1] == Outcome.DIED
    assert (np.diff(recording.fights["step"]) == 1).all()
    assert session.endings()["outcome"].tolist() == [Outcome.DIED]


@pytest.mark.parametrize(
    ("ticks", "name"),
    [
        ([(-1, 0)] * 6, "nothing"),
        ([(-1, 0)] * 4 + [(2, 0)] * 2, "walk R"),
        ([(0, 0), (0, 0), (6, 1), (6, 0), (6, 0), (6, 0)], "roll L"),
        ([(0, 0), (3, 2), (0, 0), (0, 0), (0, 0), (0, 0)], "light attack"),
        ([(-1, 0)] * 5 + [(-1, 1)], "roll B"),
    ],
)
def test_the_action_nearest_to_six_ticks(ticks, name):
    assert ACTION_NAMES[action_of(np.array(ticks, np.int8))] == name


def test_nothing_pressed_is_no_action():
    assert action_of(np.tile(np.array([-1, 0], np.int8), (6, 1))) == NOTHING
