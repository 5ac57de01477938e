"""`souls runs`: all runs in a folder, the broken ones with their problem."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from soulsai.cli.main import app
from soulsai.errors import RunError
from soulsai.runs.status import Status


def souls(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def folder(run):
    run.write_status(Status("finished", 1_234_567, 1_200_000, 0.973, 0.961, 0.982))
    (run.folder.parent / "odd").mkdir()
    return run.folder.parent


def test_table(folder):
    result = souls("runs", folder)
    assert result.exit_code == 0, result.exception
    assert "tiny" in result.stdout
    assert "smoke" in result.stdout
    assert "finished" in result.stdout
    assert "1,234,567" in result.stdout
    assert "97.3 %" in result.stdout
    assert "96.1-98.2" in result.stdout
    assert "odd is broken: " in result.stdout
    assert "it has no config.toml" in result.stdout
    table = [line for line in result.stdout.splitlines() if "broken:" not in line]
    assert max(map(len, table)) <= 80


def test_names_stay_in_one_piece_so_that_they_can_be_copied(folder):
    name = "recipe-rl-souls-with-a-long-name-20261115-231500"
    (folder / "tiny").rename(folder / name)
    result = souls("runs", folder)
    assert any(line.rstrip().endswith(name) for line in result.stdout.splitlines())
    assert "97.3 %" in result.stdout
    assert "1,234,567" in result.stdout


def test_a_run_instead_of_the_folder_of_runs_is_that_run_alone(folder):
    assert [row["name"] for row in json.loads(souls("runs", folder / "tiny", "--json").stdout)] == ["tiny"]
    assert "broken" not in souls("runs", folder / "tiny").stdout


def test_runs_are_removed_after_a_question(run, monkeypatch):
    monkeypatch.chdir(run.folder.parent)
    asked = CliRunner().invoke(app, ["runs", "rm", "tiny"], input="n\n")
    assert (asked.exit_code, run.folder.exists()) == (1, True)
    assert "remove tiny (finished, " in asked.stdout
    with run.lock(), pytest.raises(RunError, match="tiny: is being trained now; end it first: souls stop tiny"):
        raise souls("runs", "rm", "tiny", "--yes").exception
    (run.folder.parent / "mine").mkdir()
    with pytest.raises(RunError, match="mine: is not the folder of a run"):
        raise souls("runs", "rm", "tiny", "mine", "--yes").exception
    assert run.folder.exists()
    removed = souls("runs", "rm", "tiny", "--yes")
    assert (removed.exit_code, removed.stdout, run.folder.exists()) == (0, "removed tiny\n", False)


def test_a_link_to_a_run_is_removed_and_not_the_run(run):
    link = run.folder.parent / "link"
    link.symlink_to(run.folder)
    assert souls("runs", "rm", link, "--yes").exit_code == 0
    assert (link.is_symlink(), run.folder.exists()) == (False, True)


def test_open_prints_the_report_where_there_is_no_screen(run, monkeypatch):
    monkeypatch.chdir(run.folder.parent)
    run.folder.parent.joinpath("runs").mkdir()
    run.folder.rename("runs/mine")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    result = souls("open")
    assert (result.exit_code, result.stdout) == (0, "runs/mine/report.html\n"), result.exception
    assert result.stderr == "the newest run: runs/mine\n"
    assert opened == []
    Path("runs/mine/report.html").unlink()
    monkeypatch.setenv("DISPLAY", ":0")
    assert souls("open", "mine").exit_code == 0
    assert opened == [Path("runs/mine/report.html").resolve().as_uri()]
    assert Path("runs/mine/report.html").exists()


def test_open_shows_the_live_page_of_a_run_that_is_going_on(run, monkeypatch):
    shown = []
    monkeypatch.setattr("soulsai.cli.dashboard.dashboard", lambda folder, open_browser: shown.append(folder))
    with run.lock():
        assert souls("open", run.folder).exit_code == 0
    assert shown == [run.folder]


@pytest.mark.parametrize(
    "words",
    [["open"], ["eval"], ["watch", "--terminal"], ["export", "a.pt"], ["notify", "--url", "http://127.0.0.1:9"]],
)
def test_without_a_run_there_is_none_to_take(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    error = souls(*words).exception
    assert isinstance(error, RunError)
    assert str(error).startswith("runs: there is no run")


@pytest.mark.parametrize("words", [["train"], ["serve"], ["eval"], ["eval", "player:idle"], ["watch"], ["record"],
                                   ["open"], ["notify"], ["compare", "player:idle"], ["save"], ["pause"], ["unpause"],
                                   ["stop"], ["fleet"], ["invite", "bob"], ["runs", "rm"]])  # fmt: skip
def test_an_empty_name_is_refused(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = souls(*words, "")
    assert result.exit_code == 2, result.exception
    assert "an argument is empty" in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [["train", "smoke", "--rehearse", ""], ["train", "smoke", "--run", " "],
                                   ["eval", "player:idle", "--boss="], ["data", ""], ["runs", ""]])  # fmt: skip
def test_an_empty_option_is_refused(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = souls(*words)
    assert result.exit_code == 2, result.exception
    assert "is empty; leave it out, or fill it in" in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", ["config.toml", "versions.json"])
def test_a_broken_run_is_removed_too(run, file):
    (run.folder / file).write_text("{")
    assert souls("runs", "rm", run.folder, "--yes").exit_code == 0
    assert not run.folder.exists()


def test_json(folder):
    rows = {row["name"]: row for row in json.loads(souls("runs", folder, "--json").stdout)}
    assert (rows["tiny"]["win_rate"], rows["tiny"]["step"], rows["tiny"]["preset"]) == (0.973, 1_234_567, "smoke")
    assert rows["odd"]["state"] == "broken"
    assert "config.toml" in rows["odd"]["problem"]


def test_no_runs_yet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert souls("runs").stdout == "no runs in runs; `souls train` makes one\n"
    with pytest.raises(RunError, match="nowhere: there is no such folder"):
        raise souls("runs", "nowhere").exception


def test_no_message_tells_to_name_a_run_by_an_option():
    root = Path(__file__).parents[3]
    files = [file for folder in ("src", "deploy") for file in (root / folder).rglob("*") if file.is_file()]
    named = re.compile(
        r"souls (resume|(fleet|invite|revoke|save|pause|unpause|stop|notify)\b[^\"'`|;]* --run|\w+ --resume --run)"
    )
    found = [file for file in files if file.suffix in (".py", ".js", ".md", ".sh") and named.search(file.read_text())]
    assert found == []
