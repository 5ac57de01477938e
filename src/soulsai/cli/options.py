"""Options that commands share, the run that a user means, and what every command prints alike."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from soulsai.config.schema import DRAWN
from soulsai.errors import RunError
from soulsai.runs.run import Run
from soulsai.runs.summary import BROKEN, ROOT, RunSummary, list_runs, open_run
from soulsgym.errors import MisuseError

if TYPE_CHECKING:
    from soulsgym.game.engine import GameOptions
    from soulsgym.target import TargetOptions

INTERRUPTED = 130
"""Exit code of what the user has stopped, as shells have it."""
WHO = (
    "Folder or name of a run, zoo:NAME for an agent that comes with the package, an exported file (.onnx, .pt), or "
    "player:NAME for a scripted player."
)
RECORDINGS = (".npz", ".json")
FIGHTS, FIGHTS_PER_FILE = 1000, 50
SPEED, STEPPING = 3.0, "auto"
SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
"""One of these tells programs on Linux where to open windows."""


def run_argument(help: str, metavar: str = "RUN") -> Any:
    """An argument that names something."""
    return typer.Argument(metavar=metavar, help=help)


RunName = Annotated[str | None, run_argument("Folder or name of a run; the newest one if not given.")]
RunsFolder = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="Folder of runs, or one run; runs/ if not given.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
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
Plain = Annotated[bool, typer.Option("--plain", help="Lines of text instead of a live screen.")]
InGame = Annotated[bool, typer.Option("--game", help="In the running game instead of the simulator.")]
Fights = Annotated[
    int | None,
    typer.Option(
        help="Fights (or episodes) to play; with --variant drawn:N, on each of the N files.",
        show_default=f"{FIGHTS}, or {FIGHTS_PER_FILE} on each drawn file",
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the fights; training never sees them.")]
Boss = Annotated[
    str,
    typer.Option(
        help="Boss of a scripted player: a name, or a boss file (.toml); of a run, one of those it was trained on."
    ),
]
OneVariant = Annotated[
    str,
    typer.Option(help="Variant of the boss, such as hard, or an overlay file (.toml); by default, that of training."),
]
Latest = Annotated[bool, typer.Option("--latest", help="The newest policy instead of the one kept as the best.")]


@dataclass(frozen=True)
class FightOptions:
    """Which fights are meant, and which policy of a run fights them."""

    boss: Boss = ""
    variant: Annotated[
        str,
        typer.Option(
            help="Variant of the boss, such as hard, an overlay file (.toml), or drawn:20 for 20 drawn files that "
            "training never uses; by default, that of training."
        ),
    ] = ""
    randomize: Annotated[float, typer.Option(help="Strength of domain randomisation, 0 to 1.")] = 0.0
    phase: Annotated[int | None, typer.Option(help="Only this phase, with the boss's full health.")] = None
    full: Annotated[bool, typer.Option("--full", help="The full fight, even if only one phase was trained.")] = False
    no_hit: Annotated[
        bool | None, typer.Option("--no-hit/--hits", help="The first hit loses the fight; by default, as in training.")
    ] = None
    latest: Latest = False

    def number(self, given: int | None) -> int:
        """How many fights to play: as many as were asked for, or enough for an interval of a few per cent."""
        if given is not None:
            return given
        return FIGHTS_PER_FILE if self.variant.startswith(DRAWN) else FIGHTS

    def flags(self) -> list[str]:
        """The options about the fights that say something, as they are written."""
        values = {name: getattr(self, name) for name in ("boss", "variant", "randomize", "phase", "full")}
        return [f"--{name}" for name, value in values.items() if value] + ["--no-hit"] * (self.no_hit is not None)


@dataclass(frozen=True)
class OneFight(FightOptions):
    """The same of a single fight."""

    variant: OneVariant = ""


@dataclass(frozen=True)
class GameFlags:
    """How to play in the running game."""

    game_speed: Annotated[float, typer.Option(help="Speed of the game, as a factor; inf: as fast as possible.")] = SPEED
    stepping: Annotated[
        str,
        typer.Option(help="ticks: exact steps by a frozen clock; speed: run and pause; auto: what the game allows."),
    ] = STEPPING
    pid: Annotated[int | None, typer.Option(help="Process of the game, if several are running.")] = None
    launch: Annotated[str, typer.Option(metavar="COMMAND", help="Command that restarts the game after a crash.")] = ""
    display: Annotated[str, typer.Option(metavar=":N", help="X display of the game, if it is not found.")] = ""

    def options(self, in_game: bool, flag: str = "--game") -> GameOptions | None:
        """How to play in the game; None where something else is meant, which takes none of it."""
        if not in_game:
            given = {"--game-speed": self.game_speed != SPEED, "--stepping": self.stepping != STEPPING,
                     "--pid": self.pid, "--launch": self.launch, "--display": self.display}  # fmt: skip
            if named := [name for name, value in given.items() if value]:
                raise MisuseError(f"{', '.join(named)} needs the running game; add {flag}, or leave it out")
            return None
        from soulsgym.game.engine import GameOptions

        return GameOptions(self.game_speed, self.stepping, self.pid, self.launch or None, self.display)


@dataclass(frozen=True)
class TargetFlags(GameFlags):
    """How to play in the running game, or in a rehearsal of it."""

    rehearse: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Instead of the game, a boss file or an overlay (.toml) that shows no more than a game does.",
        ),
    ] = ""
    pace: Annotated[float, typer.Option(help="Steps a second of a rehearsal; 0: as fast as possible.")] = 0.0

    def target(self, in_game: bool, flag: str = "--game") -> TargetOptions | None:
        """How to play in the target; None where the simulator is meant."""
        if self.pace and not self.rehearse:
            raise MisuseError(f"--pace {self.pace:g} is about a rehearsal; give --rehearse FILE too, or leave it out")
        if not self.rehearse:
            return self.options(in_game, flag)
        if in_game and flag == "--game":
            raise MisuseError(f"use --game or --rehearse {self.rehearse}, not both")
        self.options(False)
        from soulsgym.rehearsal.engine import RehearsalOptions

        return RehearsalOptions(self.rehearse, self.pace)


def choose_run(
    text: str | None,
    suits: Callable[[RunSummary], bool] = lambda run: True,
    *,
    missing: str = "there is no run",
    label: str = "the newest run:",
) -> Run:
    """The run that was named, or the newest one that suits, which is then told."""
    if text is not None:
        return open_run(text)
    found = next((run for run in list_runs(ROOT) if run.state != BROKEN and suits(run)), None)
    if found is None:
        raise RunError(f"{ROOT}: {missing} here; name one, or start one: souls train")
    typer.echo(f"{label} {found.folder}", err=True)
    return Run(found.folder)


def choose_trained(text: str | None) -> str:
    """What was named, or the folder of the newest run that has a policy."""
    if text is not None:
        return text
    return str(choose_run(None, lambda run: run.has_checkpoint, missing="there is no run with a checkpoint").folder)


def has_screen() -> bool:
    """Whether programs can open windows; on Linux an environment variable says where."""
    return not sys.platform.startswith("linux") or any(os.environ.get(name) for name in SCREENS)


def print_json(content: object) -> None:
    """One JSON object or array, for programs; a number that is not finite becomes null."""
    finite = msgspec.json.decode(msgspec.json.encode(content))
    typer.echo(json.dumps(finite, indent=1))


def warn(text: str) -> None:
    """A warning, beside whatever is printed."""
    typer.echo(f"souls: {text}", err=True)


@contextmanager
def bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A function that shows how many of how many are done, on standard error and only if that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as shown:
        task = shown.add_task(title, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
