"""Recordings to Minari datasets and back."""

import importlib.util
import json

import gymnasium
import numpy as np
import pytest
from typer.testing import CliRunner

from soulsai.cli import main as cli
from soulsai.cli.watch import record_fights
from soulsai.evaluation import ScriptedFighter
from soulsai.evaluation.thoughts import about_boss, read_fight_file, write_fight_file
from soulsgym.errors import MisuseError, RecordingError
from soulsgym.recordings.recording import Recording, read_recording

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("minari") is None or importlib.util.find_spec("h5py") is None,
    reason="minari is not installed; run: pip install 'souls-arena[minari]'",
)
ID = "souls/iudex/test-v0"


def souls(*arguments):
    return CliRunner().invoke(cli.app, [str(argument) for argument in arguments])


def done(*arguments):
    result = souls(*arguments)
    assert result.exit_code == 0, result.exception or result.output
    return result.stdout


@pytest.fixture(scope="module")
def recording():
    env = gymnasium.make("SoulsGymIudexSimDemo-v0", disable_env_checker=True).unwrapped
    found = record_fights(env, ScriptedFighter("duellist"), 2, seed=3)
    env.close()
    return found


@pytest.fixture
def file(recording, tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    monkeypatch.chdir(tmp_path)
    write_fight_file(tmp_path / "fights.npz", recording, {"engine": "sim", **about_boss("iudex", "standard")})
    return tmp_path / "fights.npz"


def test_there_and_back_it_is_the_same(file, recording):
    assert f"{ID}: 2 episodes" in done("export-dataset", file, ID)
    assert "2 fights" in done("import-dataset", ID, "--out", "back.npz")
    back = read_fight_file(file.with_name("back.npz"))
    assert back.about["boss"] == "iudex"
    for name in recording.fights.dtype.names:
        assert np.array_equal(back.recording.fights[name], recording.fights[name]), name
    assert np.array_equal(back.recording.actions[1:], recording.actions[1:])
    assert back.recording.bounds() == recording.bounds()
    assert back.recording.simulation == recording.simulation


def test_the_dataset_is_what_the_environment_would_have_given(file, recording):
    import minari

    done("export-dataset", file, ID)
    dataset = minari.load_dataset(ID)
    env = dataset.recover_environment()
    assert env.spec.id == "SoulsGymIudexSimDemo-v0"
    for episode, seed in zip(dataset.iterate_episodes(), recording.simulation.seeds, strict=True):
        observation, info = env.reset(seed=seed)
        for i, action in enumerate(episode.actions):
            assert all(np.array_equal(episode.observations[key][i], value) for key, value in observation.items())
            assert np.array_equal(episode.infos["action_mask"][i], info["action_mask"])
            observation, reward, terminated, truncated, info = env.step(action)
            assert episode.rewards[i] == pytest.approx(reward)
            assert (episode.terminations[i], episode.truncations[i]) == (terminated, truncated)
        assert terminated
    env.close()


def made_by_somebody(recording, *, mask=True, space=None):
    """A dataset as others make it: the observations, and perhaps the mask."""
    import minari
    from minari.data_collector import EpisodeBuffer

    from soulsgym.state import observation_of

    env = gymnasium.make("SoulsGymIudexSimDemo-v0")
    low, high = recording.bounds()[0]
    fights, count = recording.fights[low:high], high - low - 1
    ends = np.arange(count) == count - 1
    observations = observation_of(fights) if space is None else np.zeros((count + 1, 3), np.float32)
    buffer = EpisodeBuffer(observations=observations, actions=recording.actions[low + 1 : high],
                           rewards=np.zeros(count), terminations=ends, truncations=np.zeros(count, bool),
                           infos={"action_mask": fights["action_mask"]} if mask else None)  # fmt: skip
    with pytest.warns(UserWarning, match="is set to None"):
        minari.create_dataset_from_buffers(ID, [buffer], env=env, observation_space=space)
    env.close()


def test_a_dataset_of_somebody_else(file, recording):
    made_by_somebody(recording)
    done("import-dataset", ID, "--out", "theirs.npz")
    theirs = read_recording("theirs.npz")
    low, high = recording.bounds()[0]
    assert len(theirs) == high - low
    assert np.array_equal(theirs.fights["boss_hp"], recording.fights["boss_hp"][low:high])
    assert theirs.fights["outcome"][-1] == recording.fights["outcome"][high - 1]
    assert theirs.simulation is None


def test_what_is_no_fight_is_one_sentence(file, recording, tmp_path):
    made_by_somebody(recording, mask=False)
    error = souls("import-dataset", ID, "--out", "x.npz").exception
    assert isinstance(error, RecordingError)
    assert "has no action_mask in its infos" in str(error)
    assert isinstance(souls("import-dataset", "souls/none-v0", "--out", "x.npz").exception, RecordingError)
    assert isinstance(souls("export-dataset", file, "no good name!").exception, MisuseError)
    error = souls("export-dataset", file, ID).exception
    assert isinstance(error, MisuseError)
    assert "exists in" in str(error)
    data = tmp_path / "datasets" / ID / "data" / "main_data.hdf5"
    data.write_bytes(data.read_bytes()[:500])
    assert isinstance(souls("import-dataset", ID, "--out", "x.npz").exception, RecordingError)
    assert not (tmp_path / "x.npz").exists()


def test_encoded_observations_cannot_come_back(file, recording):
    made_by_somebody(recording, space=gymnasium.spaces.Box(-1, 1, (3,), np.float32))
    error = souls("import-dataset", ID, "--out", "x.npz").exception
    assert isinstance(error, RecordingError)
    assert "does not hold the observations of a fight" in str(error)


def test_an_own_boss_goes_along_without_his_path(sentinel, file, tmp_path):
    env = gymnasium.make("SoulsGymSim-v0", boss=str(sentinel), disable_env_checker=True).unwrapped
    env.reset(seed=1)
    records = [env.fight]
    for _ in range(20):
        env.step(0)
        records.append(env.fight)
    env.close()
    short = Recording(np.concatenate(records), np.zeros(21, np.int64), np.zeros(21, np.int64))
    write_fight_file(tmp_path / "own.npz", short, about_boss(str(sentinel), "standard"))
    sentinel.unlink()
    done("export-dataset", tmp_path / "own.npz", "souls/sentinel-v0")
    metadata = json.loads((tmp_path / "datasets" / "souls/sentinel-v0/data/metadata.json").read_text())
    assert str(tmp_path) not in json.dumps(metadata)
    done("import-dataset", "souls/sentinel-v0", "--out", "back.npz")
    assert read_fight_file(tmp_path / "back.npz").about["files"]
