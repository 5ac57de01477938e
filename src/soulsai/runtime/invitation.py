"""The line that a friend types to join, and what to tell about it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from soulsai.errors import ConfigError
from soulsai.runs.fleet_file import FleetFile
from soulsai.transport.redis.address import Address

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def join_line(fleet: FleetFile, name: str, password: str) -> str:
    """What a friend types."""
    place = urlsplit(fleet.advertised)
    tls = place.scheme == "rediss"
    address = Address(str(place.hostname), int(place.port or 0), name, password, fleet.run, tls)
    return f"souls join {address.url()}" + (f" --ca {Path(fleet.ca).name}" if fleet.ca else "")


def how_to_join(folder: Path, fleet: FleetFile, name: str, password: str) -> list[str]:
    """The line a friend types, and what else there is to know."""
    lines = ["", f"to join as {name} (the line holds a password):", f"  {join_line(fleet, name, password)}", ""]
    if fleet.ca:
        lines.append(f"send the file {fleet.ca} along, which is no secret")
    host = urlsplit(fleet.advertised).hostname
    if host in LOOPBACK:
        again = f"souls serve --resume {folder} --host 0.0.0.0 --tls"
        lines.append(f"only this machine can join; to let others in, stop this and type: {again}")
    elif not fleet.advertised.startswith("rediss:"):
        lines.append("nothing is encrypted: outside of a network you trust, serve with --tls")
    return lines


def host_and_port(text: str) -> tuple[str, int]:
    """Host and port of HOST or HOST:PORT."""
    try:
        parts = urlsplit(f"redis://{bracketed(text) if text.count(':') > 1 and '[' not in text else text}")
        host, port = parts.hostname or "", parts.port or 0
    except ValueError:
        host, port = "", 0
    if not host or any(letter in "/@?#" or letter.isspace() for letter in text):
        raise ConfigError(f"--advertise {text!r}: give a host name or address, with :PORT if it is another one")
    return host, port


def bracketed(host: str) -> str:
    """As a URL has it."""
    return f"[{host}]" if ":" in host else host
