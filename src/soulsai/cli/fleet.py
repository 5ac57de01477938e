"""`souls fleet`, `invite`, `revoke`, `stop` and `save`: for whoever serves a run."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from soulsai.cli.runs import ROOT

if TYPE_CHECKING:
    import redis

    from soulsai.cli.fleet_tables import Report
    from soulsai.runs.fleet_file import FleetFile
    from soulsai.transport.redis.keys import Keys

REACH_S = 5.0
"""How long Redis may take to answer: it may just be starting again."""
WATCH_EVERY_S = 2.0
LEAVE_S = 20.0
"""How long workers may take to leave."""
SAVE_S = 120.0
"""How long a checkpoint may take: the learner may be in the middle of an evaluation."""
PAUSE_S = 0.2
LAST = "fleet_last.json"
"""What the fleet of a run looked like when it was last stopped."""

RunFolder = Annotated[
    Path | None, typer.Option("--run", help="Folder of the run; the one served last under runs/ if not given.")
]


@dataclass(frozen=True)
class Operator:
    """A connection to the Redis of a run, with all rights."""

    folder: Path
    fleet: FleetFile
    admin: redis.Redis
    keys: Keys


def fleet(
    run: RunFolder = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show it anew every two seconds, until Ctrl-C.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Count the rows on their way too; exit code 1 if the books do not close.")
    ] = False,
) -> None:
    """List the workers of a run that is served, and what became of every row they sent.

    Example: souls fleet --watch
    """
    from soulsai.cli.fleet_tables import print_report

    folder, about = _served(run)
    if about.own and not _is_served(folder) and (last := _last(folder)) and not check:
        if not as_json:
            typer.echo(f"{folder} is not being served; as it was when it ended:")
        typer.echo(json.dumps(last, indent=1)) if as_json else print_report(last)
        return
    with _operator(folder, about) as operator:
        if watch:
            _watch(operator)
            return
        report = look_at(operator.admin, operator.keys, check=check)
    typer.echo(json.dumps(report, indent=1)) if as_json else print_report(report)
    if report.get("open"):
        raise typer.Exit(1)


def invite(
    name: Annotated[str, typer.Argument(help="Who is invited: letters, digits, _ and -.")], run: RunFolder = None
) -> None:
    """Print the line with which one more friend can join; a new line for the same name ends the old one.

    Example: souls invite alice
    """
    from soulsai.cli.invitation import how_to_join
    from soulsai.runs.fleet_file import write_fleet
    from soulsai.transport.redis.access import invite as let_in
    from soulsai.transport.redis.keys import check_name

    check_name(name)
    with _operator(*_served(run)) as operator:
        password = let_in(operator.admin, operator.keys, name, typer.echo)
        if name in operator.fleet.passwords:
            kept = operator.fleet.passwords | {name: password}
            write_fleet(operator.folder, replace(operator.fleet, passwords=kept))
    for line in how_to_join(operator.folder, operator.fleet, name, password):
        typer.echo(line)


def revoke(
    name: Annotated[str, typer.Argument(help="Who is to leave; `souls fleet` lists them.")], run: RunFolder = None
) -> None:
    """End an invitation: its workers are out at once, and what they sent and is not stored yet is dropped.

    Example: souls revoke alice
    """
    from soulsai.runs.fleet_file import write_fleet
    from soulsai.transport.redis.access import revoke as put_out
    from soulsai.transport.redis.keys import check_name

    check_name(name)
    with _operator(*_served(run)) as operator:
        put_out(operator.admin, operator.keys, name, typer.echo)
        kept = {who: password for who, password in operator.fleet.passwords.items() if who != name}
        if kept != operator.fleet.passwords:
            write_fleet(operator.folder, replace(operator.fleet, passwords=kept))
    typer.echo(f"{name} is out; what was stored of {name} stays")


def stop(
    worker: Annotated[
        str, typer.Argument(metavar="[WORKER]", help="A name, or one worker as `souls fleet` lists it.")
    ] = "",
    run: RunFolder = None,
) -> None:
    """Stop the learner after it has saved; with WORKER, stop only those workers.

    Example: souls stop alice
    """
    with _operator(*_served(run)) as operator:
        if worker:
            _stop_workers(operator, worker)
        else:
            _stop_learner(operator)


def save(run: RunFolder = None) -> None:
    """Have the learner write a checkpoint now, and wait until it is there.

    Example: souls save
    """
    from soulsai.errors import TransportError

    with _operator(*_served(run)) as operator:
        _refuse_unserved(operator.folder)
        before = _checkpoints(operator.folder)
        operator.admin.rpush(operator.keys.control, "save")
        if not _wait_until(lambda: _checkpoints(operator.folder) != before, SAVE_S):
            raise TransportError(f"{operator.folder}: no checkpoint within {SAVE_S:.0f} s; its log.txt may say why")
    newest = max(_checkpoints(operator.folder), default=("", 0))[0]
    typer.echo(f"saved {operator.folder / 'checkpoints' / newest}")


def look_at(admin: redis.Redis, keys: Keys, *, check: bool = False) -> Report:
    """The fleet of a run as it is now."""
    from soulsai.cli.fleet_tables import report_of
    from soulsai.transport.redis.ledger import check_books, look

    view = look(admin, keys)
    return report_of(view, check_books(admin, keys) if check else None)


def keep_last(folder: Path, report: Report) -> None:
    """Remember how the fleet was, for when its Redis no longer runs."""
    from soulsai.runs.files import write_atomically

    write_atomically(folder / LAST, json.dumps(report, indent=1))


def _last(folder: Path) -> Report | None:

    try:
        last = json.loads((folder / LAST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return (
        last if isinstance(last, dict) and {"learner", "workers", "names", "total", "unreadable"} <= set(last) else None
    )


def _served(run: Path | None) -> tuple[Path, FleetFile]:
    from soulsai.runs.fleet_file import served_run

    return served_run(run, ROOT)


def _is_served(folder: Path) -> bool:
    from soulsai.runs.fleet_file import is_served

    return is_served(folder)


def _refuse_unserved(folder: Path) -> None:
    from soulsai.errors import RunError

    if not _is_served(folder):
        raise RunError(f"{folder}: is not being served now; go on with it: souls serve --resume --run {folder}")


@contextmanager
def _operator(folder: Path, fleet: FleetFile) -> Iterator[Operator]:
    from redis.exceptions import RedisError

    from soulsai.errors import TransportError
    from soulsai.transport.redis.address import Address
    from soulsai.transport.redis.connection import Retry, connect
    from soulsai.transport.redis.keys import Keys

    if fleet.own:
        _refuse_unserved(folder)
    address = Address.parse(fleet.admin, Path(fleet.ca) if fleet.ca else None, run=fleet.run)
    with connect(address) as admin:
        Retry(address, REACH_S).run(f"reach the Redis of {folder}", admin.ping)
        try:
            yield Operator(folder, fleet, admin, Keys(fleet.run))
        except RedisError as error:
            raise TransportError(f"the Redis of {folder} at {address.place} failed: {error}; try again") from error


def _watch(operator: Operator) -> None:
    from rich.console import Console
    from rich.live import Live

    from soulsai.cli.fleet_tables import picture

    console = Console(highlight=False)
    try:
        with Live(console=console, auto_refresh=False, screen=sys.stdout.isatty()) as live:
            while True:
                live.update(picture(look_at(operator.admin, operator.keys)), refresh=True)
                time.sleep(WATCH_EVERY_S)
    except KeyboardInterrupt:
        return


def _stop_learner(operator: Operator) -> None:
    from soulsai.errors import TransportError

    _refuse_unserved(operator.folder)
    operator.admin.rpush(operator.keys.control, "stop")
    typer.echo(f"asked the learner of {operator.folder} to save and stop")
    if not _wait_until(lambda: not _is_served(operator.folder), SAVE_S):
        raise TransportError(f"{operator.folder}: has not stopped within {SAVE_S:.0f} s; its log.txt may say why")
    typer.echo("it has stopped; its workers wait for its return")


def _stop_workers(operator: Operator, who: str) -> None:
    from soulsai.errors import TransportError
    from soulsai.transport.redis.ledger import stop_workers

    there = _playing(operator, who)
    if not there:
        raise TransportError(f"no worker {who} is there; `souls fleet` lists those there are")
    stop_workers(operator.admin, operator.keys, who)
    names = ", ".join(sorted(there))
    if not _wait_until(lambda: not there & _playing(operator, who), LEAVE_S):
        raise TransportError(f"{names}: told to stop, but still there after {LEAVE_S:.0f} s; `souls revoke` ends it")
    typer.echo(f"{names}: stopped")


def _playing(operator: Operator, who: str) -> set[str]:
    from soulsai.transport.redis.ledger import look

    rows = look(operator.admin, operator.keys).workers
    return {row.id for row in rows if who in (row.id, row.name) and row.state not in ("left", "silent")}


def _checkpoints(folder: Path) -> set[tuple[str, int]]:
    """The checkpoints of a run, with the moment they were made: one of the same step may replace another."""
    found = set()
    for path in (folder / "checkpoints").glob("[0-9]*"):
        try:
            found.add((path.name, path.stat().st_ino))
        except OSError:
            continue  # removed this moment
    return found


def _wait_until(done: Callable[[], bool], limit_s: float) -> bool:
    deadline_s = time.monotonic() + limit_s
    while not done():
        if time.monotonic() > deadline_s:
            return False
        time.sleep(PAUSE_S)
    return True
