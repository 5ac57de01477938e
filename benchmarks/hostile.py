"""Members of a fleet who mean harm, for the tests and for `benchmarks/siege.py`.

Each attack is a function that is called with someone who is invited and has every right that an invitation gives, over
Redis (`Member`) or through a gateway (`open_gateway`), or with the address alone.
"""

from __future__ import annotations

import base64
import secrets
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection
from websockets.sync.client import connect as open_socket

from soulsai.experience import Chunk, Ended, Schema
from soulsai.transport.chunks import pack_chunk
from soulsai.transport.frames import Kind, encode
from soulsai.transport.gateway.client import LARGEST_ANSWER, secure_socket
from soulsai.transport.gateway.messages import Clock, Get, Push, SendBeat, answers
from soulsai.transport.links import Message, Progress
from soulsai.transport.redis.access import user_lines
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.entries import HEAD, LARGEST_BEAT, write_beat, write_entry
from soulsai.transport.redis.keys import Keys

Words = tuple[str, ...]
LIMIT_S = 60.0
PING, BEGINNING, PIECE = b"\x89\x80\0\0\0\0", b"\x02\x81\0\0\0\0x", b"\x00\x80\0\0\0\0"
"""Frames of a WebSocket: a ping, the beginning of a message, and a further piece of it without anything in it."""


class Member:
    """Someone invited who speaks the raw protocol of Redis."""

    def __init__(self, address: Address, schema: Schema, worker: str = "") -> None:
        self.address, self.keys, self.name, self.schema = address, Keys(address.run), address.user, schema
        self.worker = worker or f"{self.name}.1.{secrets.token_hex(3)}"
        self.client: Any = connect(address)
        self.sequence = self.pushed = 0
        self.idle: list[Any] = []
        self.unfinished: list[Any] = []

    def chunk(self, rows: int = 8, episodes: int = 0, **columns: Any) -> Chunk:
        """Experience as CartPole's, but for these columns."""
        made = self.schema.empty(rows)
        seen = np.random.default_rng(rows).uniform(-1, 1, made["observations"].shape)
        made["observations"][:] = made["next_observations"][:] = seen
        made["rewards"][:], made["discounts"][:], made["next_masks"][:] = 1.0, 0.99, True
        for column, value in columns.items():
            made[column][:] = value
        flags = np.zeros(episodes, np.bool_)
        ended = Ended(np.full((episodes, 1), 20.0), np.full(episodes, 20), ~flags, flags, flags)
        return Chunk(made, ended, rows)

    def send(self, chunk: Chunk | None = None, worker: str = "", sequence: int = 0, pushed: int | None = None,
             sent_s: float | None = None) -> None:  # fmt: skip
        """Push a chunk under a worker id, and whatever is to be said about it."""
        chunk, worker = chunk or self.chunk(), worker or self.worker
        self.sequence = sequence or self.sequence + 1
        frame = pack_chunk(chunk, self.schema, run=self.keys.run, worker=worker, sequence=self.sequence, policy=1)
        self.pushed += chunk.rows
        sent_s = time.time() if sent_s is None else sent_s
        head = HEAD.pack(sent_s, self.pushed if pushed is None else pushed)
        self.push(head + frame)

    def push(self, *entries: bytes) -> None:
        """Push whatever it is."""
        self.client.rpush(self.keys.experience(self.name), *entries)

    def beat(self, worker: str = "", **told: Any) -> None:
        """Send a heartbeat that says so."""
        progress = Progress("playing", **{key: told.pop(key) for key in [*told] if key in Progress.__struct_fields__})
        data = write_beat(progress, "playing", 0.0, {}, **({"time_s": time.time()} | told))
        self.client.hset(self.keys.beats(self.name), worker or self.worker, data)

    def close(self) -> None:
        """Hang up."""
        for client in (self.client, *self.idle):
            client.connection_pool.disconnect()
        for connection in self.unfinished:
            connection.disconnect()


# What is said of experience and is not so


