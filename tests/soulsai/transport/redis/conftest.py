"""A real server for all tests here, empty for each of them."""

from __future__ import annotations

import secrets
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from soulsai.runtime.redis_server import OwnServer
from soulsai.transport.redis.access import invite
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.keys import Keys
from soulsai.transport.redis.learner import RedisLearnerLink
from soulsai.transport.redis.worker import RedisWorkerLink

sys.path.insert(0, str(Path(__file__).parent))

from redis_kit import WORKER


@pytest.fixture(scope="session")
def server(tmp_path_factory):
    """One server for the whole session; tests that kill or restart one start their own."""
    with OwnServer.start(tmp_path_factory.mktemp("redis"), memory_mb=256) as server:
        yield server


@pytest.fixture
def run():
    """The id of a run that no other test has."""
    return f"run-{secrets.token_hex(4)}"


@pytest.fixture
def keys(run):
    return Keys(run)


@pytest.fixture
def address(server, run):
    """Of the administrator, in this test's run."""
    return replace(server.address, run=run)


@pytest.fixture
def admin(address, keys):
    """A client that may do everything, on a server without invited users and with no data but an open gate."""
    with connect(address) as client:
        client.flushall()
        for user in client.acl_users():
            if user not in ("admin", "default"):
                client.acl_deluser(user)
        client.set(keys.gate, b"open")
        yield client


@pytest.fixture
def alice(address, admin, keys):
    """The address of an invited friend."""
    return replace(address, user="alice", password=invite(admin, keys, "alice"))


@pytest.fixture
def opened():
    """Links that are closed when the test ends."""
    links = []
    yield links
    for link in links:
        link.close(0.5) if isinstance(link, RedisWorkerLink) else link.close()


@pytest.fixture
def make_learner(opened):
    """A function that opens the learner's end."""

    def make(address, **settings):
        opened.append(RedisLearnerLink(address, **settings))
        return opened[-1]

    return make


@pytest.fixture
def make_worker(opened):
    """A function that opens a worker's end."""

    def make(address, worker=WORKER, **settings):
        defaults = {"max_chunks": 5000, "buffer_bytes": 1 << 20, "waits": True, "beat_s": 0.1}
        opened.append(RedisWorkerLink(address, worker, **{**defaults, **settings}).start())
        return opened[-1]

    return make


@pytest.fixture
def make_link(make_worker):
    """The same with a short stream."""
    return lambda address, worker=WORKER, **settings: make_worker(address, worker, **({"max_chunks": 100} | settings))
