"""Clients of Redis, and patience with it."""

from __future__ import annotations

import logging
import random
import ssl
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import redis
from redis.backoff import NoBackoff
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ConnectionError,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TimeoutError,
    TryAgainError,
)
from redis.retry import Retry as RedisRetry

from soulsai.errors import TransportError
from soulsai.transport.redis.address import Address

HEALTH_CHECK_S = 15
"""A connection that was idle for so long is tried with a PING before it is used."""
FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0
SLICE_S = 0.1
"""How long at most until a pause notices that it is to stop."""
REFUSALS = (AuthenticationError, AuthorizationError, NoPermissionError)
PASSING = (
    ConnectionError,
    TimeoutError,
    ReadOnlyError,
    TryAgainError,
    MasterDownError,
    OutOfMemoryError,
    OSError,
)
"""What may be over after a while: refusals are looked for first, since some of them are connection errors."""
PASSING_WORDS = ("MISCONF", "LOADING", "BUSY ", "UNBLOCKED", "NOREPLICAS")
"""Beginnings of other answers that may be over after a while: a full disk, a server that still reads its files."""

_T = TypeVar("_T")
log = logging.getLogger(__name__)


class Refused(TransportError):
    """Redis does not let this user in, or not do this: waiting does not help."""


class LockedOut(Refused):
    """This name has sent too much, and may do nothing for a while."""


class Untrusted(Refused):
    """The server at the address has another certificate than it should."""


class Stopped(Exception):
    """The caller was told to stop while it waited."""


def connect(address: Address, *, limit_s: float = 5.0, client: str = "", keep: bool = False) -> Any:
    """A client with answers as bytes; it connects with its first command, and again after a connection was lost.

    Each answer has `limit_s` to come, so commands that block have to block for less. Nothing is tried twice. At the
    address of a gateway it can do what a worker does. `client` is its name in Redis; workers have no right to one. With
    `keep` a server that has too little memory for the messages of its clients hangs up on others first.
    """
    if address.is_gateway:
        from soulsai.transport.gateway.client import GatewayClient  # which needs the addresses of this package

        return GatewayClient(address, limit_s=limit_s)
    return redis.Redis(
        host=address.host,
        port=address.port,
        username=address.user or None,
        password=address.password or None,
        db=0,
        protocol=2,
        decode_responses=False,
        socket_timeout=limit_s,
        socket_connect_timeout=limit_s,
        socket_keepalive=True,
        health_check_interval=HEALTH_CHECK_S,
        retry=RedisRetry(NoBackoff(), 0),
        client_name=client or None,
        driver_info=None,  # Otherwise the library tells its name, which workers have no right to.
        redis_connect_func=_keep if keep else None,
        **(_tls(address) if address.tls else {}),
    )


def _keep(connection: Any = None) -> None:
    connection.on_connect()
    connection.send_command("CLIENT", "NO-EVICT", "ON")
    with suppress(ResponseError):  # before Redis 7, or without the right to
        connection.read_response()


def _tls(address: Address) -> dict[str, Any]:
    return {
        "ssl": True,
        "ssl_cert_reqs": "required",
        "ssl_check_hostname": True,
        "ssl_ca_certs": str(address.ca) if address.ca else None,
        "ssl_min_version": ssl.TLSVersion.TLSv1_2,
    }


class Retry:
    """Tries again what a lost connection broke, after growing pauses of random length, for as long as allowed."""

    def __init__(
        self, address: Address, patience_s: float | None = None, say: Callable[[str], None] = log.warning
    ) -> None:
        self._address, self._patience_s, self._say = address, patience_s, say

    def run(self, what: str, call: Callable[[], _T], stop: Callable[[], bool] = lambda: False) -> _T:
        """What `call` returns. `what` says in a few words what it does, as in "cannot send experience".

        Refused where Redis does not let us, TransportError when patience has ended, Stopped when `stop` says so.
        """
        began_s = time.monotonic()
        tries = 0
        while True:
            try:
                result = call()
            except (RedisError, OSError) as error:
                self._raise_lasting(what, error)
                self._after_failure(what, error, began_s, tries)
                tries += 1
                self._pause(tries, began_s, stop)
            else:
                if tries:
                    log.info("%s answers again after %.1f s", self._address.place, time.monotonic() - began_s)
                return result

    def _raise_lasting(self, what: str, error: Exception) -> None:
        """Raise for an error that no waiting cures."""
        if is_locked_out(error):
            raise LockedOut(
                f"cannot {what}: {self._address.place} lets {self._address.user or 'this user'} do nothing ({error}): "
                "locked out for a minute for sending too much, or without rights: try again later"
            ) from error
        if isinstance(error, REFUSALS):
            raise Refused(
                f"cannot {what}: {self._address.place} refuses {self._address.user or 'this user'} ({error}): "
                "revoked or wrong credentials: ask for a new invitation"
            ) from error
        if certificate := _certificate_error(error):
            raise Untrusted(
                f"cannot {what}: the certificate of {self._address.place} is not to be trusted ({certificate}): "
                "check the host name, and give the certificate you were sent with --ca FILE"
            ) from error
        if not _is_passing(error):
            raise error

    def _after_failure(self, what: str, error: Exception, began_s: float, tries: int) -> None:
        passed_s = time.monotonic() - began_s
        if self._patience_s is not None and passed_s >= self._patience_s:
            tried = f" after {passed_s:.0f} s" if passed_s >= 1.0 else ""
            raise TransportError(
                f"cannot {what}: {self._address.place} does not answer{tried} ({_words(error)}): "
                "check that it is running and can be reached"
            ) from error
        if not tries:
            self._say(f"cannot {what}: {self._address.place} ({_words(error)}): trying again")

    def _pause(self, tries: int, began_s: float, stop: Callable[[], bool]) -> None:
        """Any length up to a limit that doubles: clients that were cut off together do not come back together."""
        limit_s = min(FIRST_PAUSE_S * 2 ** min(tries - 1, 30), LONGEST_PAUSE_S)
        until_s = time.monotonic() + random.uniform(0.0, limit_s)
        if self._patience_s is not None:
            until_s = min(until_s, began_s + self._patience_s)
        while (left_s := until_s - time.monotonic()) > 0:
            if stop():
                break
            time.sleep(min(left_s, SLICE_S))
        if stop():
            raise Stopped


def is_locked_out(error: Exception) -> bool:
    """Whether a user was let in and may not even run the commands of a worker; a wrong key is something else."""
    return isinstance(error, NoPermissionError) and "to run the" in str(error)


def _is_passing(error: Exception) -> bool:
    return isinstance(error, PASSING) or (isinstance(error, ResponseError) and str(error).startswith(PASSING_WORDS))


def _certificate_error(error: BaseException | None) -> str:
    """Why a certificate was not accepted, in the system's words; empty if that was not the trouble."""
    for _ in range(8):
        if error is None:
            break
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message or "it cannot be verified"
        error = error.__cause__ or error.__context__
    return ""


def _words(error: Exception) -> str:
    return (str(error) or type(error).__name__).rstrip(".")
