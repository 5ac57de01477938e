"""Tables for a terminal of 80 columns, and an evaluation in them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from soulsai.evaluation.evaluation import Evaluation

LONGEST = 8
"""Rows of a list of causes; the rest is summed up."""


def make_table(
    columns: Iterable[str],
    rows: Iterable[Iterable[str | Text]] = (),
    title: str = "",
    *,
    left: Collection[str] = (),
    **of_columns: Any,
) -> Table:
    """A table whose first column, and those that `left` names, are words; the others are numbers."""
    table = Table(title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number and column not in left else "left", **of_columns)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return table


def print_evaluation(evaluation: Evaluation, *, title: str = "", console: Console | None = None) -> None:
    """Print what a user asks of an evaluation: how good, how fast, and why fights are lost."""
    from soulsai.evaluation.tables import cell_text, kind_of, tables_of

    out, settings = console or Console(highlight=False), evaluation.settings
    out.print(Text(f"{title} {evaluation.headline}".strip(), style="bold"), soft_wrap=True)
    seed = "" if settings.engine != "sim" else f"seed {settings.seed}, "
    limit = f"at most {settings.step_limit / 10:,.0f} s each, greedy"
    out.print(Text(f"{kind_of(evaluation)}, {seed}{limit}"), soft_wrap=True)
    for table in tables_of(evaluation):
        out.print(make_table(table.heads, (map(cell_text, row) for row in table.rows), table.title))
    if evaluation.died + evaluation.fell:
        out.print(_deaths(evaluation))


def _deaths(evaluation: Evaluation) -> Table:
    """Three lists side by side: by attack, by distance and by what the player was doing a step before."""
    from soulsai.evaluation.tables import rename_groups

    deaths = rename_groups(evaluation, evaluation.deaths)
    lists = [_most(counts) for counts in (deaths.attack, deaths.distance, deaths.animation)]
    rows = ([cell for pair in row for cell in pair] for row in zip_longest(*lists, fillvalue=("", "")))
    columns = ("attack", "", "distance", "", "doing", "")
    return make_table(columns, rows, "Causes of death", left=("distance", "doing"))


def _most(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    found = [(name, count) for name, count in counts.items() if count]
    rest = sum(count for _, count in found[LONGEST:])
    shown = found[:LONGEST] + ([("others", rest)] if rest else [])
    return [(name, f"{count:,}") for name, count in shown]
