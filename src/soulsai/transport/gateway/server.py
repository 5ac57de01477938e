"""A gateway: one port, one process, WebSockets outside and one Redis inside.

It holds no secrets of a run. A worker's credentials are those of its user in Redis, with which the gateway connects on
its behalf: whoever is revoked there is out here too, and a gateway may stand on any machine that reaches the Redis.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import logging
import ssl
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import redis.asyncio
import uvicorn
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError, ResponseError
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from soulsai.errors import TransportError
from soulsai.transport.gateway.counts import ADDRESS, CREDENTIALS, LOCKED, MACHINES, NO_REDIS, SILENT, Counts
from soulsai.transport.gateway.messages import (
    LATER,
    REFUSED,
    Answer,
    Clock,
    Command,
    Failure,
    Get,
    Push,
    SendBeat,
    Waiting,
    key_of,
    requests,
)
from soulsai.transport.gateway.quotas import INVALID, TOO_LONG, Limits, Quotas
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.connection import REFUSALS, is_locked_out
from soulsai.transport.redis.entries import read_entry
from soulsai.transport.redis.invitations import machines_key
from soulsai.transport.redis.keys import Keys, check_name, check_run, is_worker

HEADERS_S = 10.0
"""How long a socket may take until it has asked for something."""
IDLE_S = 60.0
"""How long a worker may say nothing; it asks for the newest policy several times a second."""
REDIS_S = 5.0
FAILURES = 20
"""Wrong credentials from one address in a minute; beyond, it is refused without asking Redis."""
KNOCKING = 64
"""Connections of one address at once of which nobody knows yet whose they are."""
MOST_FRAMES = 64
"""Pings, and pieces of a message, until it is whole; a worker sends each message in one piece."""
READ_BYTES = 32 << 10
"""Bytes that are read of a connection at once: they may be thousands of frames."""
MOST_PLACES = 10_000
END_S = 2
TELL_EVERY_S = 10.0
AGAIN, NONSENSE, MESSAGE_TOO_BIG = 1013, 1008, 1009
"""Codes of the WebSocket protocol with which a connection ends."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class GatewayOptions:
    """Where a gateway stands, and in front of what; `upstream` is an address without credentials that count."""

    upstream: Address
    certificate: Path | None = None
    key: Path | None = None
    limits: Limits = field(default_factory=Limits)


