"""What all commands that train have in common: the run's folder, how to stop, and the last words."""

from __future__ import annotations

import re
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from soulsai.config.schema import Config
    from soulsai.learning.session import Outcome
    from soulsai.runs.run import Run

PresetName = Annotated[str, typer.Argument(help="Preset, or a config file (.toml); `souls presets` lists them.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting; may be repeated.")
]
PartsFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--parts",
        metavar="FILE",
        help="Your own Python file with reward terms, encoders or other parts; may be repeated.",
    ),
]
RunFolder = Annotated[Path | None, typer.Option(help="Folder of the run; a new one under runs/ if not given.")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the run in --run, or with the newest one.")]
AcceptAll = Annotated[bool, typer.Option("--accept-all", help="Train whatever the preflight has found.")]
Plain = Annotated[bool, typer.Option("--plain", help="Lines of text instead of a live screen.")]

DEFAULT_PRESET = "iudex"
INTERRUPTED = 130
"""Exit code of a run that the user stopped, as shells have it."""


CREDENTIALS = re.compile(r"(?<=://)[^/@\s]*@")
WEBHOOK = re.compile(r"(https?://[^/?#\s]+)[/?#]\S+")


def without_secrets(text: str) -> str:
    """A word of a command line as it may be kept: URLs lose user and password, webhooks all but their host."""
    return WEBHOOK.sub(r"\1/***", CREDENTIALS.sub("***@", text))


def parts_setting(files: Sequence[Path]) -> list[str]:
    """What --parts sets."""
    from soulsai.config.toml import toml_value

    return [f"fight.parts={toml_value(tuple(map(str, files)))}"] if files else []


def open_run(
    preset: str, settings: list[str], folder: Path | None, *, resume: bool, parts: Sequence[Path] = ()
) -> tuple[Run, Config]:
    """The run to train: a new one of a preset, or the one to go on with."""
    from soulsgym.packages import require

    require("torch")  # before a folder is made for nothing
    if resume and preset:
        raise typer.BadParameter(f"a run goes on with its own config; leave out {preset!r}, or leave out --resume")
    if resume and parts:
        raise typer.BadParameter(f"a run goes on with its own copy of its parts; leave out --parts {parts[0]}")
    settings = [*parts_setting(parts), *settings]
    return _resumed(folder, settings) if resume else _begun(preset or DEFAULT_PRESET, settings, folder)


def _begun(preset: str, settings: list[str], folder: Path | None) -> tuple[Run, Config]:
    from soulsai.config import check_names, config_to_toml, load_preset, read_config, with_settings
    from soulsai.runs.fight_files import files_of, parts_of, with_absolute_paths, with_own_copies
    from soulsai.runs.run import Run, default_folder

    name = Path(preset).stem if preset.endswith(".toml") else preset
    config = with_settings(read_config(Path(preset)) if preset.endswith(".toml") else load_preset(preset), settings)
    config = check_names(with_absolute_paths(config))
    files = files_of(config) | parts_of(config)  # refuses what cannot be read before a folder is made
    command = [without_secrets(word) for word in sys.argv]
    run = Run.create(folder or default_folder(name), config_to_toml(config), preset=name, command=command, files=files)
    return run, with_own_copies(run, config)


def _resumed(folder: Path | None, settings: list[str]) -> tuple[Run, Config]:
    from soulsai.config import config_from_toml, config_to_toml, with_settings
    from soulsai.errors import RunError
    from soulsai.runs.fight_files import changed_files, with_own_copies
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
    for name in changed_files(run, changed):
        typer.echo(f"{name} is gone or has changed since the run began; the run keeps to its copy in {run.data}")
    return run, with_own_copies(run, changed)


@contextmanager
def removed_if_refused(run: Run, *, resume: bool) -> Iterator[None]:
    """Remove the folder of a new run that is refused before it has learned anything: --resume would go on with it."""
    from soulsgym.errors import SoulsError

    try:
        yield
    except SoulsError:
        if not resume and not run.metrics_file.exists():
            shutil.rmtree(run.folder, ignore_errors=True)
        raise


def _allow_only_run_settings(config: Config, changed: Config) -> None:
    from dataclasses import replace

    from soulsai.config import differences
    from soulsai.errors import ConfigError

    if replace(changed, run=config.run, fleet=config.fleet) != config or changed.run.seed != config.run.seed:
        names = ", ".join(differences(config, changed))
        raise ConfigError(
            f"a resumed run keeps its settings, but these differ: {names}; only run.* (not the seed) and fleet.* may"
        )


@contextmanager
def stopping(say: Callable[[str], None], news: str = "") -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C asks to stop after this step; a second one ends at once."""
    asked = False

    def ask(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        say(news or "stopping after this step; saving (Ctrl-C again ends at once, from the last checkpoint)")

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def conclude(run: Run, outcome: Outcome, *, again: str, exit_code: int) -> None:
    """Say how the session ended; `again` is the command that goes on with a stopped one."""
    if not outcome.finished:
        typer.echo(f"stopped and saved; go on with: {again} --resume --run {run.folder}")
        raise typer.Exit(exit_code)
    if outcome.evaluation is not None:
        from soulsai.cli.tables import print_evaluation

        print_evaluation(outcome.evaluation)
    if outcome.mean_return is not None:
        typer.echo(f"mean return {outcome.mean_return:.1f}")
    typer.echo(f"report: {run.report_file}")
