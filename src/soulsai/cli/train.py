"""`souls train`: train an agent."""

from __future__ import annotations

import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from soulsai.config.schema import Config
    from soulsai.learning.session import Outcome
    from soulsai.runs.run import Run

DEFAULT_PRESET = "iudex"
INTERRUPTED = 130
"""Exit code of a run that the user stopped, as shells have it."""


def train(
    preset: Annotated[str, typer.Argument(help="Preset, or a config file (.toml); `souls presets` lists them.")] = "",
    settings: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated.")
    ] = None,
    run: Annotated[Path | None, typer.Option(help="Folder of the run; a new one under runs/ if not given.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --run, or with the newest one.")
    ] = False,
    accept: Annotated[bool, typer.Option("--accept-all", help="Train whatever the preflight has found.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="Lines of text instead of a live screen.")] = False,
) -> None:
    """Train an agent: with no arguments, the full fight against Iudex Gundyr in the simulator.

    Example: souls train dddqn --set run.seed=3 --run runs/mine
    """
    if resume and preset:
        raise typer.BadParameter(f"a run goes on with its own config; leave out {preset!r}, or leave out --resume")
    folder, config = _resumed(run, settings or []) if resume else _begun(preset or DEFAULT_PRESET, settings or [], run)
    from soulsai.cli.screen import make_view
    from soulsai.errors import PreflightError
    from soulsai.learning.session import run_session

    with make_view(folder.name, config, plain=plain or not sys.stdout.isatty()) as view, _stopping(view.say) as stop:
        try:
            outcome = run_session(folder, config, resume=resume, view=view, stop=stop, check=not accept)
        except PreflightError:
            if not resume:
                shutil.rmtree(folder.folder, ignore_errors=True)  # made a moment ago, with nothing in it but the config
            raise
    _conclude(folder, outcome)


def _begun(preset: str, settings: list[str], folder: Path | None) -> tuple[Run, Config]:
    from soulsai.config import config_to_toml, load_preset, read_config, with_settings
    from soulsai.runs.run import Run, default_folder

    name = Path(preset).stem if preset.endswith(".toml") else preset
    config = with_settings(read_config(Path(preset)) if preset.endswith(".toml") else load_preset(preset), settings)
    place = folder or default_folder(name)
    run = Run.create(place, config_to_toml(config), preset=name, command=sys.argv)
    return run, config


def _resumed(folder: Path | None, settings: list[str]) -> tuple[Run, Config]:
    from soulsai.config import config_from_toml, config_to_toml, with_settings
    from soulsai.errors import RunError
    from soulsai.runs.files import write_atomically
    from soulsai.runs.run import Run
    from soulsai.runs.summary import list_runs

    if folder is None:
        found = [summary for summary in list_runs(Path("runs")) if summary.state not in ("broken", "finished")]
        if not found:
            raise RunError("runs: there is no run to resume; give its folder with --run")
        folder = max(found, key=lambda summary: summary.status.updated).folder
        typer.echo(f"resuming {folder}")
    run = Run.open(folder)
    config = config_from_toml(run.config_toml, str(folder / "config.toml"))
    changed = with_settings(config, settings)
    if changed != config:
        _allow_only_run_settings(config, changed)
        write_atomically(folder / "config.toml", config_to_toml(changed))
    return run, changed


def _allow_only_run_settings(config: Config, changed: Config) -> None:
    from dataclasses import replace

    from soulsai.config import differences
    from soulsai.errors import ConfigError

    if replace(changed, run=config.run) != config or changed.run.seed != config.run.seed:
        names = ", ".join(differences(config, changed))
        raise ConfigError(f"a resumed run keeps its settings, but these differ: {names}; only run.* (not the seed) may")


@contextmanager
def _stopping(say: Callable[[str], None]) -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C asks to stop after this step; a second one ends at once."""
    asked = False

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        say("stopping after this step; saving (Ctrl-C again ends at once, from the last checkpoint)")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _conclude(run: Run, outcome: Outcome) -> None:
    if not outcome.finished:
        typer.echo(f"stopped and saved; go on with: souls train --resume --run {run.folder}")
        raise typer.Exit(INTERRUPTED)
    if outcome.evaluation is not None:
        from soulsai.cli.tables import print_evaluation

        print_evaluation(outcome.evaluation)
    if outcome.mean_return is not None:
        typer.echo(f"mean return {outcome.mean_return:.1f}")
    typer.echo(f"report: {run.report_file}")