class Gateway:
    """All connections of one gateway."""

    def __init__(self, upstream: Address, limits: Limits, say: Callable[[str], None]) -> None:
        self.quotas = Quotas(limits)
        self._upstream, self._say = upstream, say
        self._failures: dict[str, deque[float]] = {}
        self._knocking: Counter[str] = Counter()  # connections by address of which nobody knows yet whose they are
        self._told: dict[tuple[str, str], tuple[float, int]] = {}

    def app(self) -> Starlette:
        """What uvicorn runs."""
        return Starlette(routes=[WebSocketRoute("/{run}", self.serve)])

    async def serve(self, socket: WebSocket) -> None:
        """One connection, from its first word to its last."""
        place = socket.client.host if socket.client else ""
        try:
            name, password = _credentials(socket.headers.get("authorization", ""))
            keys = Keys(check_run(socket.path_params["run"]))
        except (TransportError, ValueError):
            await self._deny(
                socket, 401, CREDENTIALS, "give the address from the line you were sent: wss://NAME:PASSWORD@HOST/RUN"
            )
            return
        if self._fails_often(place) or self._knocking[place] >= KNOCKING:
            why = "too many wrong passwords, or connections at once, came from your address: wait a minute"
            await self._deny(socket, 429, ADDRESS, why)
            return
        client = _client(replace(self._upstream, user=name, password=password, run=keys.run))
        self._knocking[place] += 1
        try:
            limit = await self._let_in(socket, client, keys, name, place)
        finally:
            self._knocking -= Counter({place: 1})  # without those at 0
        try:
            if limit is not None:
                await self._serve_name(socket, client, keys, name, place, limit)
        except (WebSocketDisconnect, OSError, RedisError):
            pass
        finally:
            await client.aclose()

    async def _let_in(self, socket: WebSocket, client: Any, keys: Keys, name: str, place: str) -> int | None:
        """On how many machines the name may play, 0 for any number; None if Redis does not know name and password.

        Nothing is kept of a name before: whoever knows it could use up what its owner may have.
        """
        try:
            told = await client.get(machines_key(keys, name)) or b""  # which belongs to the run, as all keys do
        except REFUSALS as error:
            if is_locked_out(error):
                await self._deny(socket, 429, LOCKED, f"{name} has sent too much and is locked out for a while")
                return None
            self._failures.setdefault(place, deque(maxlen=FAILURES)).append(time.monotonic())
            while len(self._failures) > MOST_PLACES:
                self._failures.pop(next(iter(self._failures)))
            await self._deny(socket, 401, CREDENTIALS, "revoked or wrong credentials")
        except (RedisError, OSError) as error:
            log.warning("Redis cannot be reached: %s", error)
            await self._deny(socket, 503, NO_REDIS, "the learner cannot be reached from the gateway")
        else:
            return int(told) if told.isdigit() else 0
        return None

    async def _serve_name(self, socket: WebSocket, client: Any, keys: Keys, name: str, place: str, limit: int) -> None:
        """The connection of a name that is invited, unless it has enough of them."""
        known, (reason, why) = self.quotas.of(name), self.quotas.refusal(name)
        if not why and limit and place not in known.machines and len(known.machines) >= limit:
            reason, why = MACHINES, f"{name} may play on {limit} machines at once, and does: end one of them first"
        if why:
            await self._deny(socket, 429, reason, why)
            return
        totals = self.quotas.totals
        totals.accepted += 1
        totals.connections += 1
        known.connections += 1  # nothing was waited for since the look: many at once do not slip through
        known.machines[place] += 1
        try:
            await socket.accept()
            await _Connection(self, socket, client, keys, name).run()
        finally:
            known.connections -= 1
            totals.connections -= 1
            known.machines -= Counter({place: 1})

    async def _deny(self, socket: WebSocket, status: int, reason: str, why: str) -> None:
        self.quotas.totals.refused[reason] += 1
        await socket.send_denial_response(PlainTextResponse(why, status))

    def _fails_often(self, place: str) -> bool:
        failures = self._failures.get(place, deque())
        return len(failures) >= FAILURES and failures[0] > time.monotonic() - 60.0

    def tell(self, name: str, reason: str, chunks: int) -> None:
        """Say that chunks of a name are dropped, now and then."""
        told_s, untold = self._told.pop((name, reason), (0.0, 0))
        now_s, untold = time.monotonic(), untold + chunks
        if now_s - told_s >= TELL_EVERY_S:
            locked = ", and it is locked out for a while" if self.quotas.is_locked(name) else ""
            self._say(f"{name}: {untold} chunks dropped ({reason}){locked}")
            told_s, untold = now_s, 0
        self._told[name, reason] = (told_s, untold)
        while len(self._told) > MOST_PLACES:
            self._told.pop(next(iter(self._told)))


