"""Getting a Redis for a run that is served: its own, or one that is running."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import typer

if TYPE_CHECKING:
    from soulsai.config.schema import Config
    from soulsai.runs.fleet_file import FleetFile
    from soulsai.runs.run import Run
    from soulsai.transport.redis.address import Address

FRIEND = "friend"
"""Invited at the first start, so that there is a line to type at once."""
LOOPBACK = "127.0.0.1"
EVERYWHERE = ("0.0.0.0", "::", "*")
REACH_S = 60.0
"""How long a Redis that was named may take to answer: it may just be starting, too."""


@dataclass(frozen=True)
class Wishes:
    """What the user has said about the Redis; empty or None: as it was before, or the default."""

    redis: str
    host: str
    port: int
    tls: bool | None
    ca: Path | None
    advertise: str


def open_redis(
    run: Run, config: Config, wishes: Wishes, held: ExitStack, say: Callable[[str], None]
) -> tuple[FleetFile, Address]:
    """A Redis that answers, with the run's file about it brought up to date; `held` stops what was started."""
    from soulsai.runs.fleet_file import read_fleet, write_fleet

    before = read_fleet(run.folder)
    own = not wishes.redis and (before is None or before.own)
    opened = _own_redis(run, config, wishes, before, held, say) if own else _named_redis(run, wishes, before)
    fleet, address = opened
    fleet = replace(fleet, generation=fleet.generation + 1)
    write_fleet(run.folder, fleet)  # before anything is published: versions of a generation must never repeat
    _look_over(fleet, address, say)
    if run.status().state == "finished":
        _forget_farewell(address)
    if passwords := _invited(fleet, address, say):
        fleet = replace(fleet, passwords=passwords)
        write_fleet(run.folder, fleet)
    return fleet, address


def _own_redis(
    run: Run, config: Config, wishes: Wishes, before: FleetFile | None, held: ExitStack, say: Callable[[str], None]
) -> tuple[FleetFile, Address]:
    from soulsai.cli.keeper import Keeper
    from soulsai.runs.fleet_file import FleetFile
    from soulsai.transport.redis.server import OwnServer

    host = wishes.host or (before.host if before else "") or LOOPBACK
    tls = wishes.tls if wishes.tls is not None else bool(before and before.admin.startswith("rediss:"))
    advertise = wishes.advertise or (before.advertise if before else "")
    name, port = place_of(advertise) if advertise else (_seen_from_outside(host), 0)
    run_id = before.run if before else _new_id(run.name)

    def start() -> OwnServer:
        memory_mb, names = config.fleet.memory_mb, [name] if name else []
        return OwnServer.start(
            run.folder / "redis", host=host, port=wishes.port, tls=tls, memory_mb=memory_mb, run=run_id, names=names
        )

    server = held.enter_context(Keeper(start, say))
    address = server.address
    kept = before or FleetFile(run_id, "", "")
    fleet = replace(
        kept,
        admin=address.url(),
        advertised=f"{'rediss' if tls else 'redis'}://{_bracketed(name)}:{port or address.port}",
        ca=str(server.ca) if server.ca else "",
        own=True,
        host=host,
        advertise=advertise,
    )
    return fleet, address


def _named_redis(run: Run, wishes: Wishes, before: FleetFile | None) -> tuple[FleetFile, Address]:
    from soulsai.runs.fleet_file import FleetFile
    from soulsai.transport.redis.address import Address
    from soulsai.transport.redis.connection import Retry, connect

    url = wishes.redis or (before.admin if before else "")
    told = _path(url)
    run_id = before.run if before else (told if told not in ("", "0") else _new_id(run.name))
    ca = wishes.ca or (Path(before.ca) if before and before.ca else None)
    address = Address.parse(url, ca, run=run_id)
    with connect(address) as admin:
        Retry(address, REACH_S).run("serve", admin.ping)
    advertise = wishes.advertise or (before.advertise if before else "")
    name, port = place_of(advertise) if advertise else (address.host, 0)
    kept = before or FleetFile(run_id, "", "")
    fleet = replace(
        kept,
        admin=address.url(),
        advertised=f"{'rediss' if address.tls else 'redis'}://{_bracketed(name)}:{port or address.port}",
        ca=str(ca.absolute()) if ca else "",
        own=False,
        host="",
        advertise=advertise,
    )
    return fleet, address


def _look_over(fleet: FleetFile, address: Address, say: Callable[[str], None]) -> None:
    """Say what the run could lose by another's Redis, and give everyone invited the rights of today."""
    from soulsai.transport.redis.access import renew_rights
    from soulsai.transport.redis.connection import connect
    from soulsai.transport.redis.foreign import shortcomings
    from soulsai.transport.redis.keys import Keys

    with connect(address) as admin:
        for sentence in () if fleet.own else shortcomings(admin):
            say(f"careful: {sentence}")
        renew_rights(admin, Keys(fleet.run), say)


def _forget_farewell(address: Address) -> None:
    """The run was over and goes on: workers that were cut off at its end need no longer hear that they may leave."""
    from soulsai.transport.redis.access import invited
    from soulsai.transport.redis.connection import connect
    from soulsai.transport.redis.keys import Keys

    keys = Keys(address.run)
    with connect(address) as admin:
        for name in invited(admin, keys):
            admin.delete(keys.to(name))


def _invited(fleet: FleetFile, address: Address, say: Callable[[str], None]) -> dict[str, str]:
    """The first friend's password where it is new: at the first start, or when Redis has forgotten him."""
    from soulsai.errors import TransportError
    from soulsai.transport.redis.access import invite, invited
    from soulsai.transport.redis.connection import connect
    from soulsai.transport.redis.keys import Keys

    if fleet.generation > 1 and not fleet.passwords:
        return {}  # he was revoked, which is to last
    keys = Keys(fleet.run)
    with connect(address) as admin:
        names = list(fleet.passwords) or [FRIEND]
        if fleet.passwords and set(names) <= set(invited(admin, keys)):
            return {}
        try:
            return {names[0]: invite(admin, keys, names[0], say)}
        except TransportError:
            if fleet.own:
                raise
        other = f"{FRIEND}-{secrets.token_hex(2)}"  # another run of this Redis has a friend already
        return {other: invite(admin, keys, other, say)}


def _new_id(name: str) -> str:
    """An id for a run that no other has: an old run of the same name may still be in Redis."""
    plain = "".join(letter if letter.isascii() and (letter.isalnum() or letter in "._-") else "-" for letter in name)
    return f"{plain[:70] or 'run'}-{secrets.token_hex(3)}"


def _path(url: str) -> str:
    try:
        return urlsplit(url).path.strip("/")
    except ValueError:
        return ""  # a broken address, which is told where it is read


def place_of(text: str) -> tuple[str, int]:
    """Host and port of HOST or HOST:PORT."""
    try:
        parts = urlsplit(f"redis://{_bracketed(text) if text.count(':') > 1 and '[' not in text else text}")
        host, port = parts.hostname or "", parts.port or 0
    except ValueError:
        host, port = "", 0
    if not host or any(letter in "/@?#" or letter.isspace() for letter in text):
        raise typer.BadParameter(f"--advertise {text!r}: give a host name or address, with :PORT if it is another one")
    return host, port


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _seen_from_outside(host: str) -> str:
    from soulsai.transport.reach import seen_from_outside

    return seen_from_outside() if host in EVERYWHERE else host
