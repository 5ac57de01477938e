"""`souls watch`: a video, a window, or a sentence that there is none."""

import pytest
from typer.testing import CliRunner

from soulsai.cli import watch
from soulsai.cli.main import app
from soulsai.errors import RunError
from soulsgym.errors import MisuseError


def souls(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.parametrize("suffix", [".mp4", ".gif"])
def test_video(make_run, tmp_path, suffix):
    run, video = make_run("smoke", "fight.step_limit=5"), tmp_path / f"fight{suffix}"
    result = souls("watch", run.folder, "--video", video, "--size", "480x360")
    assert result.exit_code == 0, result.exception
    assert f"{video}: time-out after 0.5 s, player" in result.stdout
    assert video.stat().st_size > 1000
    with pytest.raises(RunError, match="exists; give another name"):
        raise souls("watch", run.folder, "--video", video).exception


def test_window(make_run, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    run = make_run("smoke", "fight.step_limit=3")
    result = souls("watch", run.folder, "--phase", 2)
    assert result.exit_code == 0, result.exception
    assert result.stdout.startswith("time-out after 0.3 s, player 100 %, boss 100 %")


def test_without_a_screen(make_run, monkeypatch):
    for name in watch.SCREENS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(MisuseError, match=r"no window can be opened here; .* --video fight\.mp4"):
        raise souls("watch", make_run("smoke").folder).exception


def test_screen_that_does_not_answer(make_run, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "nonsense")
    with pytest.raises(MisuseError, match="no window can be opened here"):
        raise souls("watch", make_run("smoke").folder).exception


@pytest.mark.parametrize("size", ["960", "960x", "axb", "960x-3"])
def test_wrong_size(size):
    with pytest.raises(MisuseError, match="is no size; give width x height"):
        raise souls("watch", "player:idle", "--size", size).exception


def test_impossible_size(tmp_path):
    with pytest.raises(MisuseError, match="is too small"):
        raise souls("watch", "player:idle", "--video", tmp_path / "a.mp4", "--size", "40x30").exception
    with pytest.raises(MisuseError, match=r"ends in '\.avi'"):
        raise souls("watch", "player:idle", "--video", tmp_path / "a.avi").exception


def test_gym_run(make_run):
    with pytest.raises(MisuseError, match="plays CartPole-v1, not fights"):
        raise souls("watch", make_run("cartpole-ppo").folder).exception
