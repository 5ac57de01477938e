"""`souls fleet`, `invite`, `revoke`, `stop` and `save`: what they show, and what they say when there is nothing."""

import io
import json
import os

import pytest
from rich.console import Console
from typer.testing import CliRunner

from soulsai.cli import fleet as verbs
from soulsai.cli.fleet import picture
from soulsai.cli.main import app
from soulsai.config import config_to_toml, load_preset
from soulsai.errors import RunError, TransportError
from soulsai.runs.fleet_file import FILE, LOCK, FleetFile, find_served_run, read_fleet, write_fleet
from soulsai.runs.lock import hold_lock
from soulsai.runs.requests import to_forget
from soulsai.runs.run import Run
from soulsai.transport.links import version_of
from soulsai.transport.redis.accounts import Counts
from soulsai.transport.redis.entries import Beat
from soulsai.transport.redis.report import (
    LAST,
    Snapshot,
    books_line,
    keep_last,
    open_lines,
    report_of,
)

ADMIN = "redis://admin:hush@127.0.0.1:1/mine-123456"
FLEET = FleetFile("mine-123456", ADMIN, "redis://127.0.0.1:1", own=True, host="127.0.0.1", generation=3)
NEWEST = version_of(3, 40)


def souls(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def row(worker="alice.0.00000a", state="playing", age_s=1.0, counts=None, **beat):
    """A worker life: its last heartbeat, and what the learner has counted."""
    values = {"policy": version_of(3, 37)}
    values |= {"about": {"host": "pc-of-alice"}, "time_s": -age_s, "state": "left" if state == "left" else "playing"}
    values |= {"still_s": 100.0 if state == "frozen" else 0.0}
    return (
        worker,
        Beat(**values | beat),
        counts or Counts(stored=1200, dropped={"stale": 4}, episodes=50, wins=12, fights=48),
    )


def report_with(*rows, learner=None, in_flight=None):
    told = {"version": str(NEWEST), "steps": "5000", "target": "20000", "updates": "700"}
    beats, counts = ({one[0]: one[part] for one in rows} for part in (1, 2))
    told = told if learner is None else learner
    rates = dict.fromkeys(beats, 1234.5)
    return report_of(Snapshot(0.0, told, counts, beats, {}, {}, in_flight or {}, in_flight is not None, rates))


def drawn(report, width=120):
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(picture(report))
    return console.export_text()


def test_the_accounting_is_one_line():
    total = {"sent": 1234, "stored": 1200, "dropped": {"stale": 4}, "in_flight": 30}
    assert books_line(total) == "sent 1,234 = stored 1,200 + dropped 4 (stale 4) + in flight 30"
    total = {"sent": 7, "stored": 1, "dropped": {"revoked": 4, "buffer_full": 2}, "in_flight": 0}
    assert books_line(total) == "sent 7 = stored 1 + dropped 6 (buffer_full 2, revoked 4) + in flight 0"
    assert books_line({"sent": 0, "stored": 0, "dropped": {}, "in_flight": 0}).endswith("+ dropped 0 + in flight 0")


def test_what_the_table_shows():
    text = drawn(report_with(row(), row("bob.1.00000b", "frozen", 5.0, fights=0, wins=0)))
    for part in ("5,000 of 20,000 steps, 700 updates", "alice.0.00000a", "pc-of-alice", "playing", "1,234", "25.0%",
                 "stale 4", "1,200", "bob.1.00000b", "frozen", "5 s", "name", "50.0%",
                 "sent 2,408 = stored 2,400 + dropped 8 (stale 8) + in flight 0"):  # fmt: skip
        assert part in text, part
    assert " 3 " in next(line for line in text.splitlines() if "alice.0" in line)  # the lag


def test_the_lag_after_the_learner_was_started_again_is_small():
    (worker,) = report_with(row(policy=version_of(2, 39)))["workers"]
    assert worker["lag"] == 1


def test_a_worker_without_a_policy_has_no_lag():
    (worker,) = report_with(row(policy=0))["workers"]
    assert worker["lag"] is None


@pytest.mark.parametrize("width", [80, 200])
def test_the_table_fits(width):
    text = drawn(report_with(row("a-name-of-forty-letters-that-is-very-long.0.00000a"), row()), width)
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in text
    end = next(line.index("host") for line in lines if "host" in line)
    first_column = "".join(line[:end].strip() for line in lines)  # folded, but nothing of it is cut off
    assert "a-name-of-forty-letters-that-is-very-long.0.00000a" in first_column


def test_those_that_left_are_one_line():
    gone = [row(f"alice.0.{number:06x}", "left", 9000.0) for number in range(50)]
    gone += [row("alice.0.aaaaaa", "silent", 9000.0), row("alice.0.bbbbbb", "silent", float("inf"))]
    text = drawn(report_with(*gone, row("alice.1.cccccc", "silent", 20.0)))
    assert "52 earlier" in text
    assert "alice.1.cccccc" in text
    assert "alice.0.aaaaaa" not in text
    assert "stale 208" in text


def test_the_gateway_is_a_line():
    counts = {"connections": 3, "accepted": 1234, "bytes": 5_250_000, "passed": 4000, "dropped": {}, "refused": {}}
    plain = "gateway: 3 connections (1,234 since it was started); 5.2 MB; 4,000 messages passed on"
    assert plain in drawn(report_with(row()) | {"gateway": counts}, width=200)
    counts |= {"dropped": {"invalid": 2, "chunks": 1000}, "refused": {"credentials": 7}}
    told = drawn(report_with(row()) | {"gateway": counts}, width=200)
    assert f"{plain}; dropped chunks 1,000, invalid 2; refused credentials 7" in told
    assert "gateway" not in drawn(report_with(row()))


def test_why_workers_cannot_play():
    about = {"host": "pc", "problem": "its environment cannot be played (GameNotFound: no game)"}
    twice = [row(f"alice.{index}.00000a", "left", counts=Counts(), about=about) for index in (0, 1)]
    text = drawn(report_with(*twice))
    assert text.count("alice cannot play: its environment cannot be played (GameNotFound: no game)") == 1
    again = row("alice.0.00000b", about=about)
    assert "cannot play" not in drawn(report_with(twice[0], again)), "it plays now"


def test_names_get_their_share():
    rows = [row("alice.0.00000a", counts=Counts(stored=75, episodes=50)),
            row("alice.1.00000b", counts=Counts(stored=75, episodes=50)),
            row("bob.0.00000c", counts=Counts(stored=50))]  # fmt: skip
    names = report_with(*rows)["names"]
    assert names["alice"] == {"lives": 2, "steps": 0, "episodes": 100, "sent": 150, "stored": 150, "share": 0.75}
    assert names["bob"]["share"] == 0.25


def test_an_empty_fleet():
    text = drawn(report_with(learner={}))
    assert "the learner has not started" in text
    assert "no workers yet" in text


def test_books_that_do_not_close_are_told():
    good = row(counts=Counts(stored=5, pushed=10, dropped={"stale": 2}))
    bad = row("bob.0.00000b", counts=Counts(stored=5), pushed=10)
    report = report_with(good, bad, in_flight={"alice.0.00000a": 3, "bob.0.00000b": 4})
    assert report["open"] == {"bob.0.00000b": {"expected": 5, "found": 4}}
    assert report["total"] == {"sent": 19, "stored": 10, "dropped": {"stale": 2}, "in_flight": 7}
    assert open_lines(report) == ["bob.0.00000b: the counts do not add up: it says 5 rows are on their way, not 4"]
    assert report_with(good, in_flight={"alice.0.00000a": 3})["open"] == {}


def test_the_report_is_json():
    report = report_with(row(age_s=float("inf")), in_flight={})
    assert json.loads(json.dumps(report, allow_nan=False)) == report


# The file


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "runs" / "mine").mkdir(parents=True)
    write_fleet(tmp_path / "runs" / "mine", FLEET)
    return tmp_path / "runs" / "mine"


