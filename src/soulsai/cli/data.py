"""`souls bosses`, `data`, `variant`, `fidelity`: where the simulator's numbers come from, and how far they fit."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from soulsai.cli.options import AsJson, print_json
from soulsai.cli.tables import make_table
from soulsai.config.schema import DEFAULT_BOSS
from soulsgym.errors import MisuseError
from soulsgym.spec import is_path, load_fight
from soulsgym.spec.draw import KIND_OF, write_overlay
from soulsgym.spec.fight import DATA, STANDARD, boss_file, known_bosses
from soulsgym.spec.overlay import overlay
from soulsgym.spec.provenance import Provenance, boss_provenance, data_provenance, file_provenance
from soulsgym.spec.reader import read_toml

if TYPE_CHECKING:
    from soulsgym.recordings.metrics import Fidelity, Metric

variant = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Draw variants of a boss: files that change its numbers."
)


def data(
    boss: Annotated[str, typer.Argument(help="A boss, or a boss or variant file; all files if not given.")] = "",
    as_json: AsJson = False,
) -> None:
    """Count measured, derived, public and guessed numbers of the data.

    Example: souls data iudex
    """
    if not boss:
        found = data_provenance()
    elif boss.endswith(".toml"):
        found = (file_provenance(Path(boss)),)
    else:
        found = boss_provenance(boss)
    rows = [_row(one) for one in found]
    total = {key: sum(row[key] for row in rows) for key in rows[0] if key != "file"}
    if as_json:
        print_json({"files": rows, "total": total})
        return
    cells = [[f"{value:,}" if isinstance(value, int) else value for value in row.values()] for row in rows]
    for cell, one in zip(cells, found, strict=True):
        if one.file.is_relative_to(DATA):  # short enough for a terminal
            cell[0] = cell[0].removesuffix(".toml")
    table = make_table(rows[0], cells, "numbers by source")
    table.add_section()
    table.add_row("total", *(f"{count:,}" for count in total.values()))
    Console().print(table)


def bosses(
    pages: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write a page about each boss into this folder instead.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the bosses: title, phases, and how many numbers of their files are measured, derived, public and guessed.

    Example: souls bosses
    """
    if pages is not None:
        _write_pages(pages, as_json=as_json)
        return
    rows = [_boss_row(name) for name in known_bosses()]
    if as_json:
        print_json({"bosses": rows})
        return
    shown = [[f"{value:,}" if isinstance(value, int) else value for value in row.values()] for row in rows]
    table = make_table(rows[0], shown, "bosses, numbers by source", left=("name", "title"))
    table.columns[2].no_wrap = True  # the title's id, to be copied
    Console().print(table)


def _boss_row(boss: str) -> dict[str, Any]:
    spec = load_fight(boss, moves=False)
    phases = len(spec.boss.phases) or spec.game.phases
    counts = file_provenance(boss_file(boss)).counts
    return {"boss": boss, "name": spec.boss.name, "title": spec.title.id, "phases": phases, **counts}


def _write_pages(folder: Path, *, as_json: bool) -> None:
    from soulsai.runs.files import cannot_write
    from soulsgym.render.boss_page import boss_pages

    files = boss_pages(folder)
    try:
        for file, text in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise cannot_write(folder, error) from error
    if as_json:
        print_json({"files": [str(file) for file in files]})
    else:
        typer.echo(f"{folder}: wrote {len(files)} files")


def _row(found: Provenance) -> dict[str, Any]:
    ours = found.file.is_relative_to(DATA)
    file = found.file.relative_to(DATA) if ours else found.file
    return {"file": file.as_posix(), **found.counts, "total": found.total}


@variant.callback()
def variants() -> None:
    """Files that change the numbers of a boss."""