def too_many_steps(eve: Member) -> None:
    """One row whose header says a hundred million steps, or ten thousand: the run would be finished."""
    for steps in (100_000_000, 10_000):
        eve.send(replace(eve.chunk(1), steps=steps))


def leaping_sequences(eve: Member) -> None:
    """A sequence far ahead, then lower ones whose header says millions of rows, then one beyond all."""
    eve.send(sequence=eve.sequence + 1000)
    for sequence in range(1, 21):
        eve.send(sequence=sequence, pushed=16_000_000 * sequence)
    eve.send(sequence=1_000_000_000)


def too_many_rows(eve: Member, most: int = 20_000) -> None:
    """More rows than a message of this run can hold, and more said than were ever sent."""
    eve.send(eve.chunk(most + 1))
    eve.send(pushed=10**15)


def impossible_episodes(eve: Member) -> None:
    """20,000 episodes in a small frame, a return of 1e308, and an episode of ten million steps."""
    rich = eve.chunk(8, episodes=1)
    eve.send(eve.chunk(8, episodes=20_000))
    eve.send(replace(rich, ended=replace(rich.ended, terms=np.array([[1e308]]))))
    eve.send(replace(rich, ended=replace(rich.ended, lengths=np.array([10_000_000]))))


def impossible_numbers(eve: Member, column: str = "rewards", size: float = 3e38) -> None:
    """Numbers that would break every weight."""
    for _ in range(3):
        eve.send(eve.chunk(8, **{column: np.float32(size)}))


def no_numbers(eve: Member) -> None:
    """NaN and infinity in every column that can hold them."""
    for column in ("observations", "next_observations", "rewards", "discounts"):
        for value in (np.nan, np.inf, 1e9):
            impossible_numbers(eve, column, value)


