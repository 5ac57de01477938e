"""What `souls eval`, `compare` and `watch` share: which fights are meant, and a bar while they last."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from soulsai.config.schema import DEFAULT_BOSS, DRAWN, STANDARD

if TYPE_CHECKING:
    from soulsai.config.schema import Config
    from soulsai.evaluation.evaluation import Evaluation
    from soulsai.evaluation.fighter import Fighter
    from soulsai.evaluation.witness import Witness
    from soulsgym.game.engine import GameOptions

WHO = "Folder or name of a run, an exported file (.onnx, .pt), or player:NAME for a scripted player."
FIGHTS, FIGHTS_PER_FILE = 1000, 50
Fights = Annotated[
    int | None,
    typer.Option(
        help="Fights (or episodes) to play; with --variant drawn:N, on each of the N files.",
        show_default=f"{FIGHTS}, or {FIGHTS_PER_FILE} on each drawn file",
    ),
]
Seed = Annotated[int, typer.Option(help="Seed of the fights; training never sees them.")]
Boss = Annotated[str, typer.Option(help="Boss of a scripted player: a name, or a boss file (.toml).")]
Variant = Annotated[
    str,
    typer.Option(
        help="Variant of the boss, such as hard, an overlay file (.toml), or drawn:20 for 20 drawn files that training "
        "never uses; otherwise the one of training."
    ),
]
OneVariant = Annotated[
    str, typer.Option(help="Variant of the boss, such as hard, or an overlay file (.toml); otherwise that of training.")
]
Randomize = Annotated[float, typer.Option(help="Strength of domain randomisation, 0 to 1.")]
Phase = Annotated[int | None, typer.Option(help="This phase alone, for all of the boss's health.")]
Full = Annotated[bool, typer.Option("--full", help="The full fight, even if only one phase was trained.")]
NoHit = Annotated[bool | None, typer.Option("--no-hit/--hits", help="The first hit loses; otherwise as in training.")]
Latest = Annotated[bool, typer.Option("--latest", help="The newest policy instead of the one kept as the best.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]

WAYS_OUT = {
    "boss": "runs of one boss",
    "variant": "--variant",
    "phase": "--phase or --full",
    "full": "--phase or --full",
}
"""What to give when two runs were trained for fights that differ in something."""


@dataclass(frozen=True)
class FightOptions:
    """What the user said about the fights."""

    variant: str = ""
    randomize: float = 0.0
    phase: int | None = None
    full: bool = False
    no_hit: bool | None = None
    boss: str = ""

    def fights(self, given: int | None) -> int:
        """How many to play: as many as were asked for, or enough for an interval of a few per cent."""
        if given is not None:
            return given
        return FIGHTS_PER_FILE if self.variant.startswith(DRAWN) else FIGHTS

    def given(self) -> list[str]:
        """The options that say something, as they are written."""
        names = {
            "--boss": self.boss, "--variant": self.variant, "--randomize": self.randomize, "--phase": self.phase,
            "--full": self.full,
        }  # fmt: skip
        return [name for name, value in names.items() if value] + (["--no-hit"] if self.no_hit is not None else [])


def fight_settings(configs: Sequence[Config], options: FightOptions) -> dict[str, Any]:
    """The keywords of `evaluate` for fights like those of training, but plain, changed by the options.

    Several configs must agree on the kind of fight, or the options say which.
    """
    from soulsgym.errors import MisuseError

    if options.full and options.phase is not None:
        raise MisuseError(f"--full and --phase {options.phase} cannot both be; leave out one")
    if configs and options.boss:
        raise MisuseError(f"--boss {options.boss}: a run plays the boss it was trained on; it is for scripted players")
    plain = {"boss": DEFAULT_BOSS, "variant": STANDARD} | _asked(options)
    asked = [_settings(config, options) for config in configs] or [plain]
    for key, way_out in WAYS_OUT.items():
        values = [settings.get(key) for settings in asked]
        if any(_content(key, settings) != _content(key, asked[0]) for settings in asked[1:]):
            found = " and ".join(map(str, values))
            raise MisuseError(f"these were trained for different fights ({key}: {found}); give {way_out}")
    merged = dict(asked[0])
    if configs:
        merged["step_limit"] = max(settings["step_limit"] for settings in asked)
        merged["random_pose"] = any(settings["random_pose"] for settings in asked)
        merged["no_hit"] = all(settings["no_hit"] for settings in asked)
    return merged


def _content(key: str, settings: dict[str, Any]) -> Any:
    """What two runs must agree on: the value, or what is in the file, of which each run has its own copy."""
    from soulsgym.spec import is_path, load_fight

    value = settings.get(key)
    if key not in ("boss", "variant") or value is None or not (is_path(value) or is_path(settings["boss"])):
        return value
    if value.startswith(DRAWN):
        return value
    return load_fight(settings["boss"], value if key == "variant" else STANDARD)


def _settings(config: Config, options: FightOptions) -> dict[str, Any]:
    fight = config.fight
    own = {
        "boss": fight.boss,
        "variant": fight.main_variant,
        "phase": fight.phase,
        "full": fight.full,
        "step_limit": fight.step_limit,
        "no_hit": fight.no_hit,
    } | _asked(options)
    # Where a single phase was trained from random poses, they are a part of the task; in full fights they are practice.
    return own | {"random_pose": config.starts.random_pose and not fight.full and not own["full"]}


def _asked(options: FightOptions) -> dict[str, Any]:
    asked: dict[str, Any] = {"randomize": options.randomize}
    if options.boss:
        asked["boss"] = options.boss
    if options.variant:
        asked["variant"] = options.variant
    if options.phase is not None:
        asked |= {"phase": options.phase, "full": False}
    if options.full:
        asked |= {"phase": 1, "full": True}
    if options.no_hit is not None:
        asked["no_hit"] = options.no_hit
    return asked


def measured(
    fighter: Fighter,
    fights: int,
    seed: int,
    settings: dict[str, Any],
    title: str,
    game: GameOptions | None = None,
    witness: Witness | None = None,
) -> Evaluation:
    """Play the fights, with a bar on a terminal."""
    from soulsai.evaluation import evaluate

    with bar(title) as progress:
        return evaluate(fighter, fights, seed=seed, progress=progress, game=game, witness=witness, **settings)


@contextmanager
def bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A function that shows how many of how many are done, on standard error and only if that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as shown:
        task = shown.add_task(title, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def warn(text: str) -> None:
    """A warning, beside whatever is printed."""
    typer.echo(f"souls: {text}", err=True)
