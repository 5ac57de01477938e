"""Where a run's Redis, or a gateway in front of it, is and who is asking: what a join line holds."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, quote, unquote, urlsplit

from soulsai.errors import TransportError
from soulsai.transport.redis.keys import check_run

PORT = 6379
SCHEMES = {"redis": False, "rediss": True, "valkey": False, "valkeys": True, "ws": False, "wss": True}
GATEWAY_PORTS = {"ws": 80, "wss": 443}
"""Where gateways listen if an address does not say; its scheme tells that it is one."""
FINGERPRINT = re.compile(r"[A-Za-z0-9_-]{43}")
SHAPE = "redis://NAME:PASSWORD@HOST:PORT/RUN, rediss://... with TLS, or wss://... for a gateway"


@dataclass(frozen=True)
class Address:
    """A Redis, a run in it, and the credentials of one user. Its text never shows the password."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    run: str
    tls: bool = False
    ca: Path | None = None
    """The certificate that the server's is checked against; None: those that the system trusts."""
    is_gateway: bool = False
    fingerprint: str = ""
    """Of a gateway's certificate, by which it is known instead."""

    @property
    def is_near(self) -> bool:
        """Whether this is the same machine, as far as can be told."""
        return self.host == "localhost" or self.host == "::1" or self.host.startswith("127.")

    def url(self) -> str:
        """The address with its password, as `parse` reads it; the certificate travels on its own."""
        credentials = f"{quote(self.user, safe='')}:{quote(self.password, safe='')}@"
        place = f"{credentials if self.user or self.password else ''}{self.place}/{self.run}"
        return f"{self._scheme}://{place}{f'#{self.fingerprint}' if self.fingerprint else ''}"

    @property
    def place(self) -> str:
        """Host and port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        who = f"{quote(self.user, safe='')}:***@" if self.user or self.password else ""
        return f"{self._scheme}://{who}{self.place}/{self.run}"

    @property
    def _scheme(self) -> str:
        return ("wss" if self.tls else "ws") if self.is_gateway else ("rediss" if self.tls else "redis")

    @staticmethod
    def parse(url: str, ca: Path | None = None, *, run: str | None = None) -> Address:
        """Read a join line; with `run` the address of a Redis for the operator, which need not name a run or a user.

        The text of an error never holds the password.
        """
        parts = _split(url)
        tls = SCHEMES[parts.scheme]
        if ca is not None:
            _check_ca(ca, tls=tls)
        if run is not None and parts.scheme in GATEWAY_PORTS:
            raise TransportError(
                f"{parts.hostname} is a gateway, for workers: give the Redis behind it, as redis://HOST:PORT"
            )
        user, password = unquote(parts.username or ""), unquote(parts.password or "")
        if run is None and not (user and password):
            raise TransportError(f"the address names no user and password: it looks like {SHAPE}")
        return Address(
            host=str(parts.hostname),
            port=parts.port or GATEWAY_PORTS.get(parts.scheme, PORT),
            user=user,
            password=password,
            run=_run(parts, run),
            tls=tls,
            ca=ca,
            is_gateway=parts.scheme in GATEWAY_PORTS,
            fingerprint=parts.fragment,
        )


def _split(url: str) -> SplitResult:
    """Nothing of a broken address is repeated: what is the password in it is not known."""
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in SCHEMES and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise TransportError(f"this is not the address of a Redis: it looks like {SHAPE}")
    if parts.scheme == "wss" and parts.fragment and not FINGERPRINT.fullmatch(parts.fragment):
        raise TransportError("the part of the address after # is not a fingerprint: copy the whole line again")
    if parts.query or (parts.fragment and parts.scheme != "wss"):
        raise TransportError("the address has a ? or # in it: write these as %3F and %23 in a password")
    return parts


def _run(parts: SplitResult, expected: str | None) -> str:
    told = unquote(parts.path).strip("/")
    if expected is None:
        if not told:
            raise TransportError(f"the address of {parts.hostname} names no run: it looks like {SHAPE}")
        return check_run(told)
    if told not in ("", "0", expected):
        raise TransportError(f"the address names the run {told[:100]!r}, this one is {expected!r}: leave the run out")
    return check_run(expected)


def _check_ca(ca: Path, *, tls: bool) -> None:
    if not tls:
        raise TransportError(
            f"{ca}: a certificate is of use with TLS only, and the address begins with redis:// or ws://"
        )
    if not ca.is_file():
        raise TransportError(f"{ca}: there is no such certificate: ask the one who invited you for the file ca.crt")
    try:
        ssl.create_default_context(cafile=str(ca))
    except OSError as error:  # An SSLError is one too.
        raise TransportError(f"{ca}: is not a readable certificate: ask for the file ca.crt again") from error
