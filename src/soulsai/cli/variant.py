"""`souls variant`: files that change the numbers of a boss."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from soulsai.cli.measuring import AsJson

variant = typer.Typer(no_args_is_help=True, help="Files that change the numbers of a boss.")


@variant.callback()
def variants() -> None:
    """Files that change the numbers of a boss."""


@variant.command()
def draw(
    boss: Annotated[str, typer.Argument(metavar="BOSS", help="Boss to change: a name, or a boss file (.toml).")],
    out: Annotated[Path, typer.Option(help="New file, .toml.")],
    seed: Annotated[int, typer.Option(help="The same seed draws the same file.")] = 0,
    strength: Annotated[
        float, typer.Option(help="How far from the boss's own numbers; 1 is as far as these are unsure.")
    ] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Draw a boss that nobody wrote: each number is moved within what its source leaves open.

    Example: souls variant draw iudex --seed 7 --out my.toml
    """
    from soulsgym.spec import load_fight
    from soulsgym.spec.draw import write_overlay

    write_overlay(out, boss, seed, strength)
    drawn = load_fight(boss, str(out.absolute()))
    kinds, total = _moved(drawn.files[0], drawn.files[-1])
    moved = sum(kinds.values())
    if as_json:
        about = {"file": str(out), "boss": boss, "seed": seed, "strength": strength}
        typer.echo(json.dumps(about | {"numbers": total, "moved": moved, "kinds": kinds}))
        return
    by_kind = ": " + ", ".join(f"{kind} {count}" for kind, count in kinds.items()) if kinds else ""
    typer.echo(f"{out}: moved {moved} of {total} numbers{by_kind}")
    typer.echo(f"measure an agent on it: souls eval RUN --variant {shlex.quote(str(out))}")


def _moved(boss: Path, drawn: Path) -> tuple[dict[str, int], int]:
    """How many numbers of the boss's file are others in the drawn one, by kind, and how many there are."""
    from soulsgym.spec.draw import KIND_OF
    from soulsgym.spec.overlay import overlay
    from soulsgym.spec.reader import read_toml

    content = read_toml(boss)
    before, after = (dict(_numbers(each)) for each in (content, overlay(content, read_toml(drawn))))
    moved = [path for path, number in after.items() if number != before.get(path)]
    # Weights are named by what they weigh, so the kind may be that of the table.
    kinds = Counter(next((KIND_OF[key] for key in reversed(path) if key in KIND_OF), "time") for path in moved)
    return dict(kinds.most_common()), len(before)


def _numbers(value: Any, path: tuple[str, ...] = (), place: tuple[int, ...] = ()) -> Iterator[tuple[Any, float]]:
    """Every number of a file, with its place in lists and the keys that lead to it, the nearest last."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, (*path, key), place)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _numbers(inner, path, (*place, index))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield (place, *path), value