@variant.command()
def draw(
    boss: Annotated[str, typer.Argument(metavar="BOSS", help="Boss to change: a name, or a boss file (.toml).")],
    out: Annotated[Path, typer.Option(help="New file, .toml.")],
    seed: Annotated[int, typer.Option(help="The same seed draws the same file.")] = 0,
    strength: Annotated[
        float, typer.Option(help="How far from the boss's own numbers; 1 covers their whole uncertainty.")
    ] = 1.0,
    as_json: AsJson = False,
) -> None:
    """Draw a random variant of a boss.

    Each number is changed within the uncertainty of its source.

    Example: souls variant draw iudex --seed 7 --out my.toml
    """
    write_overlay(out, boss, seed, strength)
    drawn = load_fight(boss, str(out.absolute()))
    kinds, total = _count_moved(drawn.files[0], drawn.files[-1])
    moved = sum(kinds.values())
    if as_json:
        about = {"file": str(out), "boss": boss, "seed": seed, "strength": strength}
        print_json(about | {"numbers": total, "moved": moved, "kinds": kinds})
        return
    by_kind = ": " + ", ".join(f"{kind} {count}" for kind, count in kinds.items()) if kinds else ""
    typer.echo(f"{out}: moved {moved} of {total} numbers{by_kind}")
    typer.echo(f"measure an agent on it: souls eval RUN --variant {shlex.quote(str(out))}")


def _count_moved(boss: Path, drawn: Path) -> tuple[dict[str, int], int]:
    """How many numbers of the boss's file are others in the drawn one, by kind, and how many there are."""
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


def fidelity(
    file: Annotated[Path, typer.Argument(help="A recording, .npz or SoulsGym's .json, or one without positions.")],
    boss: Annotated[str, typer.Option(help="The boss, where the recording does not name it.")] = "",
    variant: Annotated[str, typer.Option(help="A variant of that boss, such as a file of souls calibrate.")] = "",
    details: Annotated[bool, typer.Option(help="Show what each value is made of.")] = False,
    as_json: AsJson = False,
) -> None:
    """Compare the simulator with a recording of the game.

    A recording of the simulator itself is replayed exactly: any drift means that the simulator has changed. For a
    recording without positions, the recorded policy plays in the simulator and the distributions are compared.

    Example: souls fidelity fight.json --json
    """
    from soulsai.evaluation.thoughts import read_fight_file
    from soulsgym.recordings.counts import has_no_positions
    from soulsgym.recordings.departure import earliest, median_step
    from soulsgym.recordings.exact import recorded_spec
    from soulsgym.recordings.fidelity import measure_fidelity

    if has_no_positions(file):
        _compare_counts(file, boss, variant, as_json=as_json)
        return
    told = read_fight_file(file)
    recording = told.recording
    if boss and told.boss and boss != told.boss and (recording.simulation or not is_path(boss)):
        raise MisuseError(f"--boss {boss} is not the boss of {file}, which is {told.boss}; leave it out")
    if variant and recording.simulation:
        raise MisuseError(
            f"--variant {variant}: {file} is a recording of the simulator and names its own; leave it out"
        )
    spec = recorded_spec(recording) or load_fight(boss or told.boss or DEFAULT_BOSS, variant or STANDARD)
    measured = measure_fidelity(recording, spec)
    first, median = earliest(measured.departures), median_step(measured.departures)
    if as_json:
        print_json(_object(measured, first, median))
    else:
        _print_fidelity(measured, _departure(measured, first, median), details=details)


