"""The run that a learner trains: a new one of a preset or config file, or one to go on with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from msgspec.structs import replace

from soulsai.config import (
    check_names,
    config_from_toml,
    config_to_toml,
    differences,
    load_preset,
    with_settings,
)
from soulsai.config.schema import Config
from soulsai.errors import ConfigError, RunFinished
from soulsai.learning.demos import read_demos
from soulsai.runs.fight_files import changed_files, demos_of, files_of, parts_of, with_absolute_paths, with_own_copies
from soulsai.runs.files import write_atomically, write_files
from soulsai.runs.run import Run, default_folder
from soulsai.runs.summary import RunSummary


def begin_run(
    preset: str,
    settings: Sequence[str] = (),
    folder: Path | None = None,
    command: Sequence[str] = (),
    first: Sequence[str] = (),
) -> tuple[Run, Config]:
    """A new run of a preset or a config file (.toml), in a new folder under runs/ if none is given.

    `settings` are texts such as "run.steps=5000"; those in `first` come before them and are not the user's. `command`
    is kept with the run and must hold no secrets.
    """
    name = Path(preset).stem if preset.endswith(".toml") else preset
    config = with_settings(load_preset(preset), settings, first=first, source=preset)
    config = check_names(with_absolute_paths(config))
    files = files_of(config) | parts_of(config)
    demos = demos_of(config)
    read_demos(config)  # refuses what cannot be learned from before a folder is made
    run = Run.create(
        folder or default_folder(name), config_to_toml(config), preset=name, command=list(command), files=files
    )
    if demos:
        write_files(demos, run.demos)
    return run, with_own_copies(run, config)


def resume_run(
    run: Run, settings: Sequence[str] = (), say: Callable[[str], None] = lambda text: None
) -> tuple[Run, Config]:
    """A run to go on with, and its config; RunFinished if it has nothing left to do."""
    file = run.folder / "config.toml"
    config = config_from_toml(run.config_toml, str(file))
    changed = with_settings(config, list(settings))
    if changed != config:
        _allow_only_run_settings(config, changed)
    refuse_finished(run, config, changed)
    changed = keep_schedule(run, config, changed, say)
    if changed != config:
        write_atomically(file, config_to_toml(changed))
    for name in changed_files(run, changed):
        say(f"{name} is gone or has changed since the run began; the run keeps to its copy in {run.data}")
    return run, with_own_copies(run, changed)


def _allow_only_run_settings(config: Config, changed: Config) -> None:
    if replace(changed, run=config.run, fleet=config.fleet) != config or changed.run.seed != config.run.seed:
        names = ", ".join(differences(config, changed))
        raise ConfigError(
            f"a resumed run keeps its settings, but these differ: {names}; only run.* (not the seed) and fleet.* may"
        )


def can_continue(run: RunSummary) -> bool:
    """Not one that has finished, nor one that failed before it had learned anything."""
    failed_at_once = run.state == "failed" and not run.status.step and not run.has_checkpoint
    return run.state != "finished" and not failed_at_once


def refuse_finished(run: Run, config: Config, changed: Config) -> None:
    """RunFinished for a run that has nothing left to do, with what would make it longer."""
    status = run.status()
    early = config.run.stop_at and status.step < config.run.steps
    longer = changed.run.stop_at != config.run.stop_at if early else changed.run.steps > status.step
    if status.state == "finished" and not longer:
        way_out = "run.stop_at=0" if early else f"run.steps={2 * status.step}"
        raise RunFinished(f"{run.folder} is finished at step {status.step:,}; train it longer with --set {way_out}")


def keep_schedule(run: Run, config: Config, changed: Config, say: Callable[[str], None]) -> Config:
    """The changed config, whose schedules go by the steps that the run began with: with others they would jump."""
    steps = config.run.steps
    if changed.run.steps == steps or changed.run.schedule_steps or not run.status().step:
        return changed
    say(
        f"learning rate, entropy and beta keep their schedule of {steps:,} steps and then their final values; "
        "set run.schedule_steps for another one"
    )
    return replace(changed, run=replace(changed.run, schedule_steps=steps))
