"""`souls fleet`, `invite` and `revoke`: for whoever serves a run."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import redis
import typer
from redis.exceptions import RedisError
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from soulsai.cli.options import AsJson, print_json, run_argument
from soulsai.cli.runs import wait_until
from soulsai.cli.tables import make_table
from soulsai.errors import RunError, TransportError
from soulsai.runs.fleet_file import FleetFile, find_served_run, is_served, write_fleet
from soulsai.runs.requests import ask_to_forget, to_forget
from soulsai.runs.run import Run
from soulsai.runs.summary import ROOT, run_folder
from soulsai.runtime.invitation import how_to_join
from soulsai.transport.gateway.counts import gateway_line, gateway_part
from soulsai.transport.redis import access, invitations, report
from soulsai.transport.redis.address import Address
from soulsai.transport.redis.connection import Retry, connect
from soulsai.transport.redis.keys import Keys, check_name
from soulsai.transport.redis.report import Report

REACH_S = 5.0
"""How long Redis may take to answer: it may just be starting again."""
HUNG_S = 2.0
"""How long Redis may take to answer before a name is cut off by force."""
RESTART_S = 30.0
"""How long a Redis that was ended may take to be there again."""
FORGET_S = 60.0
"""How long a learner may take to forget a name: it writes a checkpoint."""
WATCH_EVERY_S = 2.0
LEAVE_S = 20.0
"""How long workers may take to leave."""
LONG_GONE_S = 600.0
"""Workers that are silent for so long are shown in one line with those that have left."""
COLUMNS = ("worker", "host", "state", "lag", "steps/s", "episodes", "wins", "seen", "dropped", "stored")
FOLDED = ("worker", "host", "dropped")
"""Columns that take more than one line where there is no room; they are words, the others numbers."""

ServedRun = Annotated[str | None, run_argument("Folder or name of a run; the one served last if not given.")]


@dataclass(frozen=True)
class Operator:
    """A connection to the Redis of a run, with all rights."""

    folder: Path
    fleet: FleetFile
    admin: redis.Redis
    keys: Keys

    def keep_passwords(self, passwords: dict[str, str]) -> None:
        """Keep those whose join line is printed at every start, if they are others now."""
        if passwords != self.fleet.passwords:
            write_fleet(self.folder, replace(self.fleet, passwords=passwords))


def fleet(
    run: ServedRun = None,
    as_json: AsJson = False,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh every two seconds until Ctrl-C.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Also count the rows in flight; exit code 1 if the counts do not add up.")
    ] = False,
) -> None:
    """List the workers of a served run.

    It also shows what happened to every row they sent.

    Example: souls fleet --watch
    """
    folder, about = _find_served(run)
    if about.own and not is_served(folder) and (last := report.last(folder)) and not check:
        if not as_json:
            typer.echo(f"{folder} is not being served; its last state:")
        _print_report(last, as_json=as_json)
        return
    with _operator(folder, about) as operator:
        if watch:
            _watch(operator)
            return
        found = report.look_at(operator.admin, operator.keys, check=check) | gateway_part(folder)
    _print_report(found, as_json=as_json)
    if found.get("open"):
        raise typer.Exit(1)


def invite(
    name: Annotated[str, typer.Argument(help="Name of the person to invite: letters, digits, _ and -.")],
    run: ServedRun = None,
    expires: Annotated[str, typer.Option(metavar="TIME", help="It expires after this time: 30m, 12h or 7d.")] = "",
    machines: Annotated[int, typer.Option(min=0, help="Machines at once, through a gateway; 0: any number.")] = 0,
) -> None:
    """Print a join command for one more person.

    A new one for the same name replaces the old one.

    Example: souls invite alice --expires 7d --machines 2
    """
    check_name(name)
    lasts_s = invitations.seconds_of(expires)
    with _operator(*_find_served(run)) as operator:
        password = access.invite(operator.admin, operator.keys, name, typer.echo)
        invitations.set_terms(operator.admin, operator.keys, name, lasts_s=lasts_s, machines=machines)
        known = operator.fleet.passwords
        operator.keep_passwords(known | {name: password} if name in known else known)
    for line in how_to_join(operator.folder, operator.fleet, name, password):
        typer.echo(line)


def revoke(
    name: Annotated[str, typer.Argument(help="Name to revoke; `souls fleet` lists them.")], run: ServedRun = None
) -> None:
    """End an invitation.

    Its workers are disconnected at once, and whatever the learner has not read yet is removed. This works even if
    the learner or Redis hangs.

    Example: souls revoke alice
    """
    check_name(name)
    folder, about = _find_served(run)
    if about.own and is_served(folder) and not _answers(about):
        from soulsai.runtime.redis_server import cut_off

        typer.echo(f"the Redis of {folder} does not answer: restarting it without {name}", err=True)
        cut_off(folder / "redis", name)
    with _operator(folder, about, RESTART_S) as operator:
        access.revoke(operator.admin, operator.keys, name, typer.echo)
        operator.keep_passwords({who: password for who, password in operator.fleet.passwords.items() if who != name})
    typer.echo(f"{name}: access to {operator.folder} revoked, stored experience kept")


def forget(
    name: Annotated[str, typer.Argument(help="Name whose experience to remove.")],
    run: ServedRun = None,
    go_back: Annotated[
        bool,
        typer.Option("--go-back", help="Also go back to the newest checkpoint from before it joined, if there is one."),
    ] = False,
) -> None:
    """Remove one contributor's experience from the replay.

    The learner does it within a second, or when the run is next served. The invitation stays valid.

    Example: souls forget mallory --go-back
    """
    check_name(name)
    folder, _ = _find_served(run)
    found = Run.open(folder)
    ask_to_forget(found, name, go_back=go_back)
    if not found.is_locked():
        typer.echo(f"{name}: will be forgotten when the run continues: souls serve --resume {folder}")
    elif wait_until(lambda: name not in to_forget(found), FORGET_S):
        typer.echo(f"{name}: removed from the replay of {folder}; its invitation stays valid")
    else:
        raise TransportError(f"{name}: not forgotten after {FORGET_S:.0f} s; the learner does it as soon as it can")


def stop_workers(who: str, run: str | None) -> None:
    """Stop the workers of a name, or one of them."""
    with _operator(*_find_served(run)) as operator:
        there = _workers_of(operator, who)
        if not there:
            raise TransportError(f"there is no worker {who}; list workers with `souls fleet`")
        report.stop_workers(operator.admin, operator.keys, who)
        names = ", ".join(sorted(there))
        if not wait_until(lambda: not there & _workers_of(operator, who), LEAVE_S):
            message = f"{names}: told to stop, but still there after {LEAVE_S:.0f} s; `souls revoke` ends it"
            raise TransportError(message)
    typer.echo(f"{names}: stopped")


def _workers_of(operator: Operator, who: str) -> set[str]:
    there = report.playing(report.look_at(operator.admin, operator.keys))
    return {worker["worker"] for worker in there if who in (worker["worker"], worker["name"])}


def _find_served(run: str | None) -> tuple[Path, FleetFile]:
    folder, about = find_served_run(run_folder(run) if run else None, ROOT)
    if run is None:
        typer.echo(f"the run served last: {folder}", err=True)
    return folder, about


def _answers(fleet: FleetFile) -> bool:
    address = Address.parse(fleet.admin, Path(fleet.ca) if fleet.ca else None, run=fleet.run)
    with connect(address, limit_s=HUNG_S) as admin:
        try:
            return bool(admin.ping())
        except (RedisError, OSError):
            return False


@contextmanager
def _operator(folder: Path, fleet: FleetFile, reach_s: float = REACH_S) -> Iterator[Operator]:
    if fleet.own and not is_served(folder):
        raise RunError(f"{folder}: is not being served now; continue it with: souls serve --resume {folder}")
    address = Address.parse(fleet.admin, Path(fleet.ca) if fleet.ca else None, run=fleet.run)
    with connect(address) as admin:
        Retry(address, reach_s).run(f"reach the Redis of {folder}", admin.ping)
        try:
            yield Operator(folder, fleet, admin, Keys(fleet.run))
        except RedisError as error:
            raise TransportError(f"the Redis of {folder} at {address.place} failed: {error}; try again") from error


def _watch(operator: Operator) -> None:
    try:
        with Live(console=Console(highlight=False), auto_refresh=False, screen=sys.stdout.isatty()) as live:
            while True:
                found = report.look_at(operator.admin, operator.keys) | gateway_part(operator.folder)
                live.update(picture(found), refresh=True)
                time.sleep(WATCH_EVERY_S)
    except KeyboardInterrupt:
        return


def _print_report(found: Report, *, as_json: bool) -> None:
    print_json(found) if as_json else Console(highlight=False).print(picture(found))


def picture(found: Report) -> RenderableType:
    """The tables and the accounting, to be printed or shown live."""
    gone = [worker for worker in found["workers"] if _is_gone(worker)]
    rows = [_cells(worker) for worker in found["workers"] if not _is_gone(worker)]
    rows += [_gone_cells(gone)] if gone else []
    table = make_table(COLUMNS, rows, left=(*FOLDED, "state"), overflow="fold", min_width=4)
    for column in table.columns:
        column.no_wrap = column.header not in FOLDED
    table.padding = (0, 1, 0, 0)
    parts: list[RenderableType] = [Text(learner_line(found["learner"]), style="bold")]
    parts.append(table if found["workers"] else Text("no workers yet"))
    if len(found["names"]) > 1:
        parts.append(_names_table(found["names"]))
    parts.append(Text(report.books_line(found["total"])))
    if gateway := found.get("gateway"):
        parts.append(Text(gateway_line(gateway)))
    parts += [Text(line, style="red") for line in report.refused_lines(found)]
    if newcomers := found.get("newcomers"):
        told = ", ".join(f"{name} ({fights:,} fights replayed)" for name, fights in newcomers.items())
        parts.append(Text(f"on probation: {told}"))
    parts += [
        Text(f"{name} was revoked: its experience did not match a replay ({why})", style="red")
        for name, why in found.get("ended", {}).items()
    ]
    parts += [Text(line, style="red") for line in (*_problem_lines(found), *report.open_lines(found))]
    return Group(*parts)


def _problem_lines(found: Report) -> list[str]:
    """Why workers cannot play, once for each name and reason; not for those of which some process has played."""
    played = {worker["worker"].rpartition(".")[0] for worker in found["workers"] if worker["sent"]}
    idle = [worker for worker in found["workers"] if worker["worker"].rpartition(".")[0] not in played]
    return sorted({f"{worker['name']} cannot play: {worker['problem']}" for worker in idle if worker.get("problem")})


def learner_line(learner: Mapping[str, str]) -> str:
    """How far the learner is."""
    if not learner:
        return "the learner has not started"
    step, target = int(float(learner.get("steps", 0))), int(float(learner.get("target", 0)))
    share = f" of {target:,}" if target else ""
    return f"{step:,}{share} steps, {int(float(learner.get('updates', 0))):,} updates"


def _is_gone(worker: Report) -> bool:
    if worker["state"] == "left":
        return True
    return worker["state"] == "silent" and (worker["seen_s"] is None or worker["seen_s"] > LONG_GONE_S)


def _cells(worker: Report) -> tuple[str, ...]:
    return (
        worker["worker"],
        worker["host"],
        worker["state"],
        "-" if worker["lag"] is None else f"{worker['lag']:,}",
        f"{worker['steps_per_s']:,.0f}",
        f"{worker['episodes']:,}",
        "-" if worker["win_rate"] is None else f"{worker['win_rate']:.1%}",
        "never" if worker["seen_s"] is None else f"{worker['seen_s']:.0f} s",
        report.reasons(worker["dropped"]),
        f"{worker['stored']:,}",
    )


def _gone_cells(gone: list[Report]) -> tuple[str, ...]:
    dropped: Counter[str] = Counter()
    for worker in gone:
        dropped.update(worker["dropped"])
    wins, fights, episodes, stored = (
        sum(worker[key] for worker in gone) for key in ("wins", "fights", "episodes", "stored")
    )
    rate = f"{wins / fights:.1%}" if fights else "-"
    return (
        f"{len(gone)} earlier", "", "left", "", "", f"{episodes:,}", rate, "", report.reasons(dropped), f"{stored:,}"
    )  # fmt: skip


def _names_table(names: Mapping[str, Report]) -> RenderableType:
    columns = ("name", "lives", "steps", "episodes", "stored", "share")
    rows = (
        (name, *(f"{total[key]:,}" for key in columns[1:-1]), f"{total['share']:.1%}")
        for name, total in sorted(names.items(), key=lambda item: -item[1]["stored"])
    )
    return make_table(columns, rows, overflow="fold")
