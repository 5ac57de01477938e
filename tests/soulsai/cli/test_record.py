"""`souls record`: fights to a file, the same for every environment; and `souls watch` on such a file."""

import itertools
import shutil
from contextlib import nullcontext

import numpy as np
import pytest
from typer.testing import CliRunner

from soulsai.cli import watch
from soulsai.cli.main import app
from soulsai.cli.options import INTERRUPTED
from soulsai.cli.watch import record_fights
from soulsai.errors import RunError
from soulsai.evaluation.fighter import ScriptedFighter
from soulsgym.actions import NOTHING
from soulsgym.envs.simulated import FightEnv
from soulsgym.errors import GameGone, GameNotFound, MisuseError
from soulsgym.game.engine import GameOptions
from soulsgym.recordings.fidelity import measure_fidelity
from soulsgym.recordings.recording import read_recording
from soulsgym.spec import load_fight
from soulsgym.state import Outcome


def souls(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_fights_are_recorded_from_their_start_to_their_end(tmp_path):
    file = tmp_path / "fights.npz"
    result = souls("record", "player:idle", "--out", file, "--fights", 2, "--seed", 3)
    assert result.exit_code == 0, result.exception
    recording = read_recording(file)
    assert f"{file}: 2 fights, {len(recording):,} records, 2 died" in result.stdout
    for low, high in recording.bounds():
        fights = recording.fights[low:high]
        assert fights["step"].tolist() == list(range(high - low))
        assert fights["outcome"][-1] == Outcome.DIED
        assert (fights["outcome"][:-1] == Outcome.RUNNING).all()
    assert set(recording.actions.tolist()) == {NOTHING}


def test_a_recording_is_the_fight_that_was_fought():
    env = FightEnv("iudex", changes=True)
    recording = record_fights(env, ScriptedFighter("duellist"), 1, 5)
    again = FightEnv("iudex", changes=True)
    again.reset(seed=5)
    for i in range(1, 60):
        again.step(int(recording.actions[i]))
        assert np.array_equal(again.fight["player_pose"][0], recording.fights["player_pose"][i])


def test_what_was_played_before_a_stop_is_kept(tmp_path, monkeypatch):
    asked = itertools.count()
    monkeypatch.setattr(watch, "stop_on_signals", lambda *words: nullcontext(lambda: next(asked) > 300))
    result = souls("record", "player:idle", "--fights", 50, "--out", tmp_path / "a.npz")
    assert result.exit_code == INTERRUPTED, result.exception
    recording = read_recording(tmp_path / "a.npz")
    played = len(recording.bounds())
    assert f"{played} fights, {len(recording)} records, {played - 1} died, 1 unfinished" in result.stdout
    assert 290 < len(recording) < 310
    assert measure_fidelity(recording, load_fight("iudex")).exact
    monkeypatch.setattr(watch, "stop_on_signals", lambda *words: nullcontext(lambda: True))
    result = souls("record", "player:idle", "--fights", 50, "--out", tmp_path / "b.npz")
    assert "stopped before the first step" in str(result.exception)
    assert not (tmp_path / "b.npz").exists()


def test_what_was_played_before_the_game_failed_is_kept(capsys):
    class Failing(FightEnv):
        def reset(self, *, seed=None, options=None):
            if seed == 7:
                raise GameGone("the game has ended; start it again")
            return super().reset(seed=seed, options=options)

    recording = record_fights(Failing("iudex", changes=True), ScriptedFighter("idle"), 5, 5)
    assert len(recording.bounds()) == len(recording.simulation.seeds) == 2
    assert "the game has ended; start it again; what was recorded until then is kept" in capsys.readouterr().err
    with pytest.raises(GameGone):
        record_fights(Failing("iudex", changes=True), ScriptedFighter("idle"), 5, 7)


def test_one_phase(tmp_path):
    result = souls("record", "player:idle", "--out", tmp_path / "a.npz", "--env", "SoulsGymIudexSim-v0", "--phase", 2)
    assert result.exit_code == 0, result.exception
    assert set(read_recording(tmp_path / "a.npz").fights["phase"].tolist()) == {2}


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (["--env", "SoulsGymIudexSimm-v0"], MisuseError, "did you mean 'SoulsGymIudexSim-v0'"),
        (["--pid", "3"], MisuseError, "--pid needs the running game; add an environment of the game"),
        (["--phase", "2"], MisuseError, "is the full fight; leave out --phase 2"),
        (["--out", "a.txt"], MisuseError, r"recording a\.txt ends in '\.txt'; give a name that ends in \.npz"),
        (["--out", "nowhere/a.npz"], RunError, "folder nowhere of the recording is not there"),
    ],
)
def test_what_cannot_be_recorded_is_said_in_a_sentence(tmp_path, monkeypatch, arguments, error, text):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=text):
        raise souls("record", "player:idle", *arguments).exception


