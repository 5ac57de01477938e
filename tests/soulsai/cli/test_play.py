"""`souls play`: a fight in a window that a test plays, or a sentence that there is none."""

import os
import stat
import sys

import pygame
import pytest
from typer.testing import CliRunner

from soulsai.cli import options
from soulsai.cli.main import app
from soulsai.errors import RunError
from soulsgym.errors import MisuseError
from soulsgym.play.window import Page, PlayWindow
from soulsgym.recordings import read_recording
from soulsgym.recordings.exact import exact_departures


def play(*arguments):
    return souls("play", "--size", "480x360", *arguments)


def souls(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture(autouse=True)
def screen(monkeypatch, tmp_path):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.chdir(tmp_path)


def keys(*names):
    for name in names:
        pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=pygame.key.key_code(name)))


@pytest.fixture
def person(monkeypatch):
    """Walks up, rolls and attacks until the fight is over, looks at the board and quits."""
    boards = []

    def run(window):
        keys("return", "w", "space")
        for number in range(400):
            window.frame(0.1)
            if number % 5 == 0:
                keys("l")
            if window.session.is_over:
                break
        boards.append(window._note)
        keys("tab")
        for _ in range(3):
            window.frame(0.0)
        boards.append(window._rows)
        assert window.page is Page.BOARD
        keys("q")
        assert not window.frame(0.0)

    monkeypatch.setattr(PlayWindow, "run", run)
    return boards


@pytest.mark.parametrize("boss", ["vordt", "margit"])
def test_a_fight(person, boss):
    result = play("--boss", boss, "--seed", 3, "--out", "mine.npz")
    assert result.exit_code == 0, result.exception
    recording = read_recording("mine.npz")
    assert recording.simulation.seeds == (3,)
    assert recording.simulation.settings.boss == boss
    assert [departure.step for departure in exact_departures(recording)] == [None]
    assert [row[0] for row in person[1]] == ["", "you", f"agent zoo:{boss}", "duellist"]
    assert "duellist" in result.stdout
    assert "mine.npz: 1 fight; see it: souls watch mine.npz" in result.stdout


def test_what_others_read_of_it(person):
    assert play("--seed", 3, "--out", "mine.npz").exit_code == 0
    assert souls("watch", "mine.npz", "--terminal").exit_code == 0
    assert "The exact replay never leaves the recording" in souls("fidelity", "mine.npz").stdout
    result = souls("autopsy", "mine.npz")
    assert result.exit_code == 0, result.exception
    assert "1 death in 1 fight. 1 had a way out" in result.stdout
    assert person[0].startswith("you would have lived: ")
    with pytest.raises(RunError, match="exists; give another name"):
        raise play("--out", "mine.npz").exception


def test_practice(person, tmp_path):
    assert play("--only", "beast_tail", "--seed", 1).exit_code == 0
    [file] = (tmp_path / "recordings").iterdir()
    assert file.name.startswith("play-iudex-")
    simulation = read_recording(file).simulation
    assert simulation.settings.only == "beast_tail"
    assert simulation.settings.phase == 2
    assert souls("watch", file, "--html", "tail.html").exit_code == 0


def test_an_agent_on_the_board(person, make_run):
    run = make_run("smoke", "fight.step_limit=50")
    result = play("--agent", run.folder, "--seed", 3, "--out", "mine.npz")
    assert result.exit_code == 0, result.exception
    assert [row[0] for row in person[1]] == ["", "you", f"agent {run.folder.name}", "duellist"]


def test_without_a_screen(monkeypatch):
    for name in options.SCREENS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(MisuseError, match="no window can be opened here, and playing needs one; use a machine with a"):
        raise souls("play").exception
    with pytest.raises(MisuseError, match="boss 'gwyn' is not known"):  # said first: it is wrong on any machine
        raise souls("play", "--boss", "gwyn").exception


def test_a_screen_that_does_not_answer(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "nonsense")
    with pytest.raises(MisuseError, match="no window can be opened here, and playing needs one"):
        raise souls("play", "--out", "mine.npz").exception


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only there a display has a name")
def test_a_display_that_is_not_there(monkeypatch):
    monkeypatch.delenv("SDL_VIDEODRIVER")
    monkeypatch.setattr(PlayWindow, "run", lambda window: pytest.fail("nobody sees this window"))
    for name in options.SCREENS:
        monkeypatch.setenv(name, ":9876")
    for arguments in (("play", "--out", "mine.npz"), ("watch", "zoo:iudex")):
        with pytest.raises(MisuseError, match="no window can be opened here"):
            raise souls(*arguments).exception


def test_ctrl_c_keeps_the_fight_and_says_where(monkeypatch):
    def run(window):
        keys("return")
        for _ in range(20):
            window.frame(0.1)
        raise KeyboardInterrupt

    monkeypatch.setattr(PlayWindow, "run", run)
    result = play("--out", "mine.npz")
    assert "mine.npz: 1 fight; see it: souls watch mine.npz" in result.stdout
    assert "duellist" not in result.stdout
    assert len(read_recording("mine.npz")) > 10


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--speed", 0), "--speed 0 is not possible; give 0.05 to 4"),
        (("--only", "tails"), "Iudex Gundyr has no attack 'tails' to practise"),
        (("--boss", "gwyn"), "boss 'gwyn' is not known"),
        (("--variant", "drawn:20"), "is a number of drawn files, not one"),
        (("--phase", 7), "phase 7 is not there; Iudex Gundyr has phases 1 to 2"),
        (("--size", "wide"), "give width x height in pixels"),
        (("--size", "100x100"), "is too small"),
        (("--out", "mine.txt"), "give a name that ends in"),
        (("--out", "no/mine.npz"), "is not there; make it or give another name"),
        (("--agent", "nobody"), "nobody"),
    ],
)
def test_refusals(arguments, sentence, monkeypatch):
    monkeypatch.setattr(PlayWindow, "run", lambda window: pytest.fail("it was not refused"))
    error = souls("play", *arguments).exception
    assert isinstance(error, (MisuseError, RunError))
    assert sentence in str(error)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_where_nothing_may_be_written(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(RunError):
        raise souls("play").exception
