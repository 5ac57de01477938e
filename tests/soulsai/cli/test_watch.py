"""`souls watch`: a video, a window, or a sentence that there is none."""

import errno
import json
import re

import pytest
from typer.testing import CliRunner

from soulsai.cli import options
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
    for name in options.SCREENS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(
        MisuseError, match=r"no window can be opened here; use --terminal, --html fight\.html or --video fight\.mp4"
    ):
        raise souls("watch", make_run("smoke").folder).exception


def test_screen_that_does_not_answer(make_run, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "nonsense")
    with pytest.raises(MisuseError, match="no window can be opened here"):
        raise souls("watch", make_run("smoke").folder).exception


@pytest.mark.parametrize("size", ["960", "960x", "axb", "960x-3"])
def test_wrong_size(size):
    with pytest.raises(MisuseError, match="give width x height in pixels"):
        raise souls("watch", "player:idle", "--size", size).exception


def test_impossible_size(tmp_path):
    with pytest.raises(MisuseError, match="is too small"):
        raise souls("watch", "player:idle", "--video", tmp_path / "a.mp4", "--size", "40x30").exception
    with pytest.raises(MisuseError, match=r"ends in '\.avi'"):
        raise souls("watch", "player:idle", "--video", tmp_path / "a.avi").exception


def test_a_size_that_is_too_large():
    with pytest.raises(MisuseError, match="--size 100000x100000: too large; the maximum is 8192x8192"):
        raise souls("watch", "player:idle", "--size", "100000x100000").exception


def test_a_video_where_nothing_may_be_written(tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("soulsai.evaluation.video.TemporaryDirectory", refuse)
    with pytest.raises(RunError, match=r"video .*a\.mp4 cannot be written: Permission denied"):
        raise souls("watch", "player:idle", "--video", tmp_path / "a.mp4").exception


def test_gym_run(make_run):
    with pytest.raises(MisuseError, match="plays CartPole-v1, not fights"):
        raise souls("watch", make_run("cartpole-ppo").folder, "--terminal").exception


def scene_in(page):
    found = re.search(r'<script type="application/json" id="scene">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(found[1])


@pytest.mark.parametrize("preset", ["smoke", "smoke-q"])
def test_page(make_run, tmp_path, preset):
    run, page = make_run(preset, "fight.step_limit=25"), tmp_path / "fight.html"
    result = souls("watch", run.folder, "--html", page, "--seed", 3)
    assert result.exit_code == 0, result.exception
    assert f"{page}: time-out after 2.5 s, player" in result.stdout
    scene = scene_in(page)
    assert scene["thoughts"]["kind"] == {"smoke": "probability", "smoke-q": "q"}[preset]
    assert scene["about"]["run"] == "made"
    assert scene["about"]["seed"] == 3
    assert scene["step"] == 10
    with pytest.raises(RunError, match="exists; give another name"):
        raise souls("watch", run.folder, "--html", page).exception


def test_page_of_a_player_and_of_a_recording(tmp_path):
    page, recording = tmp_path / "fight.html", tmp_path / "fights.npz"
    assert souls("record", "player:idle", "--out", recording, "--fights", 2).exit_code == 0
    assert souls("watch", recording, "--fight", 2, "--html", page).exit_code == 0
    assert scene_in(page)["thoughts"] is None
    with pytest.raises(MisuseError, match="--fight 3 is not in"):
        raise souls("watch", recording, "--fight", 3, "--html", tmp_path / "b.html").exception
    assert souls("watch", "player:idle", "--html", tmp_path / "c.html").exit_code == 0
    assert "no network" in scene_in(tmp_path / "c.html")["reason"]


def test_page_that_cannot_be(tmp_path):
    with pytest.raises(MisuseError, match=r"ends in '\.txt'; give a name that ends in \.html"):
        raise souls("watch", "player:idle", "--html", tmp_path / "a.txt").exception
    with pytest.raises(RunError, match="is not there; make it or give another name"):
        raise souls("watch", "player:idle", "--html", tmp_path / "no" / "a.html").exception
    with pytest.raises(MisuseError, match="use --video or --html, not both"):
        raise souls("watch", "player:idle", "--html", tmp_path / "a.html", "--video", tmp_path / "a.mp4").exception


def test_lines_where_there_is_no_terminal(make_run):
    result = souls("watch", make_run("smoke", "fight.step_limit=25").folder, "--terminal")
    assert result.exit_code == 0, result.exception
    assert result.stdout.count("m apart") == 4
    assert result.stdout.endswith("% of their health left.\n")
    assert "\x1b" not in result.stdout
