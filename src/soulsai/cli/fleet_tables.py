"""A fleet as one object that can be kept and printed: who plays, what became of every row, who gave how much."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from soulsai.transport.links import Account
    from soulsai.transport.redis.ledger import Book, FleetView, WorkerRow

LONG_GONE_S = 600.0
"""Workers that are silent for so long are shown in one line with those that have left."""
BUSY = ("playing", "waiting")
STILL_S = 3.0
"""After so long without a step the last known speed is no longer true."""
COLUMNS = ("worker", "host", "state", "lag", "steps/s", "episodes", "wins", "seen", "dropped", "stored")
FOLDED = ("worker", "host", "dropped")
"""Columns that take more than one line where there is no room; they are words, the others numbers."""
PARTS = ("learner", "workers", "names", "total", "unreadable")

Report = dict[str, Any]
"""With these parts, and `open` where the books were checked."""


def report_of(view: FleetView, books: Sequence[Book] | None = None) -> Report:
    """Everything `souls fleet` tells; with books also whether they close."""
    workers = [_worker(row, view.learner) for row in view.workers]
    report: Report = {
        "learner": dict(view.learner),
        "workers": workers,
        "names": _names(workers),
        "total": _account(view.total),
        "unreadable": dict(view.malformed),
    }
    if books is not None:
        report["total"] = _account(_sum(book.account for book in books))
        report["open"] = {
            book.account.worker: {"expected": book.account.in_flight, "found": book.measured}
            for book in books
            if not book.closes
        }
    return report


def books_line(total: Mapping[str, Any]) -> str:
    """The accounting in a line."""
    dropped = total["dropped"]
    reasons = f" ({_reasons(dropped)})" if dropped else ""
    lost = f"dropped {sum(dropped.values()):,}{reasons}"
    return f"sent {total['sent']:,} = stored {total['stored']:,} + {lost} + in flight {total['in_flight']:,}"


def print_report(report: Report, console: Console | None = None) -> None:
    """Print the tables and the accounting."""
    (console or Console(highlight=False)).print(picture(report))


def picture(report: Report) -> RenderableType:
    """The tables and the accounting, to be printed or shown live."""
    parts: list[RenderableType] = [Text(learner_line(report["learner"]), style="bold")]
    there = [worker for worker in report["workers"] if not _is_gone(worker)]
    gone = [worker for worker in report["workers"] if _is_gone(worker)]
    if report["workers"]:
        parts.append(_table(there, gone))
    else:
        parts.append(Text("no workers yet"))
    if len(report["names"]) > 1:
        parts.append(_names_table(report["names"]))
    parts.append(Text(books_line(report["total"])))
    parts += [Text(f"{name}: {count:,} messages could not be read") for name, count in report["unreadable"].items()]
    parts += [Text(line, style="red") for line in open_lines(report)]
    return Group(*parts)


def open_lines(report: Report) -> list[str]:
    """What does not close, if anything."""
    return [
        f"{worker}: the books do not close: {rows['expected']:,} rows should be on their way, {rows['found']:,} are"
        for worker, rows in report.get("open", {}).items()
    ]


def learner_line(learner: Mapping[str, str]) -> str:
    """How far the learner is."""
    if not learner:
        return "the learner has not begun"
    step, target = int(float(learner.get("steps", 0))), int(float(learner.get("target", 0)))
    share = f" of {target:,}" if target else ""
    return f"{step:,}{share} steps, {int(float(learner.get('updates', 0))):,} updates"


def _worker(row: WorkerRow, learner: Mapping[str, str]) -> Report:
    from soulsai.transport.versions import lag_of

    newest, beat = int(learner.get("version", 0) or 0), row.beat
    return {
        "worker": row.id,
        "name": row.name,
        "host": row.host,
        "state": row.state,
        "lag": lag_of(newest, beat.policy) if newest and beat.policy else None,
        "steps": beat.steps,
        "steps_per_s": beat.steps_per_s if row.state in BUSY and beat.still_s < STILL_S else 0.0,
        "episodes": beat.episodes,
        "wins": beat.wins,
        "fights": beat.fights,
        "win_rate": beat.wins / beat.fights if beat.fights else None,
        "seen_s": row.age_s if math.isfinite(row.age_s) else None,
        "restarts": beat.restarts,
        **_account(row.account),
    }


def _account(account: Account) -> Report:
    return {
        "sent": account.sent,
        "stored": account.stored,
        "dropped": dict(account.dropped),
        "in_flight": account.in_flight,
    }


def _sum(accounts: Iterable[Account]) -> Account:
    from soulsai.transport.links import Account

    sent, stored, dropped = 0, 0, dict[str, int]()
    for account in accounts:
        sent, stored = sent + account.sent, stored + account.stored
        for reason, rows in account.dropped.items():
            dropped[reason] = dropped.get(reason, 0) + rows
    return Account("*", sent, stored, dropped)


def _names(workers: Sequence[Report]) -> Report:
    """Who gave how much."""
    names: Report = {}
    for worker in workers:
        total = names.setdefault(worker["name"], {"lives": 0, "steps": 0, "episodes": 0, "sent": 0, "stored": 0})
        total["lives"] += 1
        for key in ("steps", "episodes", "sent", "stored"):
            total[key] += worker[key]
    stored = sum(name["stored"] for name in names.values())
    for name in names.values():
        name["share"] = name["stored"] / stored if stored else 0.0
    return names


def _is_gone(worker: Report) -> bool:
    if worker["state"] == "left":
        return True
    return worker["state"] == "silent" and (worker["seen_s"] is None or worker["seen_s"] > LONG_GONE_S)


def _table(there: Sequence[Report], gone: Sequence[Report]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for column in COLUMNS:
        words = column in FOLDED or column == "state"
        table.add_column(
            column, justify="left" if words else "right", overflow="fold", no_wrap=column not in FOLDED, min_width=4
        )
    for worker in there:
        table.add_row(*map(Text, _cells(worker)))
    if gone:
        table.add_row(*map(Text, _gone_cells(gone)))
    return table


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
        _reasons(worker["dropped"]),
        f"{worker['stored']:,}",
    )


def _gone_cells(gone: Sequence[Report]) -> tuple[str, ...]:
    dropped: dict[str, int] = {}
    for worker in gone:
        for reason, rows in worker["dropped"].items():
            dropped[reason] = dropped.get(reason, 0) + rows
    wins, fights = (sum(worker[key] for worker in gone) for key in ("wins", "fights"))
    return (
        f"{len(gone)} earlier",
        "",
        "left",
        "",
        "",
        f"{sum(worker['episodes'] for worker in gone):,}",
        f"{wins / fights:.1%}" if fights else "-",
        "",
        _reasons(dropped),
        f"{sum(worker['stored'] for worker in gone):,}",
    )


def _names_table(names: Mapping[str, Report]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(("name", "lives", "steps", "episodes", "stored", "share")):
        table.add_column(column, justify="right" if number else "left", overflow="fold")
    for name, total in sorted(names.items(), key=lambda item: -item[1]["stored"]):
        numbers = (f"{total[key]:,}" for key in ("lives", "steps", "episodes", "stored"))
        table.add_row(Text(name), *numbers, f"{total['share']:.1%}")
    return table


def _reasons(dropped: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {rows:,}" for reason, rows in sorted(dropped.items()))