def test_nothing_is_overwritten(tmp_path):
    file = tmp_path / "a.npz"
    file.write_text("precious")
    with pytest.raises(RunError, match="exists; give another name"):
        raise souls("record", "player:idle", "--out", file).exception
    assert file.read_text() == "precious"


def test_a_recording_can_be_watched(tmp_path):
    file, video = tmp_path / "a.npz", tmp_path / "a.mp4"
    souls("record", "player:idle", "--out", file, "--fights", 2)
    steps = [high - low for low, high in read_recording(file).bounds()]
    result = souls("watch", file, "--fight", 2, "--video", video, "--size", "480x360")
    assert result.exit_code == 0, result.exception
    assert result.stdout.startswith(f"{video}: died by ")
    assert f"after {(steps[1] - 1) / 10:.1f} s" in result.stdout
    assert video.stat().st_size > 1000
    with pytest.raises(MisuseError, match=r"--fight 3 is not in .*, which holds 2"):
        raise souls("watch", file, "--fight", 3, "--terminal").exception


def test_a_recording_in_a_window(tmp_path, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    file = tmp_path / "a.npz"
    env = FightEnv("iudex")
    from soulsgym.recordings.recording import write_recording

    recording = record_fights(env, ScriptedFighter("idle"), 1, 0)
    short = type(recording)(recording.fights[:3], recording.actions[:3], recording.episodes[:3])
    write_recording(file, short)
    result = souls("watch", file)
    assert result.exit_code == 0, result.exception
    assert result.stdout.startswith("time-out after 0.2 s, player 100 %")


def test_a_boss_of_ones_own_is_recorded_and_watched(sentinel, make_run, tmp_path):
    run = make_run("smoke", f"fight.boss={sentinel}", "fight.variants=['hard']")
    for who, boss in ((run.folder, []), ("player:duellist", ["--boss", sentinel, "--variant", "hard"])):
        file = tmp_path / f"{'own' if boss else 'run'}.npz"
        result = souls("record", who, *boss, "--out", file)
        assert result.exit_code == 0, result.exception
        assert read_recording(file).fights["boss_max_hp"][0] == 800.0
    shutil.rmtree(sentinel.parent)
    page = tmp_path / "fight.html"
    assert souls("watch", file, "--html", page).exit_code == 0
    assert "Sentinel" in page.read_text()
    assert str(tmp_path) not in page.read_text()
    assert souls("watch", file, "--terminal").exit_code == 0
    result = souls("watch", file, "--video", tmp_path / "fight.mp4", "--size", "480x360")
    assert result.exit_code == 0, result.exception


def test_the_game_has_its_own_boss(sentinel):
    result = souls("record", "--env", "SoulsGymIudex-v0", "--boss", sentinel)
    assert "SoulsGymIudex-v0 has its own boss; leave out --boss and --variant" in str(result.exception)


@pytest.mark.parametrize("way", [["--terminal"], ["--html", "f.html"], ["--video", "f.mp4"], []])
def test_one_fight_is_of_one_file(way, tmp_path, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.chdir(tmp_path)
    for command in (["watch", "player:idle", *way], ["record", "player:idle"]):
        error = souls(*command, "--variant", "drawn:20").exception
        assert isinstance(error, MisuseError)
        assert "drawn:20" in str(error)
        assert "souls variant draw" in str(error)
    assert list(tmp_path.iterdir()) == []


def test_a_recording_of_the_game_is_never_one_of_a_stand_in(tmp_path, monkeypatch):
    """What SOULSGYM_REHEARSE says is for scripts: a recording says where it comes from."""
    monkeypatch.setenv("SOULSGYM_REHEARSE", "standard")
    opened = []

    def open_target(spec, options, **rest):
        opened.append(options)
        raise GameNotFound("it is not running")

    monkeypatch.setattr("soulsgym.envs.game.open_target", open_target)
    result = souls("record", "player:idle", "--env", "SoulsGymIudex-v0", "--out", tmp_path / "fights.npz")
    assert isinstance(result.exception, GameNotFound)
    assert [type(options) for options in opened] == [GameOptions]


def test_a_person_is_recorded_in_the_game_alone(tmp_path):
    result = CliRunner().invoke(
        app, ["record", "--human", "--env", "SoulsGymIudexSim-v0", "--out", str(tmp_path / "a.npz")]
    )
    assert "--human needs the running game, but SoulsGymIudexSim-v0 is of the simulator" in str(result.exception)


def test_a_person_whom_nobody_saw_leaves_no_file(tmp_path, monkeypatch):
    monkeypatch.setattr("soulsgym.recordings.person.record_person", lambda *_, **__: None)
    result = CliRunner().invoke(app, ["record", "--human", "--out", str(tmp_path / "a.npz")])
    assert "no fight with Iudex Gundyr was seen, so nothing was written" in str(result.exception)
    assert list(tmp_path.iterdir()) == []
