"""A worker's end of a gateway: it does what a client of Redis does for a worker, over one WebSocket."""

from __future__ import annotations

import base64
import hashlib
import hmac
import selectors
import socket
import ssl
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

import msgspec
from redis.exceptions import AuthenticationError, ConnectionError, ResponseError
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from soulsai.transport.frames import LARGEST_BODY
from soulsai.transport.gateway.messages import (
    REFUSED,
    WHAT,
    Clock,
    Command,
    Failure,
    Get,
    Push,
    SendBeat,
    Waiting,
    answers,
    key_of,
)
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.keys import Keys

T = TypeVar("T")

LARGEST_ANSWER = LARGEST_BODY + (1 << 20)
"""A policy, and what else is answered with it."""


class GatewayClient:
    """Connects with its first command, and again after a connection was lost; errors are those of a client of Redis."""

    def __init__(self, address: Address, *, limit_s: float) -> None:
        self._address, self._limit_s = address, limit_s
        keys = Keys(address.run)
        self._what = {key_of(keys, address.user, what): what for what in WHAT}
        self._socket: ClientConnection | None = None
        self.connection_pool = self  # which can be disconnected

    def __enter__(self) -> GatewayClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.disconnect()

    def pipeline(self, *, transaction: bool = False) -> GatewayPipeline:
        """Commands that are sent together."""
        return GatewayPipeline(self, self._what)

    def get(self, key: str) -> Any:
        """One value."""
        return self.pipeline().get(key).execute()[0]

    def time(self) -> Any:
        """Seconds and microseconds."""
        return self.pipeline().time().execute()[0]

    def disconnect(self) -> None:
        """Hang up."""
        connection, self._socket = self._socket, None
        if connection is not None:
            connection.close_timeout = 1.0
            connection.close()

    def ask(self, commands: list[Command]) -> list[Any]:
        """An answer to each; one that was refused is a ResponseError."""
        try:
            if self._socket is None:
                self._socket = self._connect()
            self._socket.send(msgspec.msgpack.encode(commands))
            data = self._socket.recv(timeout=self._limit_s, decode=False)
            found = answers.decode(data)
        except ConnectionClosed as error:
            self._socket = None
            closed = error.rcvd
            if closed is not None and closed.code == REFUSED:
                raise AuthenticationError(closed.reason) from error
            raise ConnectionError(closed.reason if closed and closed.reason else "the gateway has hung up") from error
        except (TimeoutError, OSError, msgspec.MsgspecError) as error:
            self.disconnect()
            if isinstance(error, ssl.SSLCertVerificationError):
                raise
            raise ConnectionError(str(error) or "the gateway does not answer") from error
        if len(found) != len(commands):
            self.disconnect()
            raise ConnectionError("the gateway gives other answers than were asked for")
        return [ResponseError(answer.why) if isinstance(answer, Failure) else answer for answer in found]

    def _connect(self) -> ClientConnection:
        address = self._address
        secret = base64.b64encode(f"{address.user}:{address.password}".encode()).decode()
        plain = socket.create_connection((address.host, address.port), self._limit_s)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            open_socket = secure_socket(plain, address) if address.tls else plain
            manager = connect(
                f"ws://{address.place}/{address.run}", sock=open_socket, compression=None, max_size=LARGEST_ANSWER,
                open_timeout=self._limit_s, proxy=None, user_agent_header=None,
                additional_headers={"Authorization": f"Basic {secret}"},
            )  # fmt: skip
            return manager.__enter__()
        except InvalidStatus as error:
            plain.close()
            why = (error.response.body or b"")[:300].decode(errors="replace")
            if error.response.status_code == 401:
                raise AuthenticationError(why) from error
            raise ConnectionError(why or f"the gateway answers {error.response.status_code}") from error
        except InvalidHandshake as error:
            plain.close()
            raise ConnectionError(f"this is not a gateway: {error}") from error
        except BaseException:
            plain.close()
            raise


