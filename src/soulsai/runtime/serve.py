"""A learner that workers reach over Redis: the run's own, or one that is running."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import redis
from redis.exceptions import RedisError

from soulsai.config import config_to_toml
from soulsai.config.schema import Config
from soulsai.errors import ConfigError, TransportError
from soulsai.learning.limits import most_rows
from soulsai.learning.session import Fleet as FleetLink
from soulsai.learning.session import Outcome
from soulsai.learning.sources import Start
from soulsai.learning.wiring import environment_version
from soulsai.runs.fight_files import files_of, needed_parts, with_short_names
from soulsai.runs.fleet_file import LOCK, FleetFile, read_fleet, write_fleet
from soulsai.runs.lock import hold_lock
from soulsai.runs.run import Run
from soulsai.runtime.invitation import bracket_host, host_and_port, join_line
from soulsai.runtime.redis_server import EVERYWHERE, LOOPBACK, keep_server
from soulsai.transport.gateway.counts import gateway_part
from soulsai.transport.reach import seen_from_outside
from soulsai.transport.redis.access import invite, invited, renew_rights
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.connection import Retry, connect
from soulsai.transport.redis.entries import EVERYONE
from soulsai.transport.redis.foreign import shortcomings
from soulsai.transport.redis.keys import Keys
from soulsai.transport.redis.learner import RedisLearnerLink
from soulsai.transport.redis.quota import MB, Quota
from soulsai.transport.redis.report import (
    Snapshot,
    books_line,
    keep_last,
    look_at,
    open_lines,
    playing,
    report_of,
    stop_workers,
)
from soulsai.transport.welcome import Welcome, pack_welcome
from soulsgym.packages import VERSION

FRIEND = "friend"
"""Invited at the first start, so that there is a line to type at once."""
REACH_S = 60.0
"""How long a Redis that was named may take to answer: it may just be starting, too."""
LEAVE_S = 15.0
"""How long workers may take to leave a finished run; one that is cut off finds out when it comes back."""
ANSWER_S = 1.0
"""How long Redis may take to answer at the end of a run: nothing that was learned depends on it any more."""
LOOK_S = 0.2
KEEP_S = 10.0
"""How often it is kept how the fleet is."""
NAME_SHARE, SMALLEST_MB = 2, 32
"""One name may have so large a part of the memory of Redis waiting, and so many MB in any case."""
OVER = "run_over"
"""Why rows are dropped that came after the last step of the run."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class RedisOptions:
    """The Redis of a run; what is empty or None is as it was before, or the default."""

    url: str = ""  # of a Redis that is running, with the administrator's password; else the run starts its own
    host: str = ""  # on which its own listens
    port: int = 0
    tls: bool | None = None
    ca: Path | None = None  # certificate to check the Redis at `url` with
    advertise: str = ""  # HOST or HOST:PORT by which workers reach it


class Served:
    """A run that workers can join."""

    def __init__(self, run: Run, fleet: FleetFile, address: Address, link: RedisLearnerLink) -> None:
        self.run, self.fleet, self.address = run, fleet, address
        self.learn: Callable[[FleetLink], Outcome]
        self.outcome: Outcome | None = None
        self._link = link

    @property
    def join_line(self) -> str:
        """What a friend types to join; it holds a password. Empty if nobody is invited."""
        return next((join_line(self.fleet, name, password) for name, password in self.fleet.passwords.items()), "")

    @property
    def url(self) -> str:
        """The address in that line, for `join`."""
        return self.join_line.split()[2] if self.join_line else ""

    def train(self) -> Outcome:
        """Learn from whoever is there, to the end or until told to stop."""
        self.outcome = self.learn(FleetLink(self._link, Start(self.fleet.run, self.fleet.generation)))
        return self.outcome


@contextmanager
def serve_redis(
    run: Run, config: Config, options: RedisOptions, say: Say, stop: Callable[[], bool]
) -> Iterator[Served]:
    """A Redis in which the run can be joined, until the end of the block; then workers of a finished run are let go."""
    with ExitStack() as held:
        held.enter_context(hold_lock(run.folder / LOCK))
        fleet, address = open_redis(run, config, options, held, say)
        link = RedisLearnerLink(address, say=say, stop=stop, silent_after_s=config.fleet.silent_after_s,
                                max_chunks=2 * config.fleet.max_chunks, most_rows=most_rows(config),
                                quota=_quota(config), on_look=_LastReport(run))  # fmt: skip
        held.callback(link.close)
        link.welcome(_welcome(fleet.run, config))
        served = Served(run, fleet, address, link)
        yield served
        link.close()
        if served.outcome is not None:
            _end(run, address, say, finished=served.outcome.finished)


class _LastReport:
    """Keeps how the fleet is, now and then, for `souls fleet` after a learner that was killed."""

    def __init__(self, run: Run) -> None:
        self._run, self._kept_s = run, time.monotonic()

    def __call__(self, seen: Snapshot) -> None:
        if time.monotonic() - self._kept_s >= KEEP_S:
            self._kept_s = time.monotonic()
            keep_last(self._run.folder, report_of(seen) | gateway_part(self._run.folder))


def _quota(config: Config) -> Quota:
    fleet = config.fleet
    memory = max(fleet.memory_mb / NAME_SHARE, SMALLEST_MB) * MB
    return Quota(memory=memory, waiting=2 * fleet.max_chunks, messages_per_s=fleet.messages_per_s)


def _end(run: Run, address: Address, say: Say, *, finished: bool) -> None:
    """Let workers go where the run is over, and close the books. What was learned is safe, whatever happens here."""

    try:
        with connect(address, limit_s=ANSWER_S) as admin:
            admin.ping()
        if finished:
            _let_go(address, say)
        _close_books(run, address, say)
    except (RedisError, TransportError) as error:
        say(f"the books could not be closed: {error}")


