"""Fights that are kept beside a run: which, with what, and how many."""

import numpy as np
import pytest

from soulsai.algorithms.algorithm import algorithm_of
from soulsai.config import load_preset, with_settings
from soulsai.errors import RunError
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsai.evaluation.thoughts import read_fight_file
from soulsai.learning.scoring import evaluate_policy
from soulsai.learning.showing import KEPT, keep_fights
from soulsgym.state import Outcome


@pytest.fixture
def setting(random_networks):
    config = with_settings(load_preset("smoke"), ["network.hidden=[8]", "fight.step_limit=40"])
    return config, algorithm_of(config).policy(random_networks(config))


@pytest.fixture
def recorder(setting):
    found = FightRecorder(4)
    evaluate_policy(*setting, 4, seed=2, recorder=found)
    return found


def won(recorder, *numbers):
    """As if these had been won."""
    for number in numbers:
        recorder._recordings[number].fights["outcome"][-1] = Outcome.WON
    return recorder


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "mine" / "recordings"


def test_keeps_the_first_and_the_first_lost(setting, recorder, folder):
    config, policy = setting
    files = keep_fights(folder, config, policy, won(recorder, 0, 1), 1234)
    assert [file.name for file in files] == ["eval-000000001234-first.npz", "eval-000000001234-lost.npz"]
    first, lost = (read_fight_file(file) for file in files)
    assert (first.about["fight"], lost.about["fight"]) == (0, 2)
    assert first.about["run"] == "mine"
    assert first.about["step"] == 1234
    assert first.about["engine"] == "sim"
    assert first.about["seed"] == 2
    assert np.array_equal(lost.recording.fights, recorder.fight(2).fights)
    for told in (first, lost):
        chosen = np.array(told.thoughts.actions)[told.thoughts.chosen]
        assert chosen.tolist() == told.recording.actions[told.thoughts.records + 1].tolist()


def test_a_first_fight_that_is_lost_is_kept_once(setting, recorder, folder):
    assert [file.name for file in keep_fights(folder, *setting, recorder, 5)] == ["eval-000000000005-first.npz"]
    assert keep_fights(folder, *setting, won(recorder, 0, 1, 2, 3), 6) == [folder / "eval-000000000006-first.npz"]


def test_nothing_was_seen(setting, folder):
    folder.mkdir(parents=True)
    assert keep_fights(folder, *setting, FightRecorder(), 5) == []


def test_removes_only_its_own_oldest(setting, recorder, folder):
    folder.mkdir(parents=True)
    others = ["mine.npz", "eval-1-first.npz", "eval-000000000001-best.npz", "notes.txt"]
    for name in [*others, *(f"eval-{step:012d}-first.npz" for step in range(KEPT))]:
        (folder / name).write_bytes(b"x")
    keep_fights(folder, *setting, recorder, 1000)
    left = sorted(file.name for file in folder.iterdir())
    assert set(others) <= set(left)
    assert "eval-000000000000-first.npz" not in left
    assert "eval-000000000001-first.npz" in left
    assert len(left) == KEPT + len(others)


def test_a_policy_that_cannot_be_looked_into(setting, recorder, folder):
    config, policy = setting

    class Exported:
        choose = policy.choose

    (file,) = keep_fights(folder, config, Exported(), recorder, 5)
    told = read_fight_file(file)
    assert told.thoughts is None
    assert told.about["step"] == 5


def test_no_room_or_no_permission(setting, recorder, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(RunError, match="cannot be written"):
        keep_fights(tmp_path / "file" / "recordings", *setting, recorder, 5)
