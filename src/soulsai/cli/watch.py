"""`souls watch` and `souls record`: see a policy fight, and keep what it did."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import gymnasium
import numpy as np
import typer

import soulsgym  # noqa: F401 (registers the ids)
from soulsai.cli.eval import fight_settings
from soulsai.cli.options import (
    INTERRUPTED,
    RECORDINGS,
    WHO,
    Boss,
    FightOptions,
    Latest,
    OneFight,
    OneVariant,
    TargetFlags,
    bar,
    choose_trained,
    has_screen,
    run_argument,
    warn,
)
from soulsai.cli.train import stop_on_signals
from soulsai.config.schema import DEFAULT_BOSS, Config
from soulsai.evaluation import Fighter, evaluate
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsai.evaluation.fight_screen import show_fight
from soulsai.evaluation.thoughts import (
    FightFile,
    about_boss,
    about_game,
    fight_of,
    read_fight_file,
    spec_of,
    write_fight_file,
)
from soulsai.evaluation.video import OUTCOMES, check_video, ending_of, shares_of_a_step, write_video
from soulsai.learning.candidates import load_candidate
from soulsai.runs.files import check_new_file, write_atomically
from soulsgym.actions import ACTION_CONTROLS, NOTHING
from soulsgym.envs.registry import IN_THE_GAME, MAX_EPISODE_STEPS, SIMULATED
from soulsgym.envs.simulated import FightEnv
from soulsgym.envs.single import BossEnv
from soulsgym.errors import GameError, MisuseError, suggestion
from soulsgym.recordings.exact import simulation_of
from soulsgym.recordings.recording import Recording
from soulsgym.spec import FightSpec, load_fight
from soulsgym.state import Outcome

MOST_PX = 8192
NO_WINDOW = "no window can be opened here; use --terminal, --html fight.html or --video fight.mp4 instead"
DEFAULT_ENV, REHEARSED_ENV = "SoulsGymIudexSimDemo-v0", "SoulsGymIudexDemo-v0"


def watch(
    run: Annotated[
        str | None, run_argument(f"{WHO[:-1]}, or a recording (.npz, .json); the newest run if not given.")
    ] = None,
    video: Annotated[Path | None, typer.Option(help="New file (.mp4 or .gif) instead of a window.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the fight: the first one of `souls eval` with this seed.")] = 0,
    size: Annotated[str, typer.Option(help="Width and height of the picture in pixels.")] = "960x720",
    fps: Annotated[int, typer.Option(help="Frames per second of a window or video: 10 (one a step), 20, ... 60.")] = 10,
    fight: Annotated[int, typer.Option(min=1, help="Which fight of a recording.")] = 1,
    html: Annotated[
        Path | None,
        typer.Option(help="New file (.html) that plays the fight in any browser, with the agent's thoughts."),
    ] = None,
    terminal: Annotated[bool, typer.Option("--terminal", help="Draw the fight in the terminal.")] = False,
    *,
    options: OneFight,
) -> None:
    """Show a fight in a window or in the terminal, or record it. A recording may be of the simulator or of the game.

    Example: souls watch runs/mine --video fight.mp4
    """
    pixels = pixels_of(size)
    ways = [f"--{name}" for name, given in (("video", video), ("html", html), ("terminal", terminal)) if given]
    if len(ways) > 1:
        raise MisuseError(f"use {ways[0]} or {ways[1]}, not both")
    if html is not None:
        check_new_file(html, "page", ".html")
    elif video is not None:
        check_video(video, pixels, fps)
    elif not terminal and not has_screen():
        raise MisuseError(NO_WINDOW)  # SDL would draw where nobody can see it
    run = choose_trained(run)
    if run.endswith(RECORDINGS):
        told, name = _read(run, fight), Path(run).stem
    else:
        told, name = _play(run, seed, options, think=html is not None)
    spec = spec_of(told)
    if html is not None:
        from soulsai.dashboard.scenes import scene_from, shared_page

        write_atomically(html, shared_page(scene_from(told, name)), durably=False)
    elif video is not None:
        with bar(f"writing {video}"):
            write_video(video, told.recording, 0, spec, size=pixels, fps=fps)
    elif terminal:
        show_fight(told.recording, spec)
    else:
        _show_in_window(told.recording, spec, pixels, fps)
    file, ending = html or video, ending_of(told.recording.fights[-1], spec)
    typer.echo(f"{file}: {ending}" if file else ending)


def _read(file: str, number: int) -> FightFile:
    """One fight of a recording, with what is told about it."""
    told = read_fight_file(Path(file))
    bounds = told.recording.bounds()
    if number > len(bounds):
        raise MisuseError(f"--fight {number} is not in {file}, which holds {len(bounds)}; give 1 to {len(bounds)}")
    return fight_of(told, number)


def _play(run: str, seed: int, options: FightOptions, *, think: bool) -> tuple[FightFile, str]:
    """Play a fight to its end, with what the network thought if asked for and if there is one; and who played."""
    one = load_candidate(run, latest=options.latest, warn=warn)
    settings = fight_settings([one.config] if one.config else [], options)
    load_fight(settings["boss"], settings["variant"])  # one file, not twenty drawn ones
    recorder = FightRecorder(1)
    with bar(f"{one.name} plays") as progress:
        evaluate(one.fighter(settings["boss"]), 1, seed=seed, recorder=recorder, progress=progress, **settings)
    recording = recorder.fight(0)
    about: dict[str, Any] = {"run": one.name, "seed": seed, "engine": "sim"}
    about |= about_boss(settings["boss"], settings["variant"])
    if one.run is not None:
        about["step"] = one.run.status().step
    if think and one.config is not None:
        from soulsai.acting.policy import NetworkPolicy
        from soulsai.learning.thinking import think as think_through
        from soulsai.learning.wiring import against

        if isinstance(one.policy, NetworkPolicy):
            about |= {"algorithm": one.config.algorithm, "encoder": one.config.encoder.name}
            config = against(one.config, settings["boss"])
            return FightFile(recording, about, think_through(config, one.policy, recording)), one.name
    return FightFile(recording, about, None, "its player has no network to inspect"), one.name


def _show_in_window(recording: Recording, spec: FightSpec, size: tuple[int, int], fps: int) -> None:
    from soulsgym.render import FightRenderer

    shares = shares_of_a_step(fps)
    renderer = FightRenderer(spec, size, fps=fps)
    try:
        renderer.show(recording.fights[0])
    except MisuseError as error:
        raise MisuseError(NO_WINDOW) from error
    for record, action in zip(recording.fights[1:], recording.actions[1:], strict=True):
        for share in shares:
            renderer.show(record, ACTION_CONTROLS[action], share)
    renderer.close()


def pixels_of(size: str) -> tuple[int, int]:
    """The width and height that an option says."""
    found = re.fullmatch(r"(\d{1,9})x(\d{1,9})", size.strip().lower())
    if found is None:
        raise MisuseError(f"--size {size!r}: give width x height in pixels, such as 960x720")
    if max(int(found[1]), int(found[2])) > MOST_PX:
        raise MisuseError(f"--size {size}: too large; the maximum is {MOST_PX}x{MOST_PX}")
    return int(found[1]), int(found[2])


def record(
    who: Annotated[str, run_argument(WHO, "WHO")] = "player:duellist",
    env: Annotated[str, typer.Option(help="Environment id, such as SoulsGymIudex-v0.")] = DEFAULT_ENV,
    out: Annotated[Path, typer.Option(help="New file, .npz.")] = Path("fights.npz"),
    fights: Annotated[int, typer.Option(min=1, help="Fights to record.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first simulated fight; the game has none.")] = 0,
    boss: Boss = "",
    variant: OneVariant = "",
    phase: Annotated[int, typer.Option(min=1, help="Phase to fight, where the environment has it.")] = 1,
    latest: Latest = False,
    human: Annotated[
        bool, typer.Option("--human", help="Record a person playing the game; memory is only read.")
    ] = False,
    *,
    flags: TargetFlags,
) -> None:
    """Record fights step by step in a file.

    The file holds the state and the action of every step, for the simulator and for the game alike; souls watch shows
    it, and souls fidelity compares the two. Ctrl-C stops and keeps what was played.

    Example: souls record runs/mine --env SoulsGymIudex-v0 --fights 20 --out gundyr.npz
    """
    check_new_file(out, "recording", ".npz")
    if human:
        _record_person(out, env, boss, fights, flags)
        return
    if flags.rehearse and env == DEFAULT_ENV:
        env = REHEARSED_ENV
    one = load_candidate(who, latest=latest, warn=warn)
    names = _boss_and_variant(one.config, env, boss, variant)
    made = _make_env(env, phase, names, flags)
    own = names.get("boss") or IN_THE_GAME[env][1]["boss"]
    try:
        fighter = one.fighter(own)
        with stop_on_signals(warn, "saving the recording") as stop, bar(f"{who} in {env}") as progress:
            recording = record_fights(made, fighter, fights, seed, progress, stop)
    finally:
        made.close()
    about = {"engine": "sim"} | about_boss(own, names["variant"]) if names else about_game(own)
    write_fight_file(out, recording, about)
    played = len(recording.bounds())
    typer.echo(f"{out}: {played} fight{'s' if played > 1 else ''}, {len(recording):,} records, {_ends(recording)}")
    if stop() or played < fights:
        raise typer.Exit(INTERRUPTED if stop() else 1)


def _record_person(out: Path, env: str, boss: str, fights: int, flags: TargetFlags) -> None:
    """Watch a person play; Ctrl-C ends and keeps what was seen."""
    from soulsgym.recordings.person import record_person

    if not boss:
        env = REHEARSED_ENV if env == DEFAULT_ENV else env
        if env not in IN_THE_GAME:
            raise MisuseError(f"--human needs the running game, but {env} is of the simulator; leave out --env")
        boss = IN_THE_GAME[env][1]["boss"]
    plan = load_fight(boss, moves=False).watch
    typer.echo(f"play now: a fight with {plan.name} is recorded from its first hit on; Ctrl-C stops and saves")
    with stop_on_signals(typer.echo, "saving the recording") as stop:
        recording = record_person(plan, fights, pid=flags.pid, stop=stop, say=typer.echo)
    if recording is None:
        raise MisuseError(
            f"no fight with {plan.name} was seen, so nothing was written; start the fight while this command runs"
        )
    write_fight_file(out, recording, about_game(boss) | {"person": True})
    typer.echo(f"{out}: {len(recording.bounds())} fights, {len(recording):,} records, {_ends(recording)}")


def _boss_and_variant(config: Config | None, env: str, boss: str, variant: str) -> dict[str, str]:
    """The keywords of a simulated environment that say whom to fight; none for the game, which has its own boss."""
    if env not in SIMULATED:
        if boss or variant:
            raise MisuseError(f"{env} has its own boss; leave out --boss and --variant, or record in the simulator")
        return {}
    own = SIMULATED[env].get("boss", DEFAULT_BOSS)
    options = FightOptions(variant=variant, boss=boss or ("" if config and own not in config.fight.bosses else own))
    settings = fight_settings([config] if config else [], options)
    return {"boss": settings["boss"], "variant": settings["variant"]}


def _make_env(env: str, phase: int, names: dict[str, str], flags: TargetFlags) -> BossEnv:
    known = (*SIMULATED, *IN_THE_GAME)
    if env not in known:
        raise MisuseError(f"environment {env!r} is not one that can be recorded{suggestion(env, known)}")
    if flags.rehearse and env not in IN_THE_GAME:
        raise MisuseError(f"--rehearse replaces the game, but {env} is of the simulator; leave out --env")
    flags.target(env in IN_THE_GAME, "an environment of the game")
    keywords: dict[str, Any] = names | ({"phase": phase} if phase != 1 else {})
    if flags.rehearse:
        keywords |= {"rehearse": flags.rehearse, "pace": flags.pace}
    elif env in IN_THE_GAME:
        keywords |= {"game_speed": flags.game_speed, "stepping": flags.stepping, "pid": flags.pid}
        keywords |= {"launch": flags.launch or None, "display": flags.display, "rehearse": ""}
    if phase != 1 and "Demo" in env:
        raise MisuseError(f"{env} is the full fight; leave out --phase {phase}, or record the training fight")
    made = gymnasium.make(env, disable_env_checker=True, **keywords).unwrapped
    assert isinstance(made, BossEnv)
    return made


def record_fights(
    env: BossEnv,
    fighter: Fighter,
    fights: int,
    seed: int,
    progress: Any = None,
    stop: Callable[[], bool] = lambda: False,
) -> Recording:
    """Play the fights to their ends, or to the limit of steps; those of the simulator come with what repeats them.

    If `stop` says so, or the game fails, what was played until then is kept; an error if that is nothing.
    """
    records, actions, episodes = [], [], []
    everyone = np.ones(1, np.bool_)
    try:
        for number in range(fights):
            if stop():
                break
            env.reset(seed=seed + number)
            fighter.begin(env.fight, everyone)
            action, over, steps = NOTHING, False, 0
            while True:
                records.append(env.fight)
                actions.append(action)
                episodes.append(number)
                if over or steps == MAX_EPISODE_STEPS or stop():
                    break
                action = int(fighter.act(env.fight)[0])
                _, _, terminated, truncated, _ = env.step(action)
                over, steps = terminated or truncated, steps + 1
            if progress:
                progress(number + 1, fights)
    except GameError as error:
        if len(records) < 2:
            raise
        warn(f"{error}; what was recorded until then is kept")
    if len(records) < 2:
        raise MisuseError("stopped before the first step, so nothing was written")
    seeds = range(seed, seed + episodes[-1] + 1)
    return Recording(
        np.concatenate(records),
        np.array(actions, np.int64),
        np.array(episodes, np.int64),
        simulation=simulation_of(env.settings, seeds) if isinstance(env, FightEnv) else None,
    )


def _ends(recording: Recording) -> str:
    ends = []
    for low, high in recording.bounds():
        outcome = Outcome(int(recording.fights["outcome"][high - 1]))
        is_cut = outcome is Outcome.RUNNING and high - low <= MAX_EPISODE_STEPS
        ends.append("unfinished" if is_cut else OUTCOMES[outcome])
    return ", ".join(f"{ends.count(name)} {name}" for name in sorted(set(ends)))