def test_the_file_is_for_its_owner_alone(folder):
    assert read_fleet(folder) == FLEET
    assert (folder / FILE).stat().st_mode & 0o777 == 0o600
    assert os.listdir(folder) == [FILE]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"run": 1}', "\xff", None])
def test_a_damaged_file_is_told(folder, text):
    content = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(json.dumps(content | {"generation": "3"}) if text is None else text, encoding="latin-1")
    with pytest.raises(RunError, match=r"fleet\.json: is damaged"):
        read_fleet(folder)


def test_the_run_served_last_is_meant(folder, tmp_path):
    other = tmp_path / "runs" / "other"
    other.mkdir()
    (tmp_path / "runs" / "unserved").mkdir()
    write_fleet(other, FLEET)
    os.utime(folder / FILE, (1, 1))
    assert find_served_run(None, tmp_path / "runs")[0] == other
    with hold_lock(folder / LOCK):  # served right now
        assert find_served_run(None, tmp_path / "runs")[0] == folder
    assert find_served_run(folder, tmp_path / "runs") == (folder, FLEET)


def test_no_run_was_ever_served(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    meant = "runs: no run here was served to workers; name one, or begin: souls serve"
    for arguments in (["fleet"], ["stop", "--worker", "bob"], ["invite", "alice"], ["revoke", "alice"]):
        error = souls(*arguments).exception
        assert isinstance(error, RunError)
        assert str(error) == meant


def test_a_run_that_was_only_trained(tmp_path):
    error = souls("fleet", tmp_path).exception
    assert str(error) == f"{tmp_path}: was never served to workers; do so with: souls serve --resume {tmp_path}"


def test_a_folder_that_is_not_there(tmp_path):
    assert "there is no such run" in str(souls("fleet", tmp_path / "no").exception)


# With nobody at the other end


@pytest.mark.parametrize("arguments", [["fleet"], ["fleet", "--check"], ["stop", "--worker", "alice"],
                                       ["invite", "alice"], ["revoke", "alice"]])  # fmt: skip
def test_a_run_that_is_not_served_now(folder, arguments):
    error = souls(*arguments, folder).exception
    assert isinstance(error, RunError)
    assert str(error) == f"{folder}: is not being served now; continue it with: souls serve --resume {folder}"


def test_a_redis_that_does_not_answer(folder, monkeypatch):
    monkeypatch.setattr(verbs, "REACH_S", 0.2)
    with hold_lock(folder / LOCK):
        error = souls("fleet", folder).exception
    assert isinstance(error, TransportError)
    assert "127.0.0.1:1 does not answer" in str(error)
    assert "hush" not in str(error)


@pytest.mark.parametrize("verb", ["invite", "revoke"])
@pytest.mark.parametrize("name", ["a b", "x:y", "ä", "a*"])
def test_names_that_cannot_be(folder, verb, name):
    error = souls(verb, name, folder).exception
    assert isinstance(error, TransportError)
    assert "cannot be the name of a worker" in str(error)


def test_after_the_end_the_last_state_is_shown(folder):
    keep_last(folder, report_with(row()))
    result = souls("fleet", folder)
    assert result.exit_code == 0, result.exception
    assert f"{folder} is not being served; its last state:" in result.output.replace("\n", "")
    assert "sent 1,204 = stored 1,200 + dropped 4 (stale 4) + in flight 0" in result.output
    assert json.loads(souls("fleet", folder, "--json").output)["total"]["sent"] == 1204


def test_a_damaged_last_state_is_none(folder):
    (folder / LAST).write_text("{}")
    assert "is not being served now" in str(souls("fleet", folder).exception)


def test_a_stopped_run_forgets_when_it_goes_on(tmp_path):
    config = load_preset("cartpole-dqn")
    run = Run.create(tmp_path / "run", config_to_toml(config), preset="cartpole-dqn", command=[])
    write_fleet(run.folder, FLEET)
    result = souls("forget", "mallory", run.folder, "--go-back")
    assert result.exit_code == 0, result.output
    assert "mallory: will be forgotten when the run continues: souls serve --resume" in result.output.replace("\n", " ")
    assert to_forget(run) == {"mallory": True}
    refused = souls("forget", "../x", run.folder)
    assert refused.exit_code != 0
