"""A real server for all tests here, empty for each of them."""

from __future__ import annotations

import secrets
from dataclasses import replace

import pytest

from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.keys import Keys
from soulsai.transport.redis.server import OwnServer


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
