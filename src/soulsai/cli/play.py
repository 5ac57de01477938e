"""`souls play`: fight the simulated boss yourself."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer
from rich.console import Console

from soulsai.cli.options import has_screen, warn
from soulsai.cli.tables import make_table
from soulsai.config.schema import DEFAULT_BOSS
from soulsai.runs.fight_files import short_name
from soulsai.runs.files import cannot_write, check_new_file
from soulsgym.envs.simulated import FightSettings
from soulsgym.errors import MisuseError, SoulsError
from soulsgym.packages import require
from soulsgym.spec import STANDARD, load_fight
from soulsgym.spec.practice import practice_phase

if TYPE_CHECKING:
    from soulsai.evaluation.fighter import Fighter
    from soulsgym.play.session import PlaySession
    from soulsgym.spec import FightSpec
    from soulsgym.state import Fights

FOLDER = Path("recordings")
NO_WINDOW = (
    "no window can be opened here, and playing needs one; use a machine with a display, or watch a fight in the "
    "terminal: souls watch player:duellist --terminal"
)
DUELLIST = "duellist"
SLOWEST, FASTEST = 0.05, 4.0


def play(
    boss: Annotated[str, typer.Option(help="Boss: a name, or a boss file (.toml).")] = DEFAULT_BOSS,
    variant: Annotated[str, typer.Option(help="Variant of the boss, such as hard, or an overlay file.")] = STANDARD,
    speed: Annotated[float, typer.Option(help="Speed of the fight; 0.5 is half as fast. F3 changes it.")] = 1.0,
    only: Annotated[str, typer.Option(metavar="ATTACK", help="Practise one attack, such as delayed_thrust.")] = "",
    phase: Annotated[int | None, typer.Option(min=1, help="This phase alone; otherwise the full fight.")] = None,
    agent: Annotated[
        str, typer.Option(metavar="RUN", help="Agent on the duel board; else the newest run of this boss, or zoo:BOSS.")
    ] = "",
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the first fight; a new one if not given.")] = None,
    size: Annotated[str, typer.Option(help="Width and height of the window in pixels.")] = "960x720",
    out: Annotated[
        Path | None,
        typer.Option(help="New file (.npz) for the recording; recordings/play-BOSS-TIME.npz if not given."),
    ] = None,
) -> None:
    """Fight a boss of the simulator yourself, with keyboard or gamepad.

    The window shows the keys. Every fight is recorded: souls watch, souls autopsy and souls fidelity read the file.

    Example: souls play --boss iudex --speed 0.5
    """
    require("pygame")
    if not SLOWEST <= speed <= FASTEST:
        raise MisuseError(f"--speed {speed:g} is not possible; give {SLOWEST:g} to {FASTEST:g}")
    from soulsai.cli.watch import pixels_of

    pixels = pixels_of(size)
    settings = _settings(load_fight(boss, variant), boss, variant, only, phase)
    if not has_screen():
        raise MisuseError(NO_WINDOW)
    file = _file(out, boss)
    typer.echo("getting ready; the first time this takes up to half a minute", err=True)
    _play(settings, time.time_ns() % 2**32 if seed is None else seed, speed, pixels, agent, file)


def _settings(spec: FightSpec, boss: str, variant: str, only: str, phase: int | None) -> FightSettings:
    number = phase or (practice_phase(spec.boss, only) if only else 1)
    return FightSettings(boss, phase=number, changes=phase is None and not only, variant=variant, only=only)


def _file(out: Path | None, boss: str) -> Path:
    """Where the recording goes; asked before anybody plays."""
    if out is None:
        try:
            FOLDER.mkdir(exist_ok=True)
        except OSError as error:
            raise cannot_write(FOLDER, error) from error
        out = FOLDER / f"play-{Path(short_name(boss)).stem}-{time.strftime('%Y%m%d-%H%M%S')}.npz"
    check_new_file(out, "recording", ".npz")
    return out


def _play(settings: FightSettings, seed: int, speed: float, size: tuple[int, int], agent: str, file: Path) -> None:
    from soulsgym.game.keyboard import load_bindings
    from soulsgym.play.session import PlaySession
    from soulsgym.play.window import PlayWindow

    session = PlaySession(settings, seed)
    board = Board(session, _rivals(settings, agent))
    bindings = load_bindings(session.spec.title.id)
    try:
        window = PlayWindow(
            session, bindings, speed=speed, size=size, board=board.rows, ended=lambda: _end(session, file)
        )
    except MisuseError as error:
        raise MisuseError(NO_WINDOW if "no window" in str(error) else str(error)) from error
    try:
        window.run()
    finally:
        window.close()
        session.keep()
        _write(session, file)
        if session.seeds:  # said after Ctrl-C, too
            number = len(session.seeds)
            typer.echo(f"{file}: {number} fight{'s' * (number > 1)}; see it: souls watch {file}")
    if session.seeds:
        head, *rows = board.rows()
        Console().print(make_table(head, rows, "Duel board"))


def _end(session: PlaySession, file: Path) -> str:
    """Write what was played so far; what would have saved the player, if he died."""
    from soulsai.evaluation.autopsy import autopsy

    _write(session, file)
    recording = session.recording()
    try:
        deaths = autopsy([recording.part(len(session.seeds) - 1)]) if recording is not None else []
    except SoulsError as error:
        warn(str(error))
        return ""
    return f"you would have lived: {deaths[0].change.text}" if deaths and deaths[0].change else ""


def _write(session: PlaySession, file: Path) -> None:
    from soulsai.evaluation.thoughts import about_boss, write_fight_file

    recording = session.recording()
    if recording is not None:
        settings = session.settings
        about = {"engine": "sim", "person": True} | about_boss(settings.boss, settings.variant)
        write_fight_file(file, recording, about)


class Board:
    """You, the agent and the duellist in the same fights; the others fight when somebody looks."""

    def __init__(self, session: PlaySession, rivals: dict[str, Callable[[], Fighter]]) -> None:
        self._session, self._rivals = session, rivals
        self._fighters: dict[str, Fighter] = {}
        self._endings: dict[str, list[Fights]] = {}

    def rows(self) -> Sequence[tuple[str, ...]]:
        """The head and a row for each."""
        from soulsai.evaluation.duels import HEAD, duels_of

        rows = [HEAD, duels_of("you", self._session.endings()).row]
        for name in list(self._rivals) if self._session.seeds else ():
            try:
                rows.append(duels_of(name, self._fight(name)).row)
            except SoulsError as error:
                del self._rivals[name]
                warn(f"{name} is not on the duel board: {error}")
        return rows

    def _fight(self, name: str) -> Fights:
        """How somebody's fights ended; those that are new are fought now."""
        from soulsai.evaluation.duels import play_seeds

        if name not in self._fighters:
            self._fighters[name] = self._rivals[name]()
        endings, seeds = self._endings.setdefault(name, []), self._session.seeds
        if new := seeds[sum(map(len, endings)) :]:
            endings.append(play_seeds(self._fighters[name], self._session.settings, new))
        return np.concatenate(endings)


