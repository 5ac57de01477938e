"""The fleet of a run for the page: as it is now, as it was last, or why nothing is known."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from soulsai.dashboard.library import RunDetails, is_inside
from soulsai.errors import RunError, TransportError
from soulsai.runs.fleet_file import FILE, FleetFile, is_served, read_fleet
from soulsgym.packages import install_command

FRESH_S = 1.0
"""Viewers share one report for this long."""
REST = 5.0
"""After a slow report, the next one is made after this many times its duration."""
REACH_S = 2.0
"""How long Redis may take to answer."""
LOCAL = "fleet/"
"""Prefix of the metrics about workers, including local ones."""

Report = dict[str, Any]


@dataclass
class _CachedReport:
    """A report and its expiry."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    report: Report | None = None
    until_s: float = 0.0


class Fleets:
    """Fleet reports, shared by all viewers."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._reports: dict[Path, _CachedReport] = {}

    def look(self, details: RunDetails) -> Report:
        """The report of a run's fleet. While one viewer waits for Redis, the others get what was known before."""
        cached = self._reports.setdefault(details.folder, _CachedReport())
        if cached.report is not None and (self._clock() < cached.until_s or cached.lock.locked()):
            return cached.report
        with cached.lock:
            began_s = self._clock()
            if cached.report is None or began_s >= cached.until_s:
                cached.report = _report(details)
                now_s = self._clock()
                cached.until_s = now_s + max(FRESH_S, REST * (now_s - began_s))
            return cached.report


def _report(details: RunDetails) -> Report:
    if not is_inside(details.folder / FILE, details.folder):
        return unknown(f"{details.folder / FILE}: is not in the folder of the run; put the file itself there")
    try:
        about = read_fleet(details.folder)
    except RunError as error:
        return unknown(str(error))
    if about is None:
        return _report_without_redis(details)
    if about.own and not is_served(details.folder):
        return _last(details.folder, f"{details.id} is not being served now")
    try:
        return _complete(_look_now(about) | _gateway(details.folder), now=True)
    except ModuleNotFoundError:
        return _last(details.folder, f"the fleet cannot be asked; install it with: {install_command('fleet')}")
    except TransportError as error:
        return _last(details.folder, str(error))


def _look_now(about: FleetFile) -> Report:
    from redis.exceptions import RedisError

    from soulsai.transport.redis.address import Address
    from soulsai.transport.redis.connection import connect
    from soulsai.transport.redis.invitations import terms_of
    from soulsai.transport.redis.keys import Keys
    from soulsai.transport.redis.report import look_at

    address = Address.parse(about.admin, Path(about.ca) if about.ca else None, run=about.run)
    try:
        with connect(address, limit_s=REACH_S, client="souls-dashboard") as admin:
            keys = Keys(about.run)
            since = {name: terms.since_s for name, terms in terms_of(admin, keys).items()}
            return look_at(admin, keys) | {"since": since}
    except (RedisError, OSError) as error:
        raise TransportError(f"the Redis at {address.place} does not answer: {error}") from error


def _gateway(folder: Path) -> Report:
    from soulsai.transport.gateway.counts import FILE as COUNTS
    from soulsai.transport.gateway.counts import FOLDER, gateway_part

    return gateway_part(folder) if is_inside(folder / FOLDER / COUNTS, folder) else {}


def _complete(report: Report, *, now: bool, reason: str = "") -> Report:
    from soulsai.transport.redis.report import books_line, refused_lines

    lines = {"line": books_line(report["total"]), "refused_lines": refused_lines(report)}
    return {**report, **lines, "known": True, "now": now, "reason": reason}


def _last(folder: Path, why: str) -> Report:
    from soulsai.transport.redis.report import LAST, last

    kept = last(folder) if is_inside(folder / LAST, folder) else None
    if kept is None:
        return unknown(f"{why}, and nothing was kept of how its fleet was")
    try:
        return _complete(kept, now=False, reason=f"{why}; this is how its fleet was when it ended")
    except (AttributeError, KeyError, TypeError, ValueError):
        return unknown(f"{folder / LAST}: is damaged; it is written again when the run is served and stopped again")


def _report_without_redis(details: RunDetails) -> Report:
    metrics = {name: value for name, (_, value) in details.metrics.latest().items() if name.startswith(LOCAL)}
    if metrics:
        why = "its workers are processes of the machine that learns: there is no report of each, only these figures"
        return unknown(f"{details.id}: {why}", metrics)
    return unknown(
        f"{details.id} has no workers: it plays by itself. `souls serve` trains with workers on many machines"
    )


def unknown(reason: str, metrics: Mapping[str, float] | None = None) -> Report:
    """The report of a run whose fleet is not known."""
    return {"known": False, "now": False, "line": "", "reason": reason, "metrics": dict(metrics or {})}