class GatewayPipeline:
    """What a worker says in one go."""

    def __init__(self, client: GatewayClient, what: dict[str, str]) -> None:
        self._client, self._what = client, what
        self._commands: list[Command] = []

    def rpush(self, key: str, *entries: bytes) -> GatewayPipeline:
        """Send experience."""
        return self._add(Push(list(entries)))

    def hset(self, key: str, worker: str, data: bytes) -> GatewayPipeline:
        """Send a heartbeat."""
        return self._add(SendBeat(worker, data))

    def llen(self, key: str) -> GatewayPipeline:
        """Ask how much waits."""
        return self._add(Waiting())

    def get(self, key: str) -> GatewayPipeline:
        """Ask for something."""
        return self._add(Get(self._what[key]))  # type: ignore[arg-type]

    def time(self) -> GatewayPipeline:
        """Ask for the time."""
        return self._add(Clock())

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """The answers, in order."""
        replies = self._client.ask(self._commands)
        self._commands = []
        for reply in replies:
            if raise_on_error and isinstance(reply, Exception):
                raise reply
        return replies

    def _add(self, command: Command) -> GatewayPipeline:
        self._commands.append(command)
        return self


class _TlsSocket(ssl.SSLSocket):
    """One thread at a time: OpenSSL crashes, or breaks the connection, if one reads while another writes.

    Not every Python keeps them apart, and a WebSocket is read by a thread of its own.
    """

    _turn: threading.Lock

    def __new__(cls, *words: Any, **options: Any) -> _TlsSocket:
        """With its lock: such sockets are made without their initialiser."""
        self = super().__new__(cls, *words, **options)
        self._turn = threading.Lock()
        return self

    def send(self, data: Any, flags: int = 0) -> int:
        """Write a part."""
        return self._take_turns(lambda: super(_TlsSocket, self).send(data, flags))

    def recv(self, buflen: int = 1024, flags: int = 0) -> bytes:
        """Wait until something can be read."""
        return self._take_turns(lambda: super(_TlsSocket, self).recv(buflen, flags))

    def _take_turns(self, act: Callable[[], T]) -> T:
        """Nobody waits during its turn: the other end may have to be read before it takes what is written."""
        while True:
            with self._turn:
                limit_s = self.gettimeout()
                self.settimeout(0.0)
                try:
                    return act()
                except ssl.SSLWantReadError:
                    event = selectors.EVENT_READ
                except ssl.SSLWantWriteError:
                    event = selectors.EVENT_WRITE
                finally:
                    self.settimeout(limit_s)
            with selectors.DefaultSelector() as ready:  # select() knows 1,024 sockets only
                ready.register(self, event)
                if not ready.select(limit_s):
                    raise TimeoutError(f"the other end neither took nor sent anything for {limit_s} s")


def secure_socket(plain: socket.socket, address: Address) -> ssl.SSLSocket:
    """The socket with TLS. The other end is known by the fingerprint in the address, or else by what the system trusts.

    Nothing is said, credentials least of all, to an end that is not the one meant.
    """
    if address.fingerprint:  # certificates of the system are not asked, and take a tenth of a second to load
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    else:
        context = ssl.create_default_context(cafile=str(address.ca) if address.ca else None)
    context.sslsocket_class = _TlsSocket
    open_socket = context.wrap_socket(plain, server_hostname=address.host)
    if address.fingerprint:
        found = fingerprint_of(open_socket.getpeercert(binary_form=True) or b"")
        if not hmac.compare_digest(found, address.fingerprint):
            open_socket.close()
            error = ssl.SSLCertVerificationError("another certificate than the one in the line you were sent")
            error.verify_message = "it is another one than in the line you were sent"
            raise error
    return open_socket


def fingerprint_of(certificate: bytes) -> str:
    """What a join line holds of a certificate."""
    return base64.urlsafe_b64encode(hashlib.sha256(certificate).digest()).decode().rstrip("=")
