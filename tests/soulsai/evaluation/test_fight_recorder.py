"""FightRecorder: the records of the first fights, exactly as they were played."""

import numpy as np
import pytest

from soulsai.evaluation import ScriptedFighter, evaluate
from soulsai.evaluation.evaluation import evaluation_seeds
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsgym.actions import controls_of
from soulsgym.engine import standard_starts
from soulsgym.errors import MisuseError
from soulsgym.recordings import read_recording, write_recording
from soulsgym.recordings.exact import exact_departures
from soulsgym.sim.engine import SimEngine
from soulsgym.spec import load_fight
from soulsgym.state import Outcome

FIGHTS = 9


@pytest.fixture(scope="module")
def seen():
    recorder = FightRecorder(6)
    # The duellist's own errors make some fights lost.
    evaluation = evaluate(ScriptedFighter("duellist", delay_s=0.2), FIGHTS, seed=5, recorder=recorder)
    return evaluation, recorder


def differing(one, other):
    return [name for name in one.dtype.names if not np.array_equal(one[name], other[name])]


def test_keeps_the_first_fights_to_their_ends(seen):
    evaluation, recorder = seen
    assert len(recorder) == 6
    for number in range(6):
        records = recorder.fight(number).fights
        assert records["outcome"][-1] == evaluation.outcome[number]
        assert len(records) == evaluation.steps[number] + 1
        assert records["step"].tolist() == list(range(len(records)))
        assert records["time_s"][-1] == pytest.approx(evaluation.time_s[number], abs=1e-3)
        assert (records["outcome"][:-1] == Outcome.RUNNING).all()
    with pytest.raises(MisuseError, match="fight 6 was not seen, only 6 were"):
        recorder.fight(6)


def test_actions_lead_from_record_to_record(seen):
    """Played again from the first record, the actions give every other one."""
    _, recorder = seen
    for number in (0, 3):
        recording = recorder.fight(number)
        engine = SimEngine(load_fight("iudex"), 1, phase=1, changes=True, randomize=0.0)
        engine.reset(np.ones(1, bool), standard_starts(1), evaluation_seeds(5, number, 1))
        assert differing(engine.fights[0], recording.fights[0]) == []
        for record, action in zip(recording.fights[1:], recording.actions[1:], strict=True):
            engine.step(controls_of(np.array([action])))
            assert differing(engine.fights[0], record) == []


def test_tells_which_were_lost(seen):
    evaluation, recorder = seen
    lost = [number for number in range(6) if evaluation.outcome[number] != Outcome.WON]
    assert recorder.lost_fights() == lost


def test_several_rounds_and_one_by_one_are_the_same():
    """However many are played side by side, the same fights are kept."""
    other = FightRecorder(6)
    evaluate(ScriptedFighter("idle"), 4, seed=5, batch=1, recorder=other, step_limit=40)
    beside = FightRecorder(6)
    evaluate(ScriptedFighter("idle"), 4, seed=5, recorder=beside, step_limit=40)
    assert len(other) == len(beside) == 4
    for number in range(4):
        assert np.array_equal(other.fight(number).fights, beside.fight(number).fights)
    assert other.lost_fights() == [0, 1, 2, 3], "the step limit loses"


def test_seeing_changes_nothing():
    """An evaluation with a recorder is the one without."""
    with_one, without = (
        evaluate(ScriptedFighter("duellist"), 3, seed=2, step_limit=200, recorder=recorder)
        for recorder in (FightRecorder(2), None)
    )
    assert with_one.to_json() == without.to_json()


def test_a_new_evaluation_forgets_the_last():
    recorder = FightRecorder(2)
    for seed in (1, 2):
        evaluate(ScriptedFighter("idle"), 2, seed=seed, step_limit=5, recorder=recorder)
        assert len(recorder) == 2
        assert recorder.settings.seed == seed


def test_does_not_keep_the_batch_alive():
    """What is kept is a copy of its own, not a slice of all fights."""
    recorder = FightRecorder(2)
    evaluate(ScriptedFighter("idle"), 20, seed=1, step_limit=5, recorder=recorder)
    for number in range(2):
        kept = recorder.fight(number).fights
        assert kept.base.nbytes == len(kept) * kept.itemsize == 6 * kept.itemsize


def test_nothing_seen():
    assert FightRecorder().lost_fights() == []
    with pytest.raises(MisuseError, match="a recorder of 0 fights"):
        FightRecorder(0)


@pytest.mark.parametrize(
    "settings", [{}, {"phase": 2, "full": False, "random_pose": True}, {"randomize": 1.0}, {"variant": "hard"}]
)
def test_a_fight_is_repeated_to_the_last_bit(tmp_path, settings):
    recorder = FightRecorder(3)
    evaluate(ScriptedFighter("duellist"), 3, seed=5, step_limit=120, recorder=recorder, **settings)
    for number in (0, 2):
        file = tmp_path / f"{number}.npz"
        write_recording(file, recorder.fight(number))
        [departure] = exact_departures(read_recording(file))
        assert (departure.step, departure.steps > 20) == (None, True)


@pytest.mark.parametrize("settings", [{"no_hit": True}, {"variant": "drawn:2"}])
def test_what_the_seed_alone_does_not_repeat_has_none(settings):
    recorder = FightRecorder(1)
    evaluate(ScriptedFighter("idle"), 1, step_limit=5, recorder=recorder, **settings)
    assert recorder.fight(0).simulation is None


def test_a_boss_of_ones_own_leaves_no_path_in_the_recording(sentinel):
    recorder = FightRecorder(1)
    evaluate(ScriptedFighter("idle"), 1, step_limit=5, recorder=recorder, boss=str(sentinel))
    assert recorder.fight(0).simulation is None
