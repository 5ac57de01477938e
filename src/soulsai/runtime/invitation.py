"""The line that a friend types to join, and what to tell about it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from soulsai.errors import ConfigError
from soulsai.runs.fleet_file import FleetFile
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.connection import connect
from soulsai.transport.redis.invitations import end_those_over
from soulsai.transport.redis.keys import Keys

LOOK_S = 5.0
"""How often invitations are looked at whose time may be over."""
log = logging.getLogger(__name__)
LOOPBACK = ("127.0.0.1", "localhost", "::1")


def join_line(fleet: FleetFile, name: str, password: str) -> str:
    """What a friend types."""
    if fleet.gateway:
        host, port = host_and_port(fleet.gateway, "--gateway")
        return f"souls join {Address(host, port, name, password, fleet.run, True, None, True, fleet.fingerprint).url()}"
    place = urlsplit(fleet.advertised)
    tls = place.scheme == "rediss"
    address = Address(str(place.hostname), int(place.port or 0), name, password, fleet.run, tls)
    return f"souls join {address.url()}" + (f" --ca {Path(fleet.ca).name}" if fleet.ca else "")


def how_to_join(folder: Path, fleet: FleetFile, name: str, password: str) -> list[str]:
    """The line a friend types, and what else there is to know."""
    lines = ["", f"to join as {name} (the line holds a password):", f"  {join_line(fleet, name, password)}", ""]
    if fleet.gateway:
        return lines  # the line is all there is to it
    if fleet.ca:
        lines.append(f"send the file {fleet.ca} along; it is not a secret")
    host = urlsplit(fleet.advertised).hostname
    if host in LOOPBACK:
        again = f"souls serve --resume {folder} --host 0.0.0.0 --tls"
        lines.append(f"only this machine can join; to let others in, stop this and type: {again}")
    elif not fleet.advertised.startswith("rediss:"):
        lines.append("nothing is encrypted: outside of a network you trust, serve with --tls")
    return lines


@contextmanager
def end_expired_invitations(address: Address) -> Iterator[None]:
    """End invitations whose time is over, until the end of the block."""
    is_over = threading.Event()

    def look() -> None:
        with connect(address) as admin:
            while not is_over.wait(LOOK_S):
                try:
                    for name in end_those_over(admin, Keys(address.run)):
                        log.info("the invitation of %s is over", name)
                except Exception as error:  # Redis may be gone for a while; this looks again
                    log.warning("invitations could not be looked at: %s", error)

    thread = threading.Thread(target=look, daemon=True, name="invitations")
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join(2 * LOOK_S)


def host_and_port(text: str, option: str = "--advertise") -> tuple[str, int]:
    """Host and port of HOST or HOST:PORT."""
    try:
        parts = urlsplit(f"redis://{bracket_host(text) if text.count(':') > 1 and '[' not in text else text}")
        host, port = parts.hostname or "", parts.port or 0
    except ValueError:
        host, port = "", 0
    if not host or any(letter in "/@?#" or letter.isspace() for letter in text):
        raise ConfigError(f"{option} {text!r}: give a host name or address, with :PORT if it is another one")
    return host, port


def bracket_host(host: str) -> str:
    """As a URL has it."""
    return f"[{host}]" if ":" in host else host