def _rivals(settings: FightSettings, agent: str) -> dict[str, Callable[[], Fighter]]:
    """By name how they are loaded: a policy takes a moment, so not before it is needed."""
    from soulsai.evaluation.fighter import ScriptedFighter
    from soulsai.learning.candidates import load_candidate

    name = agent or _newest_agent(settings.boss)
    rivals: dict[str, Callable[[], Fighter]] = {}
    if name:
        candidate = load_candidate(name, warn=warn) if agent else None  # a wrong name is told before the fight
        rivals[f"agent {Path(name).name}"] = lambda: (candidate or load_candidate(name, warn=warn)).fighter(
            settings.boss
        )
    rivals[DUELLIST] = lambda: ScriptedFighter(DUELLIST, boss=settings.boss)
    return rivals


def _newest_agent(boss: str) -> str:
    """The newest run with a policy for this boss, or the agent that comes with the package, or nothing."""
    from soulsai.config import config_from_toml
    from soulsai.runs.run import Run
    from soulsai.runs.summary import BROKEN, ROOT, ZOO, ZOO_FOLDER, list_runs

    for summary in list_runs(ROOT):
        if summary.state == BROKEN or not summary.has_checkpoint:
            continue
        try:
            config = config_from_toml(Run(summary.folder).config_toml, str(summary.folder))
        except SoulsError:
            continue
        if config.world != "gym" and config.fight.boss == boss:
            return str(summary.folder)
    return f"{ZOO}{boss}" if boss in {folder.name for folder in ZOO_FOLDER.iterdir()} else ""