def _compare_counts(file: Path, boss: str, variant: str, *, as_json: bool) -> None:
    """Distances between a recording without positions and the same policy in the simulator."""
    from soulsgym.recordings.counts import compare, play_policy, read_counts

    recording = read_counts(file)
    spec = load_fight(boss or recording.boss or DEFAULT_BOSS, variant or STANDARD)
    rows = compare(recording.counts, play_policy(spec, recording.policy, repeat=4))  # four times as long: less noise
    if as_json:
        print_json({"file": str(file), "distances": [asdict(row) | {"ok": row.ok} for row in rows]})
        return
    policy = recording.policy
    title = f"{file.name}: {policy.files} files of {policy.file_s:g} s, without positions"
    verdicts = {True: Text("ok", "green"), False: Text("missed", "red")}
    cells = ((row.name, row.text, f"{row.value:.3f}", f"<= {row.limit:g}", verdicts[row.ok]) for row in rows)
    columns = ("distance", "recorded", "value", "target", "verdict")
    Console(markup=False, highlight=False).print(
        make_table(columns, cells, title, left=("distance", "recorded", "verdict"))
    )


def _object(measured: Fidelity, first: Any, median: int | None) -> dict[str, Any]:
    return {
        "file": measured.source,
        "steps": measured.steps,
        "episodes": measured.episodes,
        "unbound_buttons": list(measured.unbound),
        "metrics": {
            metric.goal.id: {
                **{name: getattr(metric.goal, name) for name in ("name", "meaning", "unit", "target", "floor")},
                "value": metric.value,
                "n": metric.n,
                "ok": metric.ok,
                "details": dict(metric.details),
            }
            for metric in measured.metrics
        },
        "departure": {
            "exact": measured.exact,
            "median_step": median,
            "earliest_step": first.step if first else None,
            "fights": [asdict(each) for each in measured.departures],
        },
        "note": measured.note,
    }


def _print_fidelity(measured: Fidelity, departure: str, *, details: bool) -> None:
    title = f"{Path(measured.source).name}: {measured.steps} steps, {measured.episodes} episode(s)"
    columns = ("", "metric", "value", "target", "floor", "unit", "n", "verdict")
    table = make_table(columns, map(_metric_row, measured.metrics), title, left=("metric", "unit", "verdict"))
    console = Console(markup=False, highlight=False)
    console.print(table if measured.metrics else f"{title}; steps were skipped, so only a full replay can be compared")
    for metric in measured.metrics:
        if metric.fault:
            console.print(f"{metric.goal.id}: {metric.fault}.")
    if details:
        for metric in measured.metrics:
            parts = ", ".join(f"{name} {value:.3g}" for name, value in metric.details.items())
            console.print(f"{metric.goal.id}: {metric.goal.meaning} [{metric.goal.unit}]: {parts}")
    console.print(departure)
    if details and len(measured.departures) > 1:
        for each in measured.departures:
            left = "never" if each.step is None else f"step {each.step}, {each.reason}"
            console.print(f"  fight {each.fight}, {each.steps} steps: {left}")
    if measured.unbound:
        console.print(
            f"Probably unbound in the recorded game, as it never started a move: {', '.join(measured.unbound)}."
        )


def _metric_row(metric: Metric) -> tuple[str | Text, ...]:
    goal = metric.goal
    target = "-" if goal.target is None else f"{'>=' if goal.higher_is_better else '<='} {goal.target:g}"
    value = "-" if metric.value is None else f"{metric.value:.3g}"
    verdict = Text() if metric.ok is None else Text("ok", "green") if metric.ok else Text("missed", "red")
    return goal.id, goal.name, value, target, goal.floor, goal.unit, str(metric.n), verdict


def _departure(measured: Fidelity, first: Any, median: int | None) -> str:
    """Where a replay without restarts leaves the recording, in one sentence."""
    if measured.note:
        return measured.note
    replay = "The exact replay" if measured.exact else "The replay without restarts"
    fights = len(measured.departures)
    if first is None:
        return f"{replay} never leaves the recording."
    if fights == 1:
        return f"{replay} leaves the recording at step {first.step} of {first.steps}: {first.reason}."
    left = sum(each.step is not None for each in measured.departures)
    middle = "" if median is None else f"at step {median} in the median, "
    return (
        f"{replay} leaves {left} of {fights} fights, {middle}earliest at step {first.step} of fight {first.fight}: "
        f"{first.reason}."
    )
