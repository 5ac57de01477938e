"""`souls calibrate`: a boss's numbers from recordings of him."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from soulsai.cli.options import AsJson, print_json
from soulsai.config.schema import DEFAULT_BOSS
from soulsai.runs.files import check_new_file

if TYPE_CHECKING:
    from soulsgym.calibration.calibrate import Calibration
    from soulsgym.recordings.recording import Recording

SHOWN = 6
"""Pieces of advice that are printed."""


def calibrate(
    recordings: Annotated[list[Path], typer.Argument(help="Recordings, .npz or SoulsGym's .json.")],
    out: Annotated[Path, typer.Option(help="New file, .toml: a variant of the boss.")],
    boss: Annotated[str, typer.Option(help="The recorded boss: a name, or a boss file (.toml).")] = DEFAULT_BOSS,
    page: Annotated[Path | None, typer.Option("--report", help="New file, .html, with what was seen.")] = None,
    as_json: AsJson = False,
) -> None:
    """Correct a boss's numbers from recordings.

    What the recordings show is measured and written as a variant, with counts and intervals; all other numbers stay as
    they are. It suggests what to record next.

    Example: souls calibrate gundyr.npz --out mine.toml --report mine.html
    """
    from soulsgym.calibration.advice import advice
    from soulsgym.calibration.calibrate import calibrate as estimate
    from soulsgym.calibration.report import report
    from soulsgym.spec.draw import check_variant_name, write_new
    from soulsgym.spec.fight import expanded, read_files

    target = expanded(out)
    check_variant_name(target)
    check_new_file(target, "variant", ".toml")
    if page is not None:
        check_new_file(page, "report", ".html")
    files = read_files(boss)
    read = [_read(file, boss) for file in recordings]
    found = estimate(read, files)
    needed, shown = advice(found), report(found, read) if page is not None else ""
    write_new(target, found.text())
    if page is not None:
        write_new(page, shown)
    if as_json:
        about = {"file": str(out), "boss": boss, "fights": len(found.bouts), "numbers": len(found.estimates)}
        moved = [one.key for one in found.estimates if one.moves]
        new = sorted(found.additions.get("move", {}))
        character = {one.key: {"measured": one.value, "file": one.before} for one in found.character}
        about |= {"moved": moved, "new_moves": new, "character": character}
        print_json(about | {"next": [str(one) for one in needed]})
        return
    typer.echo(_summary(found, out))
    for one in needed[:SHOWN]:
        typer.echo(f"  {one}")
    typer.echo(f"train on it: souls train --set fight.variants='[{json.dumps(str(out))}]'")
    typer.echo(f"compare: souls fidelity RECORDING --variant {shlex.quote(str(out))}")


def _read(file: Path, boss: str) -> Recording:
    """A recording; RecordingError if it tells that it is of another boss."""
    from soulsai.evaluation.thoughts import read_fight_file
    from soulsgym.errors import RecordingError
    from soulsgym.spec import is_path

    told = read_fight_file(file)
    shown = told.boss or boss
    if shown != boss and not is_path(shown) and not is_path(boss):
        raise RecordingError(f"{file}: is of {shown} and not of {boss}; give --boss {shown}, or other recordings")
    return told.recording


def _summary(found: Calibration, out: Path) -> str:
    from soulsgym.calibration.estimate import count_kinds

    moved = [one for one in found.estimates if one.moves]
    by_kind = count_kinds(moved)
    new = sorted(found.additions.get("move", {}))
    lines = [
        f"{out}: {len(found.estimates)} numbers measured in {len(found.bouts)} fights, {len(moved)} corrected"
        + (f" ({by_kind})" if by_kind else "")
    ]
    lines += [f"attacks that {found.files.boss_name} did not have: {', '.join(new)}"] if new else []
    other = [one for one in found.character if one.moves]
    lines += [f"the character's {one.key}: measured {one.value:g}, his file says {one.before:g}" for one in other]
    lines.append("what to record next:")
    return "\n".join(lines)
