"""Fleets for the page: live, as they were, or why nothing is known."""

import json
import time
from collections import Counter
from dataclasses import replace

import pytest

from soulsai.dashboard import fleet as fleet_module
from soulsai.dashboard.fleet import Fleets
from soulsai.dashboard.library import Library
from soulsai.runs.fleet_file import FleetFile, write_fleet
from soulsai.runs.lock import hold_lock
from soulsai.runtime.redis_server import OwnServer
from soulsai.transport.gateway.counts import Counts
from soulsai.transport.links import Progress
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.entries import write_beat
from soulsai.transport.redis.keys import Keys
from soulsai.transport.redis.report import LAST, keep_last

RUN = "mine-123456"
TOTAL = {"sent": 1234, "stored": 1200, "dropped": {"stale": 4}, "in_flight": 30}
REPORT = {"learner": {"steps": "5"}, "workers": [], "names": {}, "total": TOTAL, "unreadable": {}}
DEAD = FleetFile(RUN, "redis://admin:hush@127.0.0.1:1", "redis://127.0.0.1:1", own=True, host="127.0.0.1")


@pytest.fixture
def details(root):
    return Library(root).find("one")


@pytest.fixture
def fleets():
    now_s = [0.0]
    made = Fleets(clock=lambda: now_s[0])
    made.now_s = now_s
    return made


def test_a_run_that_plays_itself(fleets, details):
    found = fleets.look(details)
    assert (found["known"], found["now"], found["line"], found["metrics"]) == (False, False, "", {})
    assert "has no workers" in found["reason"]


def test_workers_of_the_same_machine_have_metrics_only(fleets, details, kit):
    kit.append(details.folder, **kit.row(100, **{"fleet/workers": 3.0, "fleet/lag": 1.5}))
    found = fleets.look(details)
    assert not found["known"]
    assert found["metrics"] == {"fleet/workers": 3.0, "fleet/lag": 1.5}
    assert "processes of the machine that learns" in found["reason"]


def test_a_run_that_is_no_longer_served(fleets, details):
    write_fleet(details.folder, DEAD)
    found = fleets.look(details)
    assert not found["known"]
    assert "is not being served now, and nothing was kept" in found["reason"]
    keep_last(details.folder, REPORT)
    fleets.now_s[0] += 5.0
    found = fleets.look(details)
    assert (found["known"], found["now"]) == (True, False)
    assert found["line"] == "sent 1,234 = stored 1,200 + dropped 4 (stale 4) + in flight 30"
    assert "this is how its fleet was" in found["reason"]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", json.dumps(REPORT | {"total": 3}), json.dumps(REPORT | {"total": {}})]
)
def test_a_damaged_last_report(fleets, details, text):
    write_fleet(details.folder, DEAD)
    (details.folder / LAST).write_text(text)
    assert not fleets.look(details)["known"]


def test_a_damaged_fleet_file(fleets, details):
    (details.folder / "fleet.json").write_text("{")
    assert "is damaged" in fleets.look(details)["reason"]


def test_a_redis_that_does_not_answer(fleets, details):
    write_fleet(details.folder, DEAD)
    keep_last(details.folder, REPORT)
    with hold_lock(details.folder / "fleet.lock"):
        found = fleets.look(details)
    assert (found["known"], found["now"]) == (True, False)
    assert "the Redis at 127.0.0.1:1 does not answer" in found["reason"]
    assert "hush" not in str(found)


def test_all_viewers_share_one_look(fleets, details, monkeypatch):
    looks = []
    monkeypatch.setattr(fleet_module, "_report", lambda each: looks.append(each) or {"known": False})
    for _ in range(5):
        fleets.look(details)
    assert len(looks) == 1
    fleets.now_s[0] += 1.5
    fleets.look(details)
    assert len(looks) == 2


def test_a_fleet_that_is_there(client_of, root, tmp_path, monkeypatch):
    monkeypatch.setattr(fleet_module, "REACH_S", 60.0)
    folder = root / "one"
    with OwnServer.start(tmp_path / "redis", memory_mb=64) as server, hold_lock(folder / "fleet.lock"):
        address = replace(server.address, run=RUN)
        write_fleet(folder, replace(DEAD, admin=address.url()))
        with connect(address) as admin:
            keys = Keys(RUN)
            admin.hset(keys.learner, mapping={"version": 3, "steps": 500, "target": 1000, "updates": 7})
            told = write_beat(Progress(), "playing", 0.0, {"host": "pc"}, time_s=time.time(), pushed=40)
            admin.sadd(keys.names, "alice")
            admin.hset(keys.beats("alice"), "alice.0.00000a", told)
        (folder / "gateway").mkdir()
        Counts(connections=2, refused=Counter(credentials=5)).write(folder / "gateway")
        client = client_of(root)
        found = client.get("/api/runs/one/fleet").json()
        assert (found["known"], found["now"], found["reason"]) == (True, True, "")
        assert found["learner"]["steps"] == "500"
        assert [worker["worker"] for worker in found["workers"]] == ["alice.0.00000a"]
        assert found["workers"][0]["host"] == "pc"
        assert found["line"].startswith("sent 0 = stored 0")  # what a worker says of itself is not counted
        assert 'souls_worker_sent_total{run="one",worker="alice.0.00000a"} 0.0' in client.get("/metrics").text
        assert found["gateway"]["connections"] == 2
        assert 'souls_gateway_refused_total{reason="credentials",run="one"} 5.0' in client.get("/metrics").text
        assert server.address.password not in json.dumps(found)