def _let_go(address: Address, say: Say) -> None:
    """Tell all workers to stop, and count what was still on its way as dropped."""
    keys = Keys(address.run)
    # A new link: what the learner had taken but not used is handed out once more.
    link = RedisLearnerLink(address, patience_s=LEAVE_S, say=say)
    try:
        with connect(address) as admin:
            stop_workers(admin, keys, EVERYONE, invited(admin, keys))
            deadline_s = time.monotonic() + LEAVE_S
            while True:
                there = playing(look_at(admin, keys))
                late = link.receive(LOOK_S)
                link.settle((), [(message, OVER) for message in late])
                if not (there or late) or time.monotonic() > deadline_s:
                    return
    finally:
        link.close()


def _close_books(run: Run, address: Address, say: Say) -> None:
    """Say what became of every row, and keep it for `souls fleet`."""
    with connect(address) as admin:
        report = look_at(admin, Keys(address.run), check=True)
    report |= gateway_part(run.folder)
    report["learner"] |= {"steps": str(run.status().step)}  # it tells that only now and then
    keep_last(run.folder, report)
    for line in (books_line(report["total"]), *open_lines(report)):
        say(line)


def _welcome(run_id: str, config: Config) -> bytes:
    text, environment = config_to_toml(with_short_names(config)), environment_version(config)
    return pack_welcome(Welcome(run_id, text, VERSION, environment, files_of(config), needed_parts(config)))


# The Redis


def open_redis(run: Run, config: Config, options: RedisOptions, held: ExitStack, say: Say) -> tuple[FleetFile, Address]:
    """A Redis that answers, with the run's file about it brought up to date; `held` stops what was started."""
    before = read_fleet(run.folder)
    own = not options.url and (before is None or before.own)
    _refuse_mix(options, before, own=own)
    opened = _own_redis(run, config, options, before, held, say) if own else _find_redis(run, options, before)
    fleet, address = opened
    fleet = replace(fleet, generation=fleet.generation + 1)
    write_fleet(run.folder, fleet)  # before anything is published: versions of a generation must never repeat
    keys = Keys(fleet.run)
    with connect(address) as admin:
        for sentence in () if fleet.own else shortcomings(admin):
            say(f"careful: {sentence}")
        renew_rights(admin, keys, say)
        if run.status().state == "finished":  # it goes on: workers that were cut off at its end may stay
            for name in invited(admin, keys):
                admin.delete(keys.to(name))
        if passwords := _invite_first(fleet, admin, keys, say):
            fleet = replace(fleet, passwords=passwords)
            write_fleet(run.folder, fleet)
    return fleet, address


def _refuse_mix(options: RedisOptions, before: FleetFile | None, *, own: bool) -> None:
    if own and options.ca:
        raise ConfigError(
            f"--ca {options.ca} is for the Redis of --redis, and this run starts its own: leave it out, or give --redis"
        )
    if own or not (options.host or options.port or options.tls is not None):
        return
    if options.url or before is None:
        raise ConfigError("--host, --port and --tls are for the run's own Redis; leave them out with --redis")
    place = urlsplit(before.admin)
    raise ConfigError(
        f"--host, --port and --tls are for a run's own Redis, and this one uses that at {place.hostname}:{place.port}"
        ": leave them out, or give another address with --redis"
    )


def _own_redis(
    run: Run, config: Config, options: RedisOptions, before: FleetFile | None, held: ExitStack, say: Say
) -> tuple[FleetFile, Address]:
    host = options.host or (before.host if before else "") or LOOPBACK
    tls = options.tls if options.tls is not None else bool(before and before.admin.startswith("rediss:"))
    advertise = options.advertise or (before.advertise if before else "")
    outside = seen_from_outside() if host in EVERYWHERE else host
    name = host_and_port(advertise)[0] if advertise else outside
    server = held.enter_context(keep_server(
        run.folder / "redis", say, host=host, port=options.port, tls=tls, memory_mb=config.fleet.memory_mb,
        run=before.run if before else _new_id(run.name), names=[name] if name else [],
    ))  # fmt: skip
    fleet = _fleet_file(server.address, before, server.ca, advertise, outside)
    return replace(fleet, own=True, host=host), server.address


def _find_redis(run: Run, options: RedisOptions, before: FleetFile | None) -> tuple[FleetFile, Address]:
    url = options.url or (before.admin if before else "")
    told = _path(url)
    run_id = before.run if before else (told if told not in ("", "0") else _new_id(run.name))
    ca = options.ca or (Path(before.ca) if before and before.ca else None)
    address = Address.parse(url, ca, run=run_id)
    with connect(address) as admin:
        Retry(address, REACH_S).run("serve", admin.ping)
    advertise = options.advertise or (before.advertise if before else "")
    fleet = _fleet_file(address, before, ca and ca.absolute(), advertise, address.host)
    return replace(fleet, own=False, host=""), address


def _fleet_file(address: Address, before: FleetFile | None, ca: Path | None, advertise: str, outside: str) -> FleetFile:
    name, port = host_and_port(advertise) if advertise else (outside, 0)
    advertised = f"{'rediss' if address.tls else 'redis'}://{bracket_host(name)}:{port or address.port}"
    kept = before or FleetFile(address.run, "", "")
    return replace(kept, admin=address.url(), advertised=advertised, ca=str(ca or ""), advertise=advertise)


def _invite_first(fleet: FleetFile, admin: redis.Redis, keys: Keys, say: Say) -> dict[str, str]:
    """The first friend's password where it is new: at the first start, or when Redis has forgotten him."""
    if fleet.generation > 1 and not fleet.passwords:
        return {}  # he was revoked, which is to last
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
