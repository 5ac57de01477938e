"""Members of a fleet in a real Redis, one of whom sends what was never played."""

import threading
from dataclasses import replace

import pytest
from redis.exceptions import AuthenticationError, ConnectionError, NoPermissionError
from redis_kit import until

from soulsai.acting import worker as workers
from soulsai.config import load_preset, with_settings
from soulsai.learning.limits import most_rows
from soulsai.learning.loop import build_fleet_loop
from soulsai.learning.sources import Start
from soulsai.learning.wiring import build_worker, environment_version
from soulsai.transport.chunks import pack_chunk
from soulsai.transport.redis import learner as learner_module
from soulsai.transport.redis.access import invite, invited
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.report import look_at
from soulsai.transport.redis.worker import REVOKED

CONFIG = with_settings(
    load_preset("dqn"),
    ["run.threads=1", "run.device=cpu", "fleet.spot_checks=on", "fight.step_limit=40", "network.hidden=[8]",
     "fleet.number=4", "fleet.chunk_rows=64", "q.warmup_steps=100000", "fleet.probation_fights=4"],
)  # fmt: skip


class Club:
    """A learner, and workers that play in threads of their own."""

    def __init__(self, address, admin, keys, make_learner, make_worker):
        self.address, self.admin, self.keys, self.make_worker = address, admin, keys, make_worker
        self.said, self.threads = [], []
        self.link = make_learner(address, most_rows=most_rows(CONFIG), say=self.said.append)
        self.loop = build_fleet_loop(CONFIG, self.link, Start(keys.run, 1), self.said.append)
        self.loop.begin()

    def join(self, name, life="abcdef"):
        """Someone who is invited, with a worker of ours."""
        address = replace(self.address, user=name, password=invite(self.admin, self.keys, name))
        link = self.make_worker(address, f"{name}.1.{life}")
        worker = build_worker(CONFIG, link, environment=environment_version(CONFIG))
        self.threads.append(threading.Thread(target=worker.run, daemon=True))
        self.threads[-1].start()
        return link, address

    def until(self, holds):
        until(lambda: self.loop.iterate() is None or holds())

    def report(self):
        self.loop.source._reported_s = self.link._next_refresh_s = 0.0
        self.loop.iterate()
        self.link._next_refresh_s = 0.0
        self.loop.iterate()
        return look_at(self.admin, self.keys)


@pytest.fixture
def club(address, admin, keys, make_learner, make_worker, monkeypatch):
    monkeypatch.setattr(workers, "ROUND_EPISODES", 2)
    monkeypatch.setattr(learner_module, "REFRESH_S", 0.05)
    club = Club(address, admin, keys, make_learner, make_worker)
    yield club
    club.link.close()


def lying(monkeypatch, liar):
    """From now on the workers of a name send each reward with the wrong sign."""

    def lie(chunk, schema, *, worker, **told):
        if worker.startswith(liar):
            chunk = replace(chunk, columns=chunk.columns | {"rewards": -chunk.columns["rewards"]})
        return pack_chunk(chunk, schema, worker=worker, **told)

    monkeypatch.setattr(workers, "pack_chunk", lie)


def test_who_lies_is_out_and_the_others_play_on(club, monkeypatch):
    honest, _ = club.join("alice")
    club.until(lambda: not club.loop.source.checks.is_new("alice"))
    lying(monkeypatch, "eve")
    liar, address = club.join("eve")
    club.until(lambda: liar.ended)
    assert liar.ended == REVOKED
    assert invited(club.admin, club.keys) == ["alice"]
    with connect(address) as client, pytest.raises((AuthenticationError, ConnectionError)):
        client.ping()
    assert list(club.loop.source.names_to_forget()) == ["eve"]
    club.until(lambda: any("eve is not invited any more" in line for line in club.said))
    assert not club.admin.exists(club.keys.experience("eve"), club.keys.beats("eve"))
    found = club.report()
    assert set(found["ended"]) == {"eve"}
    assert "rewards" in found["ended"]["eve"]
    (row,) = [row for row in found["workers"] if row["name"] == "eve"]
    assert row["stored"] == 0
    assert set(row["dropped"]) == {"wrong"}
    fights = club.loop.source.checks.fights["alice"]
    club.until(lambda: club.loop.source.checks.fights["alice"] > fights)
    assert not honest.ended
    metrics = {}
    club.loop.source._looked_s = 0.0
    club.until(lambda: metrics.update(club.loop.iterate()) or "fleet/ended" in metrics)
    assert (metrics["fleet/ended"], metrics["fleet/newcomers"]) == (1.0, 0.0)


def test_who_is_invited_again_is_new(club, monkeypatch):
    lying(monkeypatch, "eve")
    liar, _ = club.join("eve")
    club.until(lambda: liar.ended)
    lying(monkeypatch, "nobody")
    club.join("eve", "bbbbbb")
    assert club.loop.source.checks.fights["eve"] == 0
    club.until(lambda: not club.loop.source.checks.is_new("eve"))
    assert invited(club.admin, club.keys) == ["eve"]


def test_a_learner_without_the_right_to_revoke_takes_nothing_more(club, monkeypatch):
    def may_not(*_):
        raise NoPermissionError("no permissions to run 'acl|deluser'")

    monkeypatch.setattr(learner_module, "end_invitation", may_not)
    lying(monkeypatch, "eve")
    club.join("eve")
    club.until(lambda: any("could not be revoked" in line for line in club.said))
    for _ in range(20):
        club.loop.iterate()
    (account,) = [one for one in club.link.accounts() if one.worker.startswith("eve")]
    assert set(account.dropped) == {"wrong"}
    assert (account.stored, sum("could not be revoked" in line for line in club.said)) == (0, 1)


def test_a_learner_that_is_started_again_goes_on_with_its_workers(club):
    """They play on meanwhile; nobody is accused, and who was known is."""
    club.join("alice")
    club.until(lambda: not club.loop.source.checks.is_new("alice"))
    club.loop.source.start_saving()()
    notes, marks = club.loop.source.notes(), club.link.marks()
    club.link.close()
    said = []
    link = learner_module.RedisLearnerLink(club.address, most_rows=most_rows(CONFIG), say=said.append)
    loop = build_fleet_loop(CONFIG, link, Start(club.keys.run, 2), said.append)
    loop.source.checks.restore(notes["checked"], marks)
    link.restore(marks)
    loop.begin()
    fights = loop.source.checks.fights["alice"]
    until(lambda: loop.iterate() is None or loop.source.checks.fights["alice"] > fights + 20)
    assert invited(club.admin, club.keys) == ["alice"]
    assert loop.source._ended == {}
    link.close()
