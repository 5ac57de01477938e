"""Settings of a Redis of others that cost a run something."""

import pytest
from redis.exceptions import NoPermissionError

from soulsai.errors import TransportError
from soulsai.runtime.redis_server import OwnServer
from soulsai.transport.redis.access import MOST_DENIALS, invite
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.foreign import DEFAULT_USER, shortcomings
from soulsai.transport.redis.keys import Keys


@pytest.fixture(scope="module")
def strange(tmp_path_factory):
    """A server whose settings may be spoiled."""
    with OwnServer.start(tmp_path_factory.mktemp("redis"), memory_mb=64) as server:
        yield server


@pytest.fixture
def boss(strange):
    with connect(strange.address) as client:
        yield client
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("appendonly", "yes")
        client.execute_command("ACL", "SETUSER", *DEFAULT_USER.split()[1:])


def test_the_own_server_has_none(admin):
    assert shortcomings(admin) == []


def test_keys_that_are_thrown_away(boss):
    boss.config_set("maxmemory-policy", "allkeys-lru")
    assert "allkeys-lru" in "".join(shortcomings(boss))


def test_data_that_is_not_kept(boss):
    boss.config_set("appendonly", "no")
    told = shortcomings(boss)
    assert len(told) == 1
    assert "appendonly" in told[0]


def test_a_default_user_with_which_transactions_are_lost(boss):
    boss.execute_command("ACL", "SETUSER", "default", "off", "resetkeys", "-@all")
    told = shortcomings(boss)
    assert len(told) == 1
    assert DEFAULT_USER in told[0]


def test_users_that_are_not_kept(admin, monkeypatch):
    settings = {"appendonly": "yes", "aclfile": "", "maxmemory-policy": "noeviction"}
    monkeypatch.setattr(type(admin), "config_get", lambda self, pattern: settings)
    assert "aclfile" in "".join(shortcomings(admin))


def test_large_messages_that_are_not_taken(boss):
    boss.config_set("proto-max-bulk-len", 1 << 20)
    told = shortcomings(boss)
    boss.config_set("proto-max-bulk-len", 64 << 20)
    assert len(told) == 1
    assert "proto-max-bulk-len 1048576" in told[0]


def test_messages_that_never_end(boss):
    before = boss.config_get("maxmemory-clients")
    if not before:
        pytest.skip("before Redis 7 a server does not limit them")
    boss.config_set("maxmemory-clients", 0)
    told = shortcomings(boss)
    boss.config_set("maxmemory-clients", *before.values())
    assert len(told) == 1
    assert "maxmemory-clients 0" in told[0]


def test_forbidden_commands_that_are_kept(boss):
    boss.config_set("acllog-max-len", 128)
    told = shortcomings(boss)
    boss.config_set("acllog-max-len", MOST_DENIALS)
    assert len(told) == 1
    assert "acllog-max-len 128" in told[0]


def test_one_that_is_too_old(admin, monkeypatch):
    monkeypatch.setattr(type(admin), "info", lambda self, section: {"redis_version": "6.0.16"})
    with pytest.raises(TransportError, match=r"6\.0\.16, and 6\.2 or newer"):
        shortcomings(admin)


def test_one_that_does_not_let_us_look(admin, monkeypatch):
    def forbidden(self, pattern):
        raise NoPermissionError("NOPERM")

    monkeypatch.setattr(type(admin), "config_get", forbidden)
    assert shortcomings(admin) == []


def test_transactions_of_friends_and_learner_outlive_a_restart(tmp_path):
    keys = Keys("r")
    with OwnServer.start(tmp_path) as own:
        for _ in range(2):
            with connect(own.address) as client, client.pipeline(transaction=True) as steps:
                invite(client, keys, "alice")
                steps.xadd("s", {"a": "b"})
                steps.hincrby("h", "n", 1)
                steps.execute()
            own.stop()
            own = OwnServer.start(tmp_path)
        with own, connect(own.address) as client:
            assert client.xlen("s") == 2
            assert client.hget("h", "n") == b"2"
            assert client.smembers(keys.names) == {b"alice"}
