"""Entry point of the `souls` command; the module of a command is loaded when that command is called."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

from soulsgym.errors import SoulsError
from soulsgym.packages import VERSION, install_command, missing_package

try:
    import typer
except ModuleNotFoundError:
    sys.exit(f"souls: the command line is not installed; run: {install_command('cli')}")

from typer.core import TyperGroup

COMMANDS = {
    "train": ("train:train", "Train an agent; by default, to beat Iudex Gundyr."),
    "sweep": ("sweep:sweep", "Search for better settings with many short trainings."),
    "eval": ("eval:evaluate_run", "Measure a policy: win rate, times, causes of death."),
    "autopsy": ("autopsy:autopsy_of", "Explain deaths, and what would have prevented them."),
    "compare": ("eval:compare_runs", "Test whether one policy is better than another."),
    "dashboard": ("dashboard:dashboard", "Show runs in a live web page."),
    "open": ("dashboard:open_page", "Open the report or the live page of a run in the browser."),
    "notify": ("dashboard:notify", "Send a webhook when a run wins, stalls or ends."),
    "play": ("play:play", "Fight a boss yourself, with keyboard or gamepad."),
    "watch": ("watch:watch", "Show a fight in a window or in the terminal, or record it."),
    "record": ("watch:record", "Record fights step by step."),
    "export-dataset": ("datasets:export_dataset", "Write a recording as a Minari dataset."),
    "import-dataset": ("datasets:import_dataset", "Write a Minari dataset as a recording."),
    "doctor": ("game:doctor", "Check that everything is ready to play in the game."),
    "export": ("eval:export", "Export the policy of a run to a self-contained file."),
    "zoo": ("zoo:zoo", "List the trained agents that come with the package."),
    "verify": ("zoo:verify", "Replay the claimed wins of a shared agent."),
    "push": ("zoo:push", "Share the policy of a run on the Hugging Face Hub."),
    "pull": ("zoo:pull", "Download a shared agent."),
    "runs": ("runs:runs", "List the runs in a folder, or remove one."),
    "presets": ("config:presets", "List the presets of `souls train`."),
    "serve": ("train:serve", "Start a learner and print the join command."),
    "join": ("train:join", "Join a fleet: play for its learner."),
    "gateway": ("gateway:gateway", "Let strangers join through one port in front of a Redis."),
    "fleet": ("fleet:fleet", "List the workers of a served run."),
    "invite": ("fleet:invite", "Print a join command for one more person."),
    "invitations": ("invitations:invitations", "List invitations to a run, or revoke many at once."),
    "revoke": ("fleet:revoke", "Revoke an invitation and disconnect its workers."),
    "forget": ("fleet:forget", "Remove one contributor's experience from the replay."),
    "save": ("runs:save", "Write a checkpoint of a run now."),
    "pause": ("runs:pause", "Save and pause a run."),
    "unpause": ("runs:unpause", "Continue a paused run."),
    "stop": ("runs:stop", "Save and stop a run, or stop some of its workers."),
    "adapt": ("adapt:adapt", "Adapt an agent to the game, in half an hour of play."),
    "calibrate": ("calibrate:calibrate", "Correct a boss's numbers from recordings."),
    "fidelity": ("data:fidelity", "Compare the simulator with a recording of the game."),
    "bosses": ("data:bosses", "List the bosses, and how much of their data is measured."),
    "data": ("data:data", "Count measured and guessed numbers in the data files."),
    "game": ("game:game", "Back up save games, and control the game's speed."),
    "variant": ("data:variant", "Draw variants of a boss: files that change its numbers."),
    "config": ("config:config", "Show all settings, or those of a preset."),
    "bench": ("bench:bench", "Measure speed against limits and peers."),
}
"""By name: the module in this folder and the function or Typer in it, and its line in `souls --help`."""


def expand_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each group of options among its parameters, a dataclass, as options of its own."""
    signature = inspect.signature(command, eval_str=True)
    parameters = signature.parameters.values()
    groups: dict[str, Any] = {each.name: each.annotation for each in parameters if is_dataclass(each.annotation)}

    @wraps(command)
    def call(**given: Any) -> None:
        made = {name: kind(**{key.name: given.pop(key.name) for key in fields(kind)}) for name, kind in groups.items()}
        command(**given, **made)

    options = [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for each in parameters
        for option in (
            inspect.signature(each.annotation, eval_str=True).parameters.values() if each.name in groups else [each]
        )
    ]
    call.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    return call


def load_command(name: str) -> Any:
    """The command with its options; this imports its module."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    found = getattr(importlib.import_module(f"soulsai.cli.{module}"), attribute)
    if isinstance(found, typer.Typer):
        command: Any = typer.main.get_group(found)
    else:
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name)(expand_groups(found))
        command = typer.main.get_command(alone)
    command.name = name
    return command


def refuse_empty(words: list[str]) -> None:
    """Refuse an empty argument or option: mostly a variable of a script that is not set."""
    for before, word in zip(["", *words], words, strict=False):
        option, _, value = word.partition("=") if word.startswith("--") and "=" in word else (before, "", word)
        if not value.strip():
            what = f"the value of {option}" if option.startswith("-") else "an argument"
            raise typer.BadParameter(f"{what} is empty; leave it out, or fill it in")


class LazyCommands(TyperGroup):
    """Shows all commands, and loads the one that is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        refuse_empty(rest)
        return name, load_command(name) if name in COMMANDS else command, rest


app = typer.Typer(
    name="souls", cls=LazyCommands, no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode=None
)


def show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"souls {VERSION}")
        raise typer.Exit


@app.callback()
def souls(
    show: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Train agents that beat Souls bosses."""


for _name, (_, _line) in COMMANDS.items():
    app.command(_name, help=_line)(lambda: None)  # stands in for the command until it is called


def main() -> None:
    """Run the command line; an expected error becomes one sentence and its exit code."""
    # Before torch is loaded. Its threads spin while they wait for each other, by default so long that other programs
    # beside slow training down badly. Beside a busy loop on one of two cores: 128 k steps/s instead of 73 k; alone
    # 236 k instead of 268 k.
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    try:
        app(prog_name="souls")
    except Exception as error:
        told = error if isinstance(error, SoulsError) else missing_package(error) or _no_room(error)
        if told is None:
            raise
        typer.echo(f"souls: {told}", err=True)
        sys.exit(told.exit_code)


def _no_room(error: Exception) -> SoulsError | None:
    """What to say of a full disk or a missing permission, wherever it was met."""
    from soulsai.runs.files import FORBIDDEN, FULL, cannot_write

    if not isinstance(error, OSError) or error.errno not in FULL | FORBIDDEN:
        return None
    return cannot_write(Path(error.filename or "."), error)
