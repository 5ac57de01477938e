"""Requests: files with which a run is asked for something while it trains."""

import pytest

from soulsai.errors import RunError
from soulsai.runs import requests
from soulsai.runs.requests import Requests, ask, open_requests
from soulsai.runs.run import Run
from soulsgym.errors import MisuseError


@pytest.fixture
def run(tmp_path):
    return Run.create(tmp_path / "run", "world = 'fight'\n", preset="test", command=[])


def test_nobody_hears_where_nobody_trains(run):
    with pytest.raises(RunError, match="is not being trained; list runs with `souls runs`"):
        ask(run, "save")
    assert open_requests(run) == ()


def test_only_known_requests(run):
    with run.lock(), pytest.raises(MisuseError, match=r"'\.\./config\.toml' is none of save, pause, unpause, stop"):
        ask(run, "../config.toml")


def test_a_request_stays_until_it_is_met(run):
    heard = Requests(run)
    with run.lock():
        ask(run, "stop")
        ask(run, "save")
        ask(run, "save")
    assert open_requests(run) == heard.take() == ("save", "stop")
    heard.finish("save")
    assert open_requests(run) == ("stop",)


def test_a_pause_is_taken_back(run):
    with run.lock():
        ask(run, "pause")
        assert open_requests(run) == ("pause",)
        ask(run, "unpause")
        ask(run, "unpause")
    assert open_requests(run) == ()


def test_looking_is_cheap(run, monkeypatch):
    now_s = 100.0
    monkeypatch.setattr(requests.time, "monotonic", lambda: now_s)
    heard = Requests(run)
    assert heard.take() == ()
    with run.lock():
        ask(run, "save")
    assert heard.take() == ()  # looked up a moment ago
    now_s += requests.LOOK_EVERY_S
    assert heard.take() == ("save",)


def test_a_folder_that_cannot_be_made_is_named(run):
    (run.folder / "control").write_text("in the way")
    with run.lock(), pytest.raises(RunError, match="control"):
        ask(run, "save")
    assert open_requests(run) == ()
    heard = Requests(run)
    assert heard.take() == ()
    heard.finish("save")
