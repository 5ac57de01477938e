"""`souls sweep`: look for better settings."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from soulsai.cli.session import INTERRUPTED, PartsFiles, Plain, Settings, parts_setting, stopping, without_secrets

if TYPE_CHECKING:
    from soulsai.sweeps.study import About, SweepStudy

ROOT = Path("sweeps")


def sweep(
    preset: Annotated[str, typer.Argument(help="Preset, or a config file (.toml); `souls presets` lists them.")] = "",
    space: Annotated[Path | None, typer.Option(help="File (.toml) with the settings to try and their ranges.")] = None,
    trials: Annotated[int | None, typer.Option(min=1, help="Trials in all; otherwise as the space file says.")] = None,
    processes: Annotated[int, typer.Option(min=1, max=256, help="Trials trained side by side here.")] = 1,
    name: Annotated[str, typer.Option(help="Name of the sweep; otherwise that of the preset and the file.")] = "",
    folder: Annotated[
        Path | None, typer.Option("--dir", help="Folder of the sweep; otherwise sweeps/ and its name.")
    ] = None,
    storage: Annotated[
        str, typer.Option(metavar="URL", help="Database that machines share, instead of a file in the folder.")
    ] = "",
    settings: Settings = None,
    parts: PartsFiles = None,
    hours: Annotated[float | None, typer.Option(min=0.0, help="Stop after so many hours; go on later.")] = None,
    plain: Plain = False,
    report: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Only write the report of the sweep in this folder again.")
    ] = None,
) -> None:
    """Look for better settings: many short trainings, bad ones ended early, the best measured again at the end.

    Run the same command again to go on with a sweep, and in other terminals to work on it together. At the end there is
    a table, and report.html in the sweep's folder.

    Example: souls sweep iudex --space space.toml --trials 40 --processes 2
    """
    from soulsgym.packages import require

    require("optuna")
    if report is not None:
        _write_report(report, name or report.resolve().name, storage)
        return
    about, place, most = _about(preset, space, [*parts_setting(parts or []), *(settings or [])], name, folder, trials)
    _go(about, place, storage, most, processes, hours, plain=plain or not sys.stdout.isatty())


def _write_report(folder: Path, name: str, storage: str) -> None:
    from soulsai.cli.sweep_view import print_results
    from soulsai.sweeps.report import write_report
    from soulsai.sweeps.results import results_of
    from soulsai.sweeps.study import open_about

    found = results_of(*open_about(folder, name, storage), folder)
    write_report(found)
    print_results(found)
    typer.echo(f"report: {folder / 'report.html'}")


def _about(
    preset: str, file: Path | None, settings: list[str], name: str, folder: Path | None, trials: int | None
) -> tuple[About, Path, int]:
    """What the sweep is of, where it is, and how many trials there are to be."""
    from soulsai.config import check_names, with_settings
    from soulsai.runs.fight_files import needed_parts
    from soulsai.sweeps.fitting import check_fit, metric_of
    from soulsai.sweeps.space import read_space
    from soulsai.sweeps.study import About
    from soulsai.sweeps.sweep import base_config

    if not preset or file is None:
        missing = "a preset" if not preset else "--space FILE"
        raise typer.BadParameter(f"{missing} is missing, as in: souls sweep iudex --space space.toml")
    if name and folder:
        raise typer.BadParameter("--name and --dir both say where the sweep is; leave out one")
    if name and not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        raise typer.BadParameter(
            f"{name!r} is no plain name: use letters, digits, _ and -, or give a folder with --dir"
        )
    space = read_space(file)
    config = check_names(with_settings(base_config(preset), [*space.fixed, *settings]))
    check_fit(space, config, settings, str(file))
    own = name or (folder.resolve().name if folder else f"{Path(preset).stem}-{file.stem}")
    about = About(own, preset, config, space, metric_of(space, config), tuple(settings), needed_parts(config))
    return about, folder or ROOT / own, trials or space.plan.trials


def _go(
    about: About, folder: Path, storage: str, trials: int, processes: int, hours: float | None, *, plain: bool
) -> None:
    from soulsai.cli.sweep_view import make_view, print_results
    from soulsai.sweeps.report import write_report
    from soulsai.sweeps.results import results_of
    from soulsai.sweeps.study import SweepStudy
    from soulsai.sweeps.sweep import Sweep

    with _keeping_in_reach(folder, storage):
        study = SweepStudy(folder, about, storage)
    deadline_s = time.monotonic() + hours * 3600.0 if hours is not None else None
    try:
        with (
            _keeping_in_reach(folder, storage),
            make_view(study, trials, plain=plain) as view,
            stopping(view.say, "stopping: trials are saved and go on next time (Ctrl-C again ends at once)") as asked,
        ):
            stop = _until(asked, deadline_s)
            sweep = Sweep(study, view, trials=trials, side_by_side=processes, threads=_threads(about, processes))
            finished = sweep.go(stop) and _confirmed(study, view.say, stop)
        found = results_of(study.study, about, folder)
        write_report(found)
        print_results(found)
        typer.echo(f"report: {folder / 'report.html'}")
    finally:
        study.close()
    if not finished:
        typer.echo(f"stopped and saved; go on with: {_again()}")
        raise typer.Exit(INTERRUPTED if asked() else 0)


@contextmanager
def _keeping_in_reach(folder: Path, storage: str) -> Iterator[None]:
    """A database that goes away, or a full disk, ends the sweep with a sentence; trainings see that and save."""
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    from soulsai.errors import RunError
    from soulsai.runs.files import cannot_write

    try:
        yield
    except (StorageInternalError, SQLAlchemyError) as error:
        place = without_secrets(storage)
        why = without_secrets(str(error.__cause__ or error).strip().partition("\n")[0])
        raise RunError(f"--storage {place}: is lost ({why}); run the same command again when it is back") from error
    except OSError as error:
        raise cannot_write(folder, error) from error


def _confirmed(study: SweepStudy, say: Callable[[str], None], stop: Callable[[], bool]) -> bool:
    from soulsai.sweeps.confirm import confirm

    with study.confirming() as mine:
        if not mine:
            say("another process measures the best trials again, and writes the report")
            return True
        return confirm(study, say, stop)


def _until(asked: Callable[[], bool], deadline_s: float | None) -> Callable[[], bool]:
    return lambda: asked() or (deadline_s is not None and time.monotonic() > deadline_s)


def _threads(about: About, processes: int) -> int:
    """Threads of each trial: the cores are shared out, unless the user has said how many; 0 for all."""
    if about.config.run.threads or processes == 1:
        return 0
    return max(1, (os.cpu_count() or 1) // processes)


def _again() -> str:
    return " ".join(shlex.quote(without_secrets(word)) for word in ["souls", *sys.argv[1:]])