def damaged_frames(eve: Member) -> None:
    """What no worker writes, and what one wrote with some of it changed, cut off or of somebody else."""
    frame = pack_chunk(eve.chunk(), eve.schema, run=eve.keys.run, worker=eve.worker, sequence=1, policy=1)
    entry = HEAD.pack(time.time(), 8) + frame
    eve.push(b"", b"x", bytes(100), entry[: len(entry) // 2], entry[:-20] + bytes(20), entry[: HEAD.size] + bytes(400))
    for about in ({"worker": "ann.1.abcdef"}, {"run": "another"}):
        told = {"run": eve.keys.run, "worker": eve.worker} | about
        eve.push(HEAD.pack(time.time(), 8) + pack_chunk(eve.chunk(), eve.schema, sequence=1, policy=1, **told))


# Heartbeats


def bombs(eve: Member, number: int = 50) -> None:
    """Frames of a quarter of a megabyte that become 60 when they are unpacked, under the name of a column."""
    for _ in range(number):
        eve.sequence += 1
        frame = encode(
            Kind.CHUNK, run=eve.keys.run, worker=eve.worker, sequence=eve.sequence, policy=1, rows=8, steps=8,
            arrays={"observations": np.zeros(15 << 20, np.float32)},
        )  # fmt: skip
        eve.push(HEAD.pack(time.time(), eve.pushed) + frame)


def false_clocks(eve: Member) -> None:
    """Chunks that were sent in 1970, by no time at all, and in a hundred years."""
    for sent_s in (0.0, 1.0, float("nan"), -1e300, time.time() + 3e9):
        eve.send(sent_s=sent_s)


def false_heartbeat(eve: Member) -> None:
    """Metrics and rates that are invented."""
    reasons = {f"reason-{number}": 10**14 for number in range(30)} | {"buffer_full": 10**14}
    eve.beat(steps=10**14, steps_per_s=float("nan"), episodes=10**14, wins=10**14, fights=1, dropped=reasons)


def heartbeats_of_tomorrow(eve: Member, number: int = 40) -> None:
    """Workers that would be there for ever."""
    told = write_beat(Progress(), "playing", 0.0, {}, time_s=time.time() + 10**9)
    beats = {f"{eve.name}.{each}.eeeeee": told for each in range(number)}
    eve.client.hset(eve.keys.beats(eve.name), mapping=beats)


def many_heartbeats(eve: Member) -> None:
    """Of three thousand workers."""
    heartbeats_of_tomorrow(eve, 3000)


def fill_heartbeats(eve: Member) -> None:
    """One that is large."""
    eve.client.hset(eve.keys.beats(eve.name), eve.worker, bytes(6 << 20))


# Too much of everything


def fill_memory(eve: Member, entries: int = 5) -> None:
    """Entries of 2 MB."""
    for _ in range(entries):
        eve.push(bytes(2 << 20))


def many_messages(eve: Member) -> None:
    """Twenty thousand at once."""
    eve.push(*[b"x" * 50] * 20_000)


def small_chunks(eve: Member, number: int = 2000) -> None:
    """Thousands of chunks of one row, each of them in order."""
    chunk, entries = eve.chunk(1), []
    for _ in range(number):
        eve.sequence, eve.pushed = eve.sequence + 1, eve.pushed + 1
        frame = pack_chunk(chunk, eve.schema, run=eve.keys.run, worker=eve.worker, sequence=eve.sequence, policy=1)
        entries.append(HEAD.pack(time.time(), eve.pushed) + frame)
    eve.push(*entries)


def many_connections(eve: Member, number: int = 30) -> None:
    """Connections that are kept and say nothing."""
    eve.idle = [connect(eve.address) for _ in range(number)]
    for client in eve.idle:
        client.ping()


def unfinished_messages(eve: Member, number: int = 8, size: int = 48 << 20) -> None:
    """Large messages of which the last byte never comes: a server keeps them in memory, and has none for others."""
    key = eve.keys.experience(eve.name)
    begun = f"*3\r\n$5\r\nRPUSH\r\n${len(key)}\r\n{key}\r\n${size + 1}\r\n".encode()
    for _ in range(number):
        connection = eve.client.connection_pool.make_connection()
        connection.connect()
        eve.unfinished.append(connection)
        connection.send_packed_command([begun, bytes(size)], check_health=False)


def wrong_types(eve: Member) -> None:
    """A list where heartbeats belong, and the other way round."""
    eve.client.rpush(eve.keys.beats(eve.name), b"x")
    eve.client.hset(eve.keys.experience(eve.name), "x", "y")


# Commands that would end, wedge or read everything


def server_commands(keys: Keys) -> list[Words]:
    """What nobody but the administrator may do to a server."""
    return [
        ("FLUSHALL",),
        ("FLUSHDB",),
        ("CONFIG", "GET", "*"),
        ("CONFIG", "SET", "maxmemory", "1"),
        ("CONFIG", "REWRITE"),
        ("CONFIG", "RESETSTAT"),
        ("KEYS", "*"),
        ("SCAN", "0"),
        ("RANDOMKEY",),
        ("DBSIZE",),
        ("INFO",),
        ("SHUTDOWN",),
        ("SHUTDOWN", "NOSAVE"),
        ("DEBUG", "SLEEP", "0"),
        ("DEBUG", "SEGFAULT"),
        ("EVAL", "return redis.call('FLUSHALL')", "0"),
        ("EVALSHA", "0" * 40, "0"),
        ("SCRIPT", "LOAD", "return 1"),
        ("ACL", "LIST"),
        ("ACL", "WHOAMI"),
        ("ACL", "GETUSER", "admin"),
        ("ACL", "SETUSER", "alice", "+@all", "~*"),
        ("ACL", "SETUSER", "eve", "on", "nopass", "+@all", "~*"),
        ("ACL", "DELUSER", "bob"),
        ("ACL", "SAVE"),
        ("ACL", "LOAD"),
        ("ACL", "LOG"),
        ("CLIENT", "LIST"),
        ("CLIENT", "KILL", "TYPE", "normal"),
        ("CLIENT", "PAUSE", "1000"),
        ("CLIENT", "NO-EVICT", "on"),
        ("CLIENT", "SETNAME", "learner"),
        ("CLIENT", "REPLY", "OFF"),
        ("CLIENT", "TRACKING", "ON"),
        ("PUBLISH", "control", "stop"),
        ("SUBSCRIBE", "x"),
        ("PSUBSCRIBE", "*"),
        ("MONITOR",),
        ("SELECT", "1"),
        ("SELECT", "0"),
        ("SWAPDB", "0", "1"),
        ("MODULE", "LIST"),
        ("MODULE", "LOAD", "/tmp/x.so"),
        ("REPLICAOF", "127.0.0.1", "1"),
        ("SLAVEOF", "NO", "ONE"),
        ("PSYNC", "?", "-1"),
        ("SYNC",),
        ("COMMAND",),
        ("COMMAND", "COUNT"),
        ("COMMAND", "GETKEYS", "GET", "x"),
        ("SLOWLOG", "GET"),
        ("LATENCY", "LATEST"),
        ("MEMORY", "USAGE", keys.policy),
        ("OBJECT", "ENCODING", keys.policy),
        ("BGSAVE",),
        ("SAVE",),
        ("BGREWRITEAOF",),
        ("LASTSAVE",),
        ("CLUSTER", "INFO"),
        ("WAIT", "1", "0"),
        ("MIGRATE", "127.0.0.1", "1", keys.policy, "0", "1"),
        ("PFSELFTEST",),
    ]


def writes(keys: Keys, key: str, name: str) -> list[Words]:
    """Every way to change a key, or to take it to one of this name."""
    return [
        ("SET", key, "x"),
        ("SETEX", key, "1", "x"),
        ("APPEND", key, "x"),
        ("GETDEL", key),
        ("GETEX", key, "EX", "1"),
        ("GETSET", key, "x"),
        ("DEL", key),
        ("UNLINK", key),
        ("EXPIRE", key, "1"),
        ("PERSIST", key),
        ("RENAME", key, keys.experience(name)),
        ("COPY", key, keys.beats(name)),
        ("MOVE", key, "1"),
        ("RESTORE", key, "0", "x", "REPLACE"),
        ("LPOP", key),
        ("LTRIM", key, "1", "0"),
        ("LSET", key, "0", "x"),
        ("LREM", key, "0", "x"),
        ("XADD", key, "MAXLEN", "0", "*", "f", "x"),
        ("SADD", key, "eve"),
        ("HDEL", key, "x"),
        ("HINCRBY", key, "x", "1"),
        ("XTRIM", key, "MAXLEN", "0"),
        ("XDEL", key, "0-1"),
        ("XSETID", key, "0-1"),
    ]


def reads(key: str) -> list[Words]:
    """Every way to learn of a key."""
    return [
        ("GET", key),
        ("XREAD", "STREAMS", key, "0"),
        ("XLEN", key),
        ("XRANGE", key, "-", "+"),
        ("HGETALL", key),
        ("HGET", key, "x"),
        ("SMEMBERS", key),
        ("LRANGE", key, "0", "-1"),
        ("TYPE", key),
        ("EXISTS", key),
        ("TTL", key),
        ("DUMP", key),
        ("XINFO", "STREAM", key),
        ("SORT", key),
        ("STRLEN", key),
        ("GETRANGE", key, "0", "-1"),
    ]


def refused(client: Any, command: Words) -> bool | str:
    """True if the server refused it for want of a right; another answer is told."""
    try:
        answer = client.execute_command(*command)
    except NoPermissionError:
        return True
    except ResponseError as error:
        words = str(error).lower()
        is_refusal = "unknown command" in words or "command not allowed" in words or "noperm" in words
        return is_refusal or f"{command}: {error}"
    return f"{command}: {answer!r}"


def not_refused(client: Any, commands: Sequence[Words]) -> list[str]:
    """What a server should have refused."""
    return [str(answer) for command in commands if (answer := refused(client, command)) is not True]


def forbidden_commands(eve: Member, others: Sequence[str] = ("ann", "bob")) -> list[str]:
    """Try to end, wedge and read everything; what was not refused."""
    keys = eve.keys
    secret = [keys.names, keys.revoked, keys.accounts, keys.removed, keys.owner, keys.learner]
    secret += [key for name in others for key in (keys.experience(name), keys.beats(name), keys.to(name))]
    commands = server_commands(keys)
    commands += [command for key in (keys.policy, keys.gate, *secret) for command in writes(keys, key, eve.name)]
    commands += [command for key in secret for command in reads(key)]
    return not_refused(eve.client, commands)


def large_commands(eve: Member, number: int = 8, size: int = 8 << 20) -> None:
    """Keys and names so large that a server which remembers what it has denied has no memory left."""
    for each in range(number):
        for command in (("GET", f"{each}" + "x" * size), ("AUTH", f"{each}" + "y" * size, "x")):
            with suppress(RedisError):  # a server that has too little memory hangs up
                eve.client.execute_command(*command)


def without_credentials(eve: Member, idle: int = 100, for_s: float = 2.0) -> list[str]:
    """What a stranger may do at a Redis: nothing; and sockets that say nothing."""
    held = [knock(eve.address) for _ in range(idle)]
    found = []
    for user, password in (("", ""), ("default", "x"), ("admin", "x"), (eve.name, "guessed")):
        with connect(replace(eve.address, user=user, password=password), client="") as stranger:
            for command in (("PING",), ("GET", eve.keys.policy), ("FLUSHALL",), ("SHUTDOWN", "NOSAVE")):
                try:
                    found.append(f"{command} of {user!r}: {stranger.execute_command(*command)!r}")
                except AuthenticationError:
                    continue
    time.sleep(for_s)
    for one in held:
        one.close()
    return found


def left_of(admin: Any, keys: Keys, name: str) -> list[str]:
    """All that Redis holds of members whose name begins so, but what the learner has counted of them."""
    found = [f"key {key.decode()}" for key in admin.scan_iter(match=f"*{name}*", count=1000)]
    for key in (keys.names, keys.revoked):
        found += [f"{key} {each.decode()}" for each in admin.smembers(key) if each.decode().startswith(name)]
    for key in (keys.removed, f"{keys.prefix}invitations"):
        found += [f"{key} {each.decode()}" for each in admin.hkeys(key) if each.decode().startswith(name)]
    found += [f"user {line[1]}" for line in user_lines(admin) if line[1].startswith(name)]
    return found + [f"connection of {one['user']}" for one in admin.client_list() if one["user"].startswith(name)]


# Through a gateway


@contextmanager
def open_gateway(address: Address, place: str = "") -> Iterator[ClientConnection]:
    """A connection that says what it likes, with TLS where the address says so; from another address of this machine
    if one is given."""
    secret = base64.b64encode(f"{address.user}:{address.password}".encode()).decode()
    with knock(address, place) as plain:
        found = open_socket(
            f"ws://{address.host}:{address.port}/{address.run}",
            sock=secure_socket(plain, address) if address.tls else plain,
            additional_headers={"Authorization": f"Basic {secret}"}, max_size=LARGEST_ANSWER, compression=None,
            open_timeout=LIMIT_S, close_timeout=1.0, proxy=None,
        )  # fmt: skip
        with found:
            yield found


def knock(address: Address, place: str = "") -> socket.socket:
    """A socket at the door, and nothing said."""
    return socket.create_connection((address.host, address.port), LIMIT_S, source_address=(place, 0) if place else None)


def say(found: ClientConnection, *commands: Any) -> Any:
    """Commands, and their answers."""
    found.send(msgspec.msgpack.encode(list(commands)))
    return answers.decode(found.recv(timeout=LIMIT_S))


def entry(sequence: int, worker: str, run: str, size: int = 100) -> bytes:
    """An entry whose header is that of a chunk of ten rows, and whose body is none."""
    frame = encode(
        Kind.CHUNK, run=run, worker=worker, sequence=sequence, rows=10, arrays={"pool": np.zeros(size, np.uint8)},
        squeeze=False,
    )  # fmt: skip
    return write_entry(Message(worker, sequence, 10, frame), time.time(), 10 * sequence)


def nonsense(worker: str) -> list[bytes | str]:
    """Messages that no worker says."""
    pack = msgspec.msgpack.encode
    return [
        b"", b"nonsense", pack([]), pack([["flushall"]]), pack([["get", "names"]]), pack([["push", []]]),
        pack([["time"]] * 17), pack([["get", "policy"]] * 2), pack([["push", [b"x"]]] * 2),
        pack([["beat", worker, bytes(LARGEST_BEAT + 1000)]]), "text",
    ]  # fmt: skip


def gateway_nonsense(address: Address, place: str = "") -> None:
    """Each of them, on a connection of its own."""
    for message in nonsense(f"{address.user}.1.eeeeee"):
        with open_gateway(address, place) as found:
            found.send(message)
            with suppress(ConnectionClosed):
                found.recv(timeout=LIMIT_S)


def gateway_flood(address: Address, place: str = "") -> None:
    """Chunks as fast as they are taken, until the gateway has had enough."""
    worker = f"{address.user}.1.{secrets.token_hex(3)}"
    with open_gateway(address, place) as found, suppress(ConnectionClosed):
        for number in range(1000):
            say(found, Push([entry(32 * number + more, worker, address.run) for more in range(1, 33)]))


def gateway_in_another_name(address: Address, place: str = "") -> None:
    """Experience and heartbeats of somebody else, and what is none."""
    with open_gateway(address, place) as found, suppress(ConnectionClosed):
        for worker in ("ann.1.abcdef", f"{address.user}.1.eeeeee", f"{address.user}.2.eeeeee"):
            say(found, SendBeat(worker, b"beat"), Push([entry(1, worker, address.run)]))
        say(found, Push([b"no entry"]))


def gateway_too_long(address: Address, place: str = "") -> None:
    """A message beyond every limit."""
    with open_gateway(address, place) as found, suppress(ConnectionClosed):
        say(found, Push([bytes(8 << 20)] * 12))


def gateway_crowd(address: Address, place: str = "", number: int = 40, for_s: float = 1.0) -> None:
    """More connections than a name may have; those beyond are refused."""
    with ExitStack() as held:
        for _ in range(number):
            say(held.enter_context(open_gateway(address, place)), Clock())
        time.sleep(for_s)


def gateway_silence(address: Address, place: str = "", for_s: float = 5.0) -> None:
    """Sockets that say nothing, half a request, or something that is no TLS."""
    held = [knock(address, place) for _ in range(20)]
    for number, one in enumerate(held):
        one.sendall((b"", b"GET / HTTP/1.1\r\nHost:", bytes(200))[number % 3])
    time.sleep(for_s)
    for one in held:
        one.close()


def gateway_guesses(address: Address, place: str = "", number: int = 30) -> None:
    """Wrong passwords, of this name and of one that is not invited."""
    for guess in range(number):
        name = address.user if guess % 2 else "admin"
        with suppress(Exception), open_gateway(replace(address, user=name, password=f"guess-{guess}"), place):
            pass


def gateway_frames(address: Address, place: str = "", frame: bytes = PING, for_s: float = 5.0) -> None:
    """Frames of nothing, as many as are taken: pings, or pieces of a message that never ends."""
    until_s = time.monotonic() + for_s
    beginning = BEGINNING if frame == PIECE else b""
    with open_gateway(address, place) as found, suppress(OSError):
        while time.monotonic() < until_s:
            with found.protocol_mutex:  # two threads that write to one TLS socket at once crash the interpreter
                found.socket.sendall(beginning + frame * 10_000)
            beginning = b""


def gateway_greed(address: Address, place: str = "", for_s: float = 5.0) -> None:
    """The policy, over and over."""
    until_s = time.monotonic() + for_s
    with open_gateway(address, place) as found, suppress(ConnectionClosed):
        while time.monotonic() < until_s:
            say(found, Get("policy"))
