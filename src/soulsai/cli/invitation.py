"""The line that a friend types to join, and what to tell about it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from soulsai.runs.fleet_file import FleetFile

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def join_line(fleet: FleetFile, name: str, password: str) -> str:
    """What a friend types."""
    from soulsai.transport.redis.address import Address

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
        again = f"souls serve --resume --run {folder} --host 0.0.0.0 --tls"
        lines.append(f"only this machine can join; to let others in, stop this and type: {again}")
    elif not fleet.advertised.startswith("rediss:"):
        lines.append("nothing is encrypted: outside of a network you trust, serve with --tls")
    return lines
