"""`souls fleet`, `invite` and `revoke`: for whoever serves a run."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from soulsai.cli.control import wait_until
from soulsai.cli.runs import ROOT

if TYPE_CHECKING:
    import redis

    from soulsai.runs.fleet_file import FleetFile
    from soulsai.transport.redis.keys import Keys

REACH_S = 5.0
"""How long Redis may take to answer: it may just be starting again."""
WATCH_EVERY_S = 2.0
LEAVE_S = 20.0
"""How long workers may take to leave."""

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
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every two seconds, until Ctrl-C.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Count the rows on their way too; exit code 1 if the books do not close.")
    ] = False,
) -> None:
    """List the workers of a run that is served, and what became of every row they sent.

    Example: souls fleet --watch
    """
    from soulsai.cli.fleet_tables import print_report
    from soulsai.transport.redis.report import last as last_report
    from soulsai.transport.redis.report import look_at

    folder, about = _served(run)
    if about.own and not _is_served(folder) and (last := last_report(folder)) and not check:
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


def stop_workers(who: str, run: Path | None) -> None:
    """Stop the workers of a name, or one of them."""
    with _operator(*_served(run)) as operator:
        _stop_workers(operator, who)


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
    from soulsai.transport.redis.report import look_at

    console = Console(highlight=False)
    try:
        with Live(console=console, auto_refresh=False, screen=sys.stdout.isatty()) as live:
            while True:
                live.update(picture(look_at(operator.admin, operator.keys)), refresh=True)
                time.sleep(WATCH_EVERY_S)
    except KeyboardInterrupt:
        return


def _stop_workers(operator: Operator, who: str) -> None:
    from soulsai.errors import TransportError
    from soulsai.transport.redis.ledger import stop_workers

    there = _playing(operator, who)
    if not there:
        raise TransportError(f"no worker {who} is there; `souls fleet` lists those there are")
    stop_workers(operator.admin, operator.keys, who)
    names = ", ".join(sorted(there))
    if not wait_until(lambda: not there & _playing(operator, who), LEAVE_S):
        raise TransportError(f"{names}: told to stop, but still there after {LEAVE_S:.0f} s; `souls revoke` ends it")
    typer.echo(f"{names}: stopped")


def _playing(operator: Operator, who: str) -> set[str]:
    from soulsai.transport.redis.ledger import look

    rows = look(operator.admin, operator.keys).workers
    return {row.id for row in rows if who in (row.id, row.name) and row.state not in ("left", "silent")}
