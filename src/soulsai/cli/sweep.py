"""`souls sweep`: look for better settings; what it shows meanwhile, and the results at the end."""

from __future__ import annotations

import math
import os
import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console, Group
from rich.panel import Panel
from rich.text import Text

from soulsai.cli.options import INTERRUPTED, PartsFiles, Plain, Settings
from soulsai.cli.screen import BORDER, Lines, LivePanel, duration_text
from soulsai.cli.tables import make_table
from soulsai.cli.train import hide_secrets, parts_setting, stop_on_signals
from soulsai.config import check_names, load_preset, with_settings
from soulsai.config.toml import toml_value
from soulsai.runs.fight_files import needed_parts
from soulsai.sweeps import report as sweep_report
from soulsai.sweeps.results import Results, TrialResult, confirm, figure, interval, results_of
from soulsai.sweeps.space import check_fit, metric_of, read_space
from soulsai.sweeps.storage import storage_in_reach
from soulsai.sweeps.study import PRUNED, RUNNING, WAITING, About, SweepStudy, open_about
from soulsai.sweeps.sweep import Running, Sweep

ROOT = Path("sweeps")
PLAIN_EVERY_S = 30.0
LOOK_EVERY_S = 2.0
ROWS = 12
"""Trials in the table at the end; the report has all."""


def sweep(
    preset: Annotated[str, typer.Argument(help="Preset, or a config file (.toml); `souls presets` lists them.")] = "",
    space: Annotated[Path | None, typer.Option(help="File (.toml) with the settings to try and their ranges.")] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="Total trials; otherwise as the space file says.")] = None,
    processes: Annotated[int, typer.Option(min=1, max=256, help="Trials trained side by side here.")] = 1,
    name: Annotated[str, typer.Option(help="Name of the sweep; by default, the names of preset and file.")] = "",
    folder: Annotated[Path | None, typer.Option("--dir", help="Folder of the sweep; by default, sweeps/NAME.")] = None,
    storage: Annotated[
        str, typer.Option(metavar="URL", help="Database that machines share, instead of a file in the folder.")
    ] = "",
    settings: Settings = None,
    parts: PartsFiles = None,
    hours: Annotated[float | None, typer.Option(min=0.0, help="Stop after this many hours; continue later.")] = None,
    plain: Plain = False,
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Only regenerate the report of the sweep in this folder.")
    ] = None,
) -> None:
    """Search for better settings with many short trainings.

    Bad ones are stopped early; the best are measured again at the end.

    Run the same command again to continue a sweep, and in other terminals to work on it together. At the end there is
    a table, and report.html in the sweep's folder.

    Example: souls sweep iudex --space space.toml --trials 40 --processes 2
    """
    if report is not None:
        _report(results_of(*open_about(report, name or report.resolve().name, storage), report), report)
        return
    about, place, most = _about(preset, space, [*parts_setting(parts or []), *(settings or [])], name, folder, trials)
    _go(about, place, storage, most, processes, hours, plain=plain or not sys.stdout.isatty())


def _report(found: Results, folder: Path) -> None:
    sweep_report.write_report(found)
    print_results(found)
    typer.echo(f"report: {folder / 'report.html'}")


def _about(
    preset: str, file: Path | None, settings: list[str], name: str, folder: Path | None, trials: int | None
) -> tuple[About, Path, int]:
    """What the sweep is of, where it is, and how many trials there are to be."""
    if not preset or file is None:
        missing = "a preset" if not preset else "--space FILE"
        raise typer.BadParameter(f"{missing} is missing, as in: souls sweep iudex --space space.toml")
    if name and folder:
        raise typer.BadParameter("--name and --dir both say where the sweep is; leave out one")
    if name and not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        raise typer.BadParameter(
            f"{name!r} is not a valid name: use letters, digits, _ and -, or give a folder with --dir"
        )
    space = read_space(file)
    config = check_names(with_settings(load_preset(preset), [*space.fixed, *settings]))
    check_fit(space, config, settings, str(file))
    own = name or (folder.resolve().name if folder else f"{Path(preset).stem}-{file.stem}")
    about = About(own, preset, config, space, metric_of(space, config), tuple(settings), needed_parts(config))
    return about, folder or ROOT / own, trials or space.plan.trials


