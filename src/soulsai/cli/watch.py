"""`souls watch`: see a policy fight."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from soulsai.cli.measuring import (
    WHO,
    Boss,
    FightOptions,
    Full,
    Latest,
    NoHit,
    OneVariant,
    Phase,
    Randomize,
    bar,
    fight_settings,
    warn,
)

if TYPE_CHECKING:
    from soulsai.evaluation.fighter import Fighter
    from soulsai.evaluation.thoughts import Told
    from soulsai.learning.contestants import Contestant

SCREENS = ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER")
"""One of these tells programs on Linux where to open windows."""
RECORDINGS = (".npz", ".json")


def watch(
    run: Annotated[str, typer.Argument(metavar="RUN", help=f"{WHO[:-1]}; or a recording (.npz, .json).")],
    video: Annotated[Path | None, typer.Option(help="New file (.mp4 or .gif) instead of a window.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the fight: the first one of `souls eval` with this seed.")] = 0,
    boss: Boss = "",
    variant: OneVariant = "",
    randomize: Randomize = 0.0,
    phase: Phase = None,
    full: Full = False,
    no_hit: NoHit = None,
    latest: Latest = False,
    size: Annotated[str, typer.Option(help="Width and height of the picture in pixels.")] = "960x720",
    fps: Annotated[int, typer.Option(help="Pictures a second of a window or video: 10 (one a step), 20, ... 60.")] = 10,
    fight: Annotated[int, typer.Option(min=1, help="Which fight of a recording.")] = 1,
    html: Annotated[
        Path | None, typer.Option(help="New file (.html) that plays the fight in any browser, with what it thinks.")
    ] = None,
    terminal: Annotated[bool, typer.Option("--terminal", help="Draw the fight in the terminal.")] = False,
) -> None:
    """Show a fight in a window or in the terminal, or record it. A recording may be of the simulator or of the game.

    Example: souls watch runs/mine --video fight.mp4
    """
    pixels = _pixels(size)
    _refuse_two_ways(video=video is not None, html=html is not None, terminal=terminal)
    if html is not None:
        _refuse_page(html)
    if run.endswith(RECORDINGS):
        if html is not None or terminal:
            typer.echo(_told_again(_read(run, fight), Path(run).stem, html))
        else:
            typer.echo(_replayed(run, fight, video, pixels, fps))
        return
    from soulsai.learning.contestants import load_contestant
    from soulsgym.spec import load_fight

    one = load_contestant(run, latest=latest, warn=warn)
    options = FightOptions(variant, randomize, phase, full, no_hit, boss)
    settings = fight_settings([one.config] if one.config else [], options)
    load_fight(settings["boss"], settings["variant"])  # one file, not twenty drawn ones
    fighter = one.fighter(settings["boss"])
    if html is not None or terminal:
        typer.echo(_told_again(_played(one, fighter, seed, settings), one.name, html))
        return
    if video is None:
        typer.echo(_shown(fighter, seed, settings, pixels, fps))
        return
    from soulsai.evaluation.video import record_video

    with bar(f"recording {video}"):
        summary = record_video(video, fighter, seed=seed, size=pixels, fps=fps, **settings)
    typer.echo(summary.sentence)


def _replayed(file: str, number: int, video: Path | None, size: tuple[int, int], fps: int) -> str:
    """Show a recorded fight; how it ended."""
    from soulsai.evaluation.thoughts import read_told, spec_of
    from soulsai.evaluation.video import shares_of_a_step, write_video
    from soulsgym.actions import ACTION_CONTROLS
    from soulsgym.errors import MisuseError
    from soulsgym.render import FightRenderer

    told = read_told(Path(file))
    recording, spec = told.recording, spec_of(told)
    bounds = recording.bounds()
    if number > len(bounds):
        raise MisuseError(f"--fight {number} is not in {file}, which holds {len(bounds)}; give 1 to {len(bounds)}")
    if video is not None:
        with bar(f"writing {video}"):
            return write_video(video, recording, number - 1, spec, size=size, fps=fps).sentence
    low, high = bounds[number - 1]
    shares = shares_of_a_step(fps)
    renderer = FightRenderer(spec, size, fps=fps)
    _open_window(renderer, recording.fights[low])
    for record, action in zip(recording.fights[low + 1 : high], recording.actions[low + 1 : high], strict=True):
        for share in shares:
            renderer.show(record, ACTION_CONTROLS[action], share)
    renderer.close()
    return _ending(recording.fights[high - 1])


def _refuse_two_ways(**ways: bool) -> None:
    from soulsgym.errors import MisuseError

    given = [f"--{name}" for name, is_given in ways.items() if is_given]
    if len(given) > 1:
        raise MisuseError(f"{given[0]} and {given[1]} cannot both be; leave out one")


def _refuse_page(page: Path) -> None:
    from soulsai.errors import RunError
    from soulsgym.errors import MisuseError

    if page.suffix.lower() != ".html":
        raise MisuseError(f"page {page} ends in {page.suffix!r}; give a name that ends in .html")
    if page.exists():
        raise RunError(f"page {page} exists; give another name or delete it")
    if not page.parent.is_dir():
        raise RunError(f"folder {page.parent} of the page is not there; make it or give another name")


def _read(file: str, number: int) -> Told:
    """One fight of a recording, with what is told about it."""
    from soulsai.evaluation.thoughts import fight_of, read_told
    from soulsgym.errors import MisuseError

    told = read_told(Path(file))
    bounds = told.recording.bounds()
    if number > len(bounds):
        raise MisuseError(f"--fight {number} is not in {file}, which holds {len(bounds)}; give 1 to {len(bounds)}")
    return fight_of(told, number)


def _played(one: Contestant, fighter: Fighter, seed: int, settings: dict[str, Any]) -> Told:
    """Play the fight to its end, and think it through where there is a network to look into."""
    from soulsai.evaluation.evaluate import evaluate
    from soulsai.evaluation.thoughts import Told, about_boss
    from soulsai.evaluation.witness import Witness

    witness = Witness(1)
    evaluate(fighter, 1, seed=seed, witness=witness, **settings)
    seen = witness.fight(0)
    about: dict[str, Any] = {"run": one.name, "seed": seed, "engine": "sim"}
    about |= about_boss(settings["boss"], settings["variant"])
    if one.run is not None:
        about["step"] = one.run.status().step
    no_network = Told(seen.recording, about, None, "its player has no network that could be looked into")
    if one.config is None:
        return no_network
    from soulsai.acting.policy import NetworkPolicy
    from soulsai.evaluation.thinking import think

    if not isinstance(one.policy, NetworkPolicy):
        return no_network
    about |= {"algorithm": one.config.algorithm, "encoder": one.config.encoder.name}
    return Told(seen.recording, about, think(one.config, one.policy, seen.recording))


def _told_again(told: Told, name: str, page: Path | None) -> str:
    """Show a fight in the terminal, or write it as a page; how it ended."""
    ending = _ending(told.recording.fights[-1])
    if page is not None:
        from soulsai.dashboard.scenes import scene_from, shared_page
        from soulsai.runs.files import write_atomically

        write_atomically(page, shared_page(scene_from(told, name)), durably=False)
        return f"{page}: {ending}"
    from soulsai.cli.fight_screen import show_fight
    from soulsai.evaluation.thoughts import spec_of

    show_fight(told.recording, spec_of(told))
    return ending


def _pixels(size: str) -> tuple[int, int]:
    from soulsgym.errors import MisuseError

    found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", size.strip().lower())
    if found is None:
        raise MisuseError(f"--size {size!r} is no size; give width x height in pixels, such as 960x720")
    return int(found[1]), int(found[2])


def _shown(fighter: Fighter, seed: int, settings: dict[str, Any], size: tuple[int, int], fps: int) -> str:
    """Play a fight in a window; how it ended."""
    from soulsai.evaluation.evaluate import STEP_LIMIT, begin_fights, played_steps
    from soulsai.evaluation.evaluation import EvaluationSettings
    from soulsai.evaluation.video import shares_of_a_step
    from soulsgym.render import FightRenderer
    from soulsgym.sim.engine import SimEngine
    from soulsgym.spec import load_fight

    standard: dict[str, Any] = {
        "phase": 1, "full": True, "random_pose": False, "step_limit": STEP_LIMIT, "no_hit": False,
    }  # fmt: skip
    fight = EvaluationSettings(**(standard | settings), seed=seed, fights=1)
    spec = load_fight(fight.boss, fight.variant)
    engine = SimEngine(spec, 1, phase=fight.phase, changes=fight.full, randomize=fight.randomize)
    shares = shares_of_a_step(fps)
    renderer = FightRenderer(spec, size, fps=fps)
    begin_fights(engine, fight, 0, 1)
    _open_window(renderer, engine.fights[0])
    for _, controls, _ in played_steps(engine, fighter, fight):
        for share in shares:
            renderer.show(engine.fights[0], controls[0], share)
    renderer.close()
    return _ending(engine.fights[0])


def _open_window(renderer: Any, fight: Any) -> None:
    from soulsgym.errors import MisuseError

    way_out = MisuseError("no window can be opened here; record the fight instead, with --video fight.mp4")
    if sys.platform.startswith("linux") and not any(os.environ.get(name) for name in SCREENS):
        raise way_out  # SDL would draw where nobody can see it
    try:
        renderer.show(fight)
    except MisuseError as error:
        raise way_out from error


def _ending(fight: Any) -> str:
    from soulsai.evaluation.video import OUTCOMES
    from soulsgym.state import Outcome

    player, boss = fight["player_hp"][0] / fight["player_max_hp"], fight["boss_hp"][0] / fight["boss_max_hp"]
    left = f"player {100 * player:.0f} %, boss {100 * boss:.0f} % of their health left"
    return f"{OUTCOMES[Outcome(int(fight['outcome']))]} after {fight['time_s']:.1f} s, {left}."