class _Connection:
    """One worker, or one machine that asks what is played."""

    def __init__(self, gateway: Gateway, socket: WebSocket, client: Any, keys: Keys, name: str) -> None:
        self._gateway, self._quotas = gateway, gateway.quotas
        self._socket, self._client, self._keys, self._name = socket, client, keys, name
        self._worker = ""  # the one life that this connection speaks for

    async def run(self) -> None:
        """Answer until somebody hangs up."""
        try:
            while True:
                data = await asyncio.wait_for(self._socket.receive_bytes(), IDLE_S)
                self._quotas.totals.bytes += len(data)
                commands = requests.decode(data)
                await asyncio.sleep(self._quotas.wait_s(self._name))
                answers = msgspec.msgpack.encode(await self._answer(commands))
                self._quotas.note_answer(self._name, len(answers))
                await asyncio.wait_for(self._socket.send_bytes(answers), IDLE_S)
                if self._quotas.is_locked(self._name):
                    await self._socket.close(LATER, "too much was sent: locked out for a while")
                    return
        except TimeoutError:
            await self._socket.close(AGAIN, "nothing was said for a while")
        except WebSocketDisconnect as error:
            if error.code in (MESSAGE_TOO_BIG, NONSENSE):
                self._count(TOO_LONG if error.code == MESSAGE_TOO_BIG else INVALID, 1)
        except (msgspec.MsgspecError, KeyError, ValueError) as error:  # KeyError: text instead of bytes
            self._count(INVALID, 1)
            await self._socket.close(NONSENSE, f"this cannot be read: {type(error).__name__}")
        except REFUSALS as error:
            await self._end_refused(error)
        except (RedisError, OSError) as error:
            await self._end_without_redis(error)

    async def _end_refused(self, error: Exception) -> None:
        if is_locked_out(error):
            await self._socket.close(LATER, "too much was sent: locked out for a while")
        else:
            await self._socket.close(REFUSED, "no longer invited")

    async def _end_without_redis(self, error: Exception) -> None:
        """Redis has hung up: because it is gone, or because the name is no longer invited."""
        try:
            await self._client.ping()
        except REFUSALS as refusal:
            await self._end_refused(refusal)
        except (RedisError, OSError):
            log.warning("Redis cannot be reached: %s", error)
            await self._socket.close(AGAIN, "the learner cannot be reached from the gateway")
        else:
            await self._socket.close(AGAIN, "the connection to the learner was lost")

    async def _answer(self, commands: Sequence[Command]) -> list[Answer]:
        pushes = [command for command in commands if isinstance(command, Push)]
        if len(pushes) > 1:
            raise ValueError("experience comes once in a message")
        asked = [command.what for command in commands if isinstance(command, Get)]
        if len(set(asked)) < len(asked):
            raise ValueError("the same is asked for twice in a message")
        refusals = [self._refuse(command) for command in commands]
        is_refused = any(why and isinstance(command, Push) for command, why in zip(commands, refusals, strict=True))
        sizes = [len(entry) for push in pushes for entry in push.entries]
        if sizes and not is_refused:
            reason, wait_s = self._quotas.pass_or_drop(self._name, sizes)
            if reason:
                self._gateway.tell(self._name, reason, len(sizes))
                why = f"OOM the gateway takes no more of {self._name} for now ({reason})"
                refusals = [
                    why if isinstance(command, Push) else text for command, text in zip(commands, refusals, strict=True)
                ]
            await asyncio.sleep(wait_s)
        pipe = self._client.pipeline(transaction=False)
        for command, why in zip(commands, refusals, strict=True):
            if not why:
                self._ask(pipe, command)
        replies = iter(await pipe.execute(raise_on_error=False) if not all(refusals) else [])
        answers = [Failure(why) if why else _answer_of(next(replies)) for why in refusals]
        self._note(commands, answers, sizes)
        return answers

    def _refuse(self, command: Command) -> str:
        """Why Redis is not asked; empty if it is. What is no experience of this worker never gets there."""
        if isinstance(command, SendBeat) and not self._speaks_for(command.worker):
            self._count(INVALID, 1)
            return "a heartbeat of somebody else"
        if isinstance(command, Push):
            for entry in command.entries:
                found = read_entry(self._name, entry)
                if found is None or not self._speaks_for(found.worker):
                    self._count(INVALID, len(command.entries))
                    return "no experience of this worker"
        return ""

    def _speaks_for(self, worker: str) -> bool:
        if not self._worker and is_worker(worker, self._name):
            self._worker = worker
        return worker == self._worker

    def _ask(self, pipe: Any, command: Command) -> None:
        keys, name = self._keys, self._name
        match command:
            case Push(entries):
                pipe.rpush(keys.experience(name), *entries)
            case SendBeat(worker, data):
                pipe.hset(keys.beats(name), worker, data)
            case Waiting():
                pipe.llen(keys.experience(name))
            case Get(what):
                pipe.get(key_of(keys, name, what))
            case Clock():
                pipe.time()

    def _note(self, commands: Sequence[Command], answers: Sequence[Answer], sizes: list[int]) -> None:
        for command, answer in zip(commands, answers, strict=True):
            if isinstance(answer, int):
                if isinstance(command, Push):
                    self._quotas.note_passed(self._name, sizes, answer)
                elif isinstance(command, Waiting):
                    self._quotas.note_waiting(self._name, answer)

    def _count(self, reason: str, chunks: int) -> None:
        self._quotas.drop(self._name, reason, chunks)
        self._gateway.tell(self._name, reason, chunks)