def _go(
    about: About, folder: Path, storage: str, trials: int, processes: int, hours: float | None, *, plain: bool
) -> None:
    with storage_in_reach(folder, storage):
        study = SweepStudy(folder, about, storage)
    deadline_s = time.monotonic() + (math.inf if hours is None else hours * 3600.0)
    view = PlainView(study, trials) if plain else Screen(study, trials)
    try:
        with (
            storage_in_reach(folder, storage),
            view,
            stop_on_signals(
                view.say, "stopping: trials are saved to continue later (Ctrl-C again ends at once)"
            ) as asked,
        ):

            def stop() -> bool:
                return asked() or time.monotonic() > deadline_s

            sweep = Sweep(study, view, trials=trials, side_by_side=processes, threads=_threads(about, processes))
            finished = sweep.go(stop) and confirm(study, view.say, stop)
        _report(results_of(study.study, about, folder), folder)
    finally:
        study.close()
    if not finished:
        again = " ".join(shlex.quote(hide_secrets(word)) for word in ["souls", *sys.argv[1:]])
        typer.echo(f"stopped and saved; continue with: {again}")
        raise typer.Exit(INTERRUPTED if asked() else 0)


def _threads(about: About, processes: int) -> int:
    """Threads of each trial: the cores are shared out, unless the user has said how many; 0 for all."""
    if about.config.run.threads or processes == 1:
        return 0
    return max(1, (os.cpu_count() or 1) // processes)


class PlainView(Lines):
    """One line now and then."""

    def __init__(self, study: SweepStudy, trials: int) -> None:
        super().__init__()
        self._study, self._trials = study, trials
        self._shown_s = time.monotonic()

    def show(self, running: Sequence[Running]) -> None:
        """A line, at most every half a minute."""
        if time.monotonic() - self._shown_s < PLAIN_EVERY_S or not running:
            return
        self._shown_s = time.monotonic()
        parts = [f"trial {one.number} {_percent_done(one)} {_score(one, self._study)}".rstrip() for one in running]
        self.say(f"{_tally(self._study, self._trials)} | {' | '.join(parts)}")


class Screen(LivePanel):
    """How a sweep goes."""

    def __init__(self, study: SweepStudy, trials: int) -> None:
        super().__init__()
        self._study, self._trials = study, trials
        self._running: Sequence[Running] = ()
        self._tally, self._tally_s = "", -LOOK_EVERY_S

    def show(self, running: Sequence[Running]) -> None:
        """New figures."""
        self._running = list(running)
        if time.monotonic() - self._tally_s > LOOK_EVERY_S:
            self._tally, self._tally_s = _tally(self._study, self._trials), time.monotonic()
        self._draw()

    def picture(self) -> Panel:
        """The trials that are running."""
        rows = (
            (
                str(one.number),
                _percent_done(one),
                _score(one, self._study),
                duration_text(time.monotonic() - one.begun_s),
                _words(one.settings),
            )
            for one in self._running
        )
        columns = ("trial", "done", "score", "time", "settings")
        table = make_table(columns, rows, left=columns)
        title = Text(f"souls sweep: {self._study.about.name}")
        return Panel(Group(Text(self._tally, style="bold"), table), title=title, border_style=BORDER)


def _percent_done(one: Running) -> str:
    return f"{min(1.0, one.step / one.steps):.0%}"


def _score(one: Running, study: SweepStudy) -> str:
    return "" if one.score is None else figure(one.score, study.about.metric)


def _tally(study: SweepStudy, trials: int) -> str:
    found = results_of(study.study, study.about, study.folder)
    over = sum(each.state not in (RUNNING, WAITING) for each in found.trials)
    best = f", best {figure(found.ranked[0].value, study.about.metric)}" if found.ranked else ""
    return f"{over} of {trials} trials done, {found.count(PRUNED)} of them pruned{best}"


def print_results(results: Results, console: Console | None = None) -> None:
    """The best trials in a table, and what they are worth."""
    out = console or Console(highlight=False)
    columns = ("trial", "search", "fresh", "interval", "settings")
    rows = map(partial(_trial_row, results=results), results.ranked[:ROWS])
    table = make_table(columns, rows, "Trials, best first", left=("settings",))
    if results.ranked:
        out.print(table)
    out.print(Text(sweep_report.verdict(results), style="bold"), soft_wrap=True)
    if said := sweep_report.against_preset(results):
        out.print(Text(said), soft_wrap=True)
    if results.best is not None:
        out.print(Text(f"train it again: {results.command(results.best)}"), soft_wrap=True)


def _trial_row(trial: TrialResult, results: Results) -> tuple[str, ...]:
    again, metric = trial.confirmed, results.about.metric
    return (
        str(trial.number),
        figure(trial.value, metric),
        figure(again[0], metric) if again else "-",
        interval(again, metric) if again else "-",
        "(preset) " * trial.is_preset + _words(trial.settings),
    )


def _words(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{key.rpartition('.')[2]} {toml_value(value)}" for key, value in settings.items())
