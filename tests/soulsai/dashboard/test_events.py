"""News: at once, when something changes, and to so many only."""

import http.client
import json
import time

import pytest

from soulsai.dashboard import events as events_module
from soulsai.dashboard import library as library_module
from soulsai.dashboard.library import LOOK_EVERY_S
from soulsai.runs.lock import hold_lock

LIMIT_S = 60.0
EVERY_S = events_module.EVERY_S


class Listener:
    """Reads events as a browser does."""

    def __init__(self, served, path="/api/events"):
        self._line = http.client.HTTPConnection(served.url.removeprefix("http://"), timeout=LIMIT_S)
        self._line.request("GET", path)
        self.answer = self._line.getresponse()
        self._others = []

    def run_with(self, **values):
        """The next event of the run with these values: between two changes it may have been looked at."""
        while not values.items() <= (event := self.next("run")).items():
            pass
        return event

    def next(self, kind, limit_s=LIMIT_S):
        """The next event of a kind; those of others are kept."""
        for number, (name, data) in enumerate(self._others):
            if name == kind:
                del self._others[number]
                return data
        deadline_s, name = time.monotonic() + limit_s, ""
        while time.monotonic() < deadline_s:
            line = self.answer.readline().decode().rstrip("\n")
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
            elif line.startswith("data: "):
                data = json.loads(line.removeprefix("data: "))
                if name == kind:
                    return data
                self._others.append((name, data))
        raise AssertionError(f"no event {kind}")

    def close(self):
        self.answer.close()
        self._line.close()


@pytest.fixture
def listen():
    there = []

    def make(*arguments):
        there.append(Listener(*arguments))
        return there[-1]

    yield make
    for each in there:
        each.close()


def streams_of(served):
    """How many the server says are open, by its own count."""
    return served.streams.open


@pytest.fixture
def served(serve_folder, root, monkeypatch):
    made = []

    class Counted(events_module.Streams):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(events_module, "Streams", Counted)
    monkeypatch.setattr(events_module, "EVERY_S", 0.1)
    monkeypatch.setattr(library_module, "LOOK_EVERY_S", 0.05)
    server = serve_folder(root)
    server.streams = made[0]
    return server


def test_the_state_of_now_comes_first(served, listen):
    listener = listen(served, "/api/events?run=one")
    assert listener.answer.headers["content-type"].startswith("text/event-stream")
    assert listener.answer.headers["cache-control"] == "no-store"
    assert [run["id"] for run in listener.next("runs")["runs"]] == ["two", "one"]
    event = listener.next("run")
    assert event.pop("evaluated") is None
    assert event == {
        "id": "one",
        "state": "finished",
        "live": False,
        "step": 100,
        "steps": 1000,
        "rows": 100,
        "win_rate": 0.5,
        "win_rate_low": 0.4,
        "win_rate_high": 0.6,
        "return": None,
        "elapsed_s": 99.0,
        "problem": "",
        "row_at": 1_790_000_099.5,
        "speed": None,
        "verdict": "",
        "asked": [],
        "newest_fight": None,
        "newest_evaluation": None,
        "gone": False,
    }


def test_changes_come_within_two_seconds(served, listen, root, kit):
    assert EVERY_S + LOOK_EVERY_S < 2.0
    listener = listen(served, "/api/events?run=one")
    listener.next("run")
    kit.append(root / "one", **kit.row(100))
    assert listener.next("run")["rows"] == 101
    (root / "one" / "recordings" / "eval-000000000100-lost.npz").write_bytes(b"x")
    assert listener.next("run")["newest_fight"] == "eval-000000000100-lost"
    (root / "one" / "judged.json").write_text("{}")
    assert listener.run_with(newest_evaluation="judged")["evaluated"].endswith("Z")
    with hold_lock(root / "one" / "lock"):
        (root / "one" / "control").mkdir()
        (root / "one" / "control" / "pause").touch()
        listener.run_with(asked=["pause"])


def test_a_run_that_goes(served, listen, root, tmp_path):
    listener = listen(served, "/api/events?run=one")
    assert len(listener.next("runs")["runs"]) == 2
    listener.next("run")
    (root / "one").rename(tmp_path / "elsewhere")
    assert listener.next("run") == {"id": "one", "gone": True}
    assert [run["id"] for run in listener.next("runs")["runs"]] == ["two"]


def test_a_run_that_never_was(served, listen):
    assert listen(served, "/api/events?run=..%2fsecret").next("run")["gone"]


def test_without_news_only_heartbeats(served, listen, monkeypatch):
    monkeypatch.setattr(events_module, "HEARTBEAT_S", 0.3)
    listener = listen(served, "/api/events?run=one")
    listener.next("run")
    listener.answer.readline()  # the end of the event
    assert listener.answer.readline() == b": still here\n"


def test_too_many_listeners_are_refused_until_one_leaves(served, listen):
    served.streams._most = 2
    first, _ = listen(served), listen(served)
    refused = listen(served)
    assert refused.answer.status == 503
    assert "too many pages" in json.loads(refused.answer.read())["error"]
    first.close()
    deadline_s = time.monotonic() + LIMIT_S
    while streams_of(served) > 1:
        assert time.monotonic() < deadline_s, "the stream of one who left goes on"
        time.sleep(0.02)
    assert listen(served).answer.status == 200


def test_the_server_ends_though_somebody_listens(served, listen):
    listener = listen(served, "/api/events")
    listener.next("runs")
    served.end()
    assert streams_of(served) == 0


def test_the_last_word_is_how_the_run_ended(served, listen, root, kit):
    folder = kit.folder(root / "three", state="running")
    with hold_lock(folder / "lock"):
        listener = listen(served, "/api/events?run=three")
        assert listener.next("run")["state"] == "running"
        served.streams.close()
    # Killed, and its page ends with it: that is told before the stream ends.
    assert listener.run_with(live=False)["state"] == "killed"
    assert listener.next("end") == {}


def test_news_without_a_stream(served):
    news = served.json("/api/events?once&run=one")
    assert news["run"]["id"] == "one"
    assert [run["id"] for run in news["runs"]["runs"]] == ["two", "one"]
    assert served.streams.open == 0