def _answer_of(reply: Any) -> Answer:
    if isinstance(reply, REFUSALS):
        raise reply
    if isinstance(reply, ResponseError):
        return Failure(str(reply)[:200])
    if isinstance(reply, Exception):
        raise reply
    return (int(reply[0]), int(reply[1])) if isinstance(reply, (tuple, list)) else reply


def _credentials(header: str) -> tuple[str, str]:
    """Name and password; ValueError or TransportError if they are none."""
    kind, _, rest = header.partition(" ")
    try:
        name, colon, password = base64.b64decode(rest, validate=True).decode().partition(":")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError from error
    if kind.lower() != "basic" or not colon or not 0 < len(password) <= 200:
        raise ValueError
    return check_name(name), password


def _client(address: Address) -> Any:
    tls: dict[str, Any] = {"ssl": True, "ssl_ca_certs": str(address.ca) if address.ca else None} if address.tls else {}
    return redis.asyncio.Redis(
        host=address.host, port=address.port, username=address.user, password=address.password, protocol=2,
        decode_responses=False, socket_timeout=REDIS_S, socket_connect_timeout=REDIS_S, driver_info=None,
        retry=Retry(NoBackoff(), 0), single_connection_client=True, **tls,
    )  # fmt: skip


class PromptProtocol(H11Protocol):
    """Hangs up on a socket that asks for nothing."""

    totals: Counts

    def connection_made(self, transport: Any) -> None:
        """Give it a while."""
        super().connection_made(transport)
        self._late = self.loop.call_later(HEADERS_S, self._hang_up)

    def handle_websocket_upgrade(self, event: Any) -> None:
        """It has asked."""
        self._late.cancel()
        super().handle_websocket_upgrade(event)

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        self._late.cancel()
        super().connection_lost(exc)

    def _hang_up(self) -> None:
        if not self.transport.is_closing():
            self.totals.refused[SILENT] += 1
            self.transport.abort()


class WholeMessages(WebSocketsSansIOProtocol):
    """Hangs up on one that sends frames without end and no message: reading those would take all the time there is."""

    _frames = 0

    def data_received(self, data: bytes) -> None:
        """Read a little at a time."""
        for at in range(0, len(data), READ_BYTES):
            if not self.transport.is_closing():
                super().data_received(data[at : at + READ_BYTES])

    def handle_ping(self) -> None:
        """Answer it."""
        if self._may_go_on():
            super().handle_ping()

    def handle_pong(self, event: Any) -> None:
        """It is there."""
        if self._may_go_on():
            super().handle_pong(event)

    def handle_cont(self, event: Any) -> None:
        """Add a piece."""
        if self._may_go_on():
            super().handle_cont(event)

    def send_receive_event_to_app(self) -> None:
        """A message is whole."""
        self._frames = 0
        super().send_receive_event_to_app()

    def _may_go_on(self) -> bool:
        self._frames += 1
        if self._frames > MOST_FRAMES and not self.transport.is_closing():
            self.queue.put_nowait({"type": "websocket.disconnect", "code": NONSENSE, "reason": ""})
            self.transport.abort()
        return self._frames <= MOST_FRAMES


def make_server(options: GatewayOptions, gateway: Gateway, started: Callable[[], None] = lambda: None) -> Any:
    """A uvicorn server, to be run with the sockets it listens on."""

    class Protocol(PromptProtocol):
        """Counts for this gateway."""

        totals = gateway.quotas.totals

    class Server(uvicorn.Server):
        """Tells when it answers."""

        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started:
                started()

    return Server(
        uvicorn.Config(
            gateway.app(),
            http=Protocol,
            ws=WholeMessages,
            ws_max_size=options.limits.message,
            ws_per_message_deflate=False,  # frames are packed already
            ws_ping_interval=20.0,
            ws_ping_timeout=20.0,
            loop="asyncio",
            lifespan="off",
            log_level="critical",  # it takes a refusal for an error of ours, and strangers could fill the log
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=2 * options.limits.all_connections,
            timeout_keep_alive=5,
            timeout_graceful_shutdown=END_S,
            ssl_certfile=options.certificate,
            ssl_keyfile=options.key,
            ssl_version=ssl.PROTOCOL_TLS_SERVER,
        )
    )
