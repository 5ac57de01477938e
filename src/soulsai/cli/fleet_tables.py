"""The report of a fleet as tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from soulsai.transport.redis.report import Report, books_line, open_lines, reasons

LONG_GONE_S = 600.0
"""Workers that are silent for so long are shown in one line with those that have left."""
COLUMNS = ("worker", "host", "state", "lag", "steps/s", "episodes", "wins", "seen", "dropped", "stored")
FOLDED = ("worker", "host", "dropped")
"""Columns that take more than one line where there is no room; they are words, the others numbers."""


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


def learner_line(learner: Mapping[str, str]) -> str:
    """How far the learner is."""
    if not learner:
        return "the learner has not begun"
    step, target = int(float(learner.get("steps", 0))), int(float(learner.get("target", 0)))
    share = f" of {target:,}" if target else ""
    return f"{step:,}{share} steps, {int(float(learner.get('updates', 0))):,} updates"


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
        reasons(worker["dropped"]),
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
        reasons(dropped),
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
