"""`souls data`: where the numbers of the simulator come from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from soulsgym.spec.provenance import Provenance


def data(
    boss: Annotated[str, typer.Argument(help="A boss, or a file of one or of a variant; all files if left out.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Count how many numbers of the data files are measured, derived, public and guessed.

    Example: souls data iudex
    """
    from soulsgym.spec.provenance import boss_provenance, data_provenance, file_provenance

    if not boss:
        found = data_provenance()
    elif boss.endswith(".toml"):
        found = (file_provenance(Path(boss)),)
    else:
        found = boss_provenance(boss)
    rows = [_row(one) for one in found]
    total = _total(rows)
    if as_json:
        typer.echo(json.dumps({"files": rows, "total": total}, indent=2))
    else:
        _print_table([*rows, {"file": "total", **total}])


def _row(found: Provenance) -> dict[str, Any]:
    from soulsgym.spec.fight import DATA

    ours = found.file.is_relative_to(DATA)
    file = Path(*found.file.relative_to(DATA).parts[1:]) if ours else found.file  # without the title
    return {"file": file.as_posix(), **found.counts, "total": found.total}


def _total(rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    return {key: sum(row[key] for row in rows) for key in rows[0] if key != "file"}


def _print_table(rows: Sequence[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="numbers by source")
    for name in rows[0]:
        table.add_column(name, justify="left" if name == "file" else "right")
    for row in rows:
        if row is rows[-1]:
            table.add_section()
        table.add_row(*(f"{value:,}" if isinstance(value, int) else value for value in row.values()))
    Console().print(table)
