"""Why somebody died, and whether the change that is told really saves him."""

from dataclasses import replace

import numpy as np
import pytest

from soulsai.evaluation import ScriptedFighter, evaluate
from soulsai.evaluation.autopsy import autopsy, causes_table, summary_of
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsgym.actions import CONTROL, NO_DIRECTION, NOTHING, Button
from soulsgym.envs.simulated import FightSettings, simulated_batch
from soulsgym.errors import RecordingError
from soulsgym.play.session import PlaySession
from soulsgym.spec import load_fight
from soulsgym.state import Outcome


def fought(player, boss, number=12, **settings):
    recorder = FightRecorder(number)
    evaluate(ScriptedFighter(player, boss=boss), number, boss=boss, recorder=recorder, **settings)
    return [recorder.fight(i) for i in range(len(recorder))]


@pytest.fixture(scope="module")
def recordings():
    return fought("duellist", "iudex", 16)


@pytest.fixture(scope="module")
def deaths(recordings):
    return autopsy(recordings)


def test_every_death_is_looked_into(recordings, deaths):
    died = [i for i, one in enumerate(recordings, 1) if one.fights["outcome"][-1] in (Outcome.DIED, Outcome.FELL)]
    assert [death.fight for death in deaths] == died
    assert len(died) >= 3


@pytest.mark.parametrize(("player", "boss"), [("duellist", "vordt"), ("idle", "margit"), ("roll_spam", "iudex")])
def test_at_least_95_in_100_changes_survive(player, boss):
    found = [death for death in autopsy(fought(player, boss, 10)) if death.change is not None]
    assert found
    assert np.mean([death.survives for death in found]) >= 0.95


def test_played_again_by_hand_from_the_seed(recordings, deaths):
    """Apart from the code that found it: the recorded actions, the change, and one fight alone."""
    death = next(death for death in deaths if death.change is not None)
    one = recordings[death.fight - 1]
    batch = simulated_batch(one.simulation.settings)

    def play(actions):
        batch.begin(seeds=np.array(one.simulation.seeds, np.uint64))
        for action in actions:
            batch.step(np.array([action]))
        return batch.record()["outcome"][0]

    assert play(one.actions[1:]) == Outcome.DIED
    start = len(one) - 20
    assert play([*one.actions[1:start], *death.change.actions]) in (Outcome.RUNNING, Outcome.WON)
    changed = one.actions[start:] != death.change.actions[:20]
    assert 1 <= changed.sum() <= 8


def test_both_fights_are_the_same_until_the_change(deaths):
    death = next(death for death in deaths if death.change is not None)
    assert death.before.fights["outcome"][-1] != Outcome.RUNNING
    same = min(len(death.before), len(death.after)) - 21
    assert np.array_equal(death.before.fights["player_pose"][:same], death.after.fights["player_pose"][:same])
    assert death.after.fights["step"][0] == death.before.fights["step"][0]
    assert len(death.after) > len(death.before)


def test_a_person_who_stands_there_could_have_rolled():
    session = PlaySession(FightSettings("iudex"), seed=2)
    idle = np.array([(NO_DIRECTION, Button.NONE)], CONTROL)
    while not session.is_over:
        session.tick(idle)
    session.keep()
    [death] = autopsy([session.recording()])
    assert death.survives
    assert death.change.text.split(" ")[0] in ("roll", "walk")


def test_words(deaths):
    rows = causes_table(deaths)
    assert sum(float(row[0].removesuffix(" %")) for row in rows) == pytest.approx(100, abs=len(rows))
    changed = sum(death.change is not None for death in deaths)
    assert summary_of(deaths, 16).startswith(f"{len(deaths)} deaths in 16 fights. {changed} had a way out")
    for death in deaths:
        assert death.killer in death.cause or death.cause.startswith(("falling", "being caught"))


def throws(one):
    """Did a throw kill him?"""
    moves = load_fight("iudex").boss.moves
    return moves[one.fights["killed_by"][-1]].name in {move.grab_move for move in moves if move.grab_move}


def test_a_grab_is_undone_before_it_catches():
    """The throw kills seconds after the grab: what is changed lies before the grab."""
    fights = [one for one in fought("duellist", "iudex", 40) if throws(one)]
    caught = [death for death in autopsy(fights) if death.cause.startswith("being caught by")]
    assert caught
    assert all(death.change is not None for death in caught)
    assert all(death.survives for death in caught)


def test_what_cannot_be_played_again(recordings):
    one = recordings[0]
    with pytest.raises(RecordingError, match="holds no seeds, so it cannot be played again; give a recording"):
        autopsy([replace(one, simulation=None)])
    with pytest.raises(RecordingError, match="recorded with other data of iudex"):
        autopsy([replace(one, simulation=replace(one.simulation, data="0" * 16))])
    died = next(each for each in recordings if each.fights["outcome"][-1] == Outcome.DIED)
    altered = replace(died, actions=np.where(np.arange(len(died)) == 5, NOTHING - 1, died.actions))
    with pytest.raises(RecordingError, match="is not what the simulator plays today"):
        autopsy([altered])


def test_no_deaths(recordings):
    won = [each for each in recordings if each.fights["outcome"][-1] == Outcome.WON]
    assert won
    assert autopsy(won) == []
