"""`souls autopsy`: why did I die, and what would have saved me?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from soulsai.cli.eval import fight_settings
from soulsai.cli.options import (
    RECORDINGS,
    WHO,
    AsJson,
    OneFight,
    Seed,
    bar,
    choose_trained,
    print_json,
    run_argument,
    warn,
)
from soulsai.cli.tables import make_table
from soulsai.evaluation import evaluate
from soulsai.evaluation.autopsy import Death, autopsy, causes_table, summary_of
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsai.evaluation.thoughts import about_boss, read_fight_file
from soulsai.learning.candidates import load_candidate
from soulsai.runs.files import check_new_file, write_atomically
from soulsgym.errors import MisuseError
from soulsgym.recordings.recording import Recording
from soulsgym.spec import load_fight

LISTED = 10


def autopsy_of(
    run: Annotated[
        str | None, run_argument(f"{WHO[:-1]}, or a recording of the simulator (.npz); the newest run if not given.")
    ] = None,
    fights: Annotated[int, typer.Option(min=1, max=1000, help="Fights to play; a recording has its own.")] = 100,
    seed: Seed = 0,
    html: Annotated[
        Path | None, typer.Option(help="New file (.html) that shows deaths beside the fights with the change.")
    ] = None,
    show: Annotated[int, typer.Option(min=1, max=100, help="Deaths in the page.")] = 12,
    as_json: AsJson = False,
    *,
    options: OneFight,
) -> None:
    """Explain each death, and the smallest change that would have prevented it.

    Every death is replayed from two seconds before the hit, with every small change of the inputs.

    Example: souls autopsy recordings/play-iudex.npz --html autopsy.html
    """
    if html is not None:
        check_new_file(html, "page", ".html")
    run = choose_trained(run)
    recordings, about, name = _read(run, options) if run.endswith(RECORDINGS) else _fight(run, fights, seed, options)
    number = sum(len(recording.bounds()) for recording in recordings)
    with bar("trying changes"):
        deaths = autopsy(recordings)
    if as_json:
        print_json({"fights": number, "deaths": [_plain(death) for death in deaths]})
    else:
        _print(deaths, number, name)
    if html is not None:
        from soulsai.dashboard.autopsy_page import autopsy_page

        write_atomically(html, autopsy_page(deaths, number, about, f"Why {name} died", show), durably=False)
        typer.echo(f"{html}: both fights side by side", err=as_json)


def _read(file: str, options: OneFight) -> tuple[list[Recording], dict[str, Any], str]:
    if given := options.flags():
        raise MisuseError(f"{file} is a recording, which has its own boss; leave out {', '.join(given)}")
    told = read_fight_file(Path(file))
    return [told.recording], dict(told.about), Path(file).stem


def _fight(run: str, fights: int, seed: int, options: OneFight) -> tuple[list[Recording], dict[str, Any], str]:
    one = load_candidate(run, latest=options.latest, warn=warn)
    settings = fight_settings([one.config] if one.config else [], options)
    load_fight(settings["boss"], settings["variant"])  # one file, not twenty drawn ones
    if settings.get("no_hit"):
        raise MisuseError("no-hit fights end before a death, so there is nothing to explain; give --hits")
    recorder = FightRecorder(fights)
    with bar(f"{one.name} plays") as progress:
        evaluate(one.fighter(settings["boss"]), fights, seed=seed, recorder=recorder, progress=progress, **settings)
    about = {"run": one.name, "engine": "sim"} | about_boss(settings["boss"], settings["variant"])
    return [recorder.fight(number, own_files=True) for number in range(len(recorder))], about, one.name


def _print(deaths: list[Death], fights: int, name: str) -> None:
    if not deaths:
        typer.echo(f"{name} did not die in {fights} fight{'s' * (fights != 1)}.")
        return
    console = Console()
    head = ("deaths", "cause", "what would have saved most of them")
    console.print(make_table(head, causes_table(deaths), f"Why {name} died", left=head[1:]))
    rows = [(str(one.fight), f"{one.time_s:.1f} s", one.cause, _change(one)) for one in deaths[:LISTED]]
    console.print(make_table(("fight", "at", "died of", "smallest change"), rows, left=("died of", "smallest change")))
    if len(deaths) > LISTED:
        typer.echo(f"and {len(deaths) - LISTED} more (--json lists them all)")
    typer.echo(summary_of(deaths, fights))


def _change(death: Death) -> str:
    return death.change.text if death.change else "none in the last 2 s"


def _plain(death: Death) -> dict[str, Any]:
    told = {key: getattr(death, key) for key in ("fight", "time_s", "killer", "cause", "survives")}
    return told | {"change": death.change.text if death.change else None}
