"""`souls record`: fights to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from soulsai.cli.in_game import SPEED, GameSpeed, Launch, Pid, Stepping, game_options
from soulsai.cli.measuring import WHO, Boss, Latest, OneVariant, bar, warn
from soulsai.config.schema import DEFAULT_BOSS

if TYPE_CHECKING:
    from soulsai.config.schema import Config
    from soulsai.evaluation.fighter import Fighter
    from soulsgym.envs.single import BossEnv
    from soulsgym.recordings.recording import Recording

DEFAULT_ENV = "SoulsGymIudexSimDemo-v0"


def record(
    who: Annotated[str, typer.Argument(metavar="[WHO]", help=WHO)] = "player:duellist",
    env: Annotated[str, typer.Option(help="Environment id, such as SoulsGymIudex-v0.")] = DEFAULT_ENV,
    out: Annotated[Path, typer.Option(help="New file, .npz.")] = Path("fights.npz"),
    fights: Annotated[int, typer.Option(min=1, help="Fights to record.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the first simulated fight; a game has none.")] = 0,
    boss: Boss = "",
    variant: OneVariant = "",
    phase: Annotated[int, typer.Option(min=1, help="Phase to fight, where the environment has it.")] = 1,
    latest: Latest = False,
    game_speed: GameSpeed = SPEED,
    stepping: Stepping = "auto",
    pid: Pid = None,
    launch: Launch = "",
) -> None:
    """Record fights step by step: every record of the fight, and the action that led to it.

    The file is the same for the simulator and for the game; souls fidelity compares one with the other, and souls watch
    shows it.

    Example: souls record runs/mine --env SoulsGymIudex-v0 --fights 20 --out gundyr.npz
    """
    from soulsai.errors import RunError
    from soulsai.evaluation.thoughts import about_boss, write_told
    from soulsai.learning.contestants import load_contestant
    from soulsgym.envs.registry import IN_THE_GAME

    if out.exists():
        raise RunError(f"recording {out} exists; give another name with --out or delete it")
    if not out.parent.is_dir():
        raise RunError(f"folder {out.parent} of the recording is not there; make it or give another name")
    one = load_contestant(who, latest=latest, warn=warn)
    names = _boss_and_variant(one.config, env, boss, variant)
    made = _made(env, phase, names, game_speed, stepping, pid, launch)
    try:
        fighter = one.fighter(names.get("boss") or IN_THE_GAME[env][1]["boss"])
        with bar(f"{who} in {env}") as progress:
            recording = recorded(made, fighter, fights, seed, progress)
    finally:
        made.close()
    engine = {"engine": "sim" if names else "game"}
    write_told(out, recording, engine | (about_boss(names["boss"], names["variant"]) if names else {}))
    typer.echo(f"{out}: {fights} fight{'s' if fights > 1 else ''}, {len(recording):,} records, {_ends(recording)}")


def _boss_and_variant(config: Config | None, env: str, boss: str, variant: str) -> dict[str, str]:
    """The keywords of a simulated environment that say whom to fight; none for the game, which has its own boss."""
    from soulsai.cli.measuring import FightOptions, fight_settings
    from soulsgym.envs.registry import SIMULATED
    from soulsgym.errors import MisuseError

    if env not in SIMULATED:
        if boss or variant:
            raise MisuseError(f"{env} has its own boss; leave out --boss and --variant, or record in the simulator")
        return {}
    options = FightOptions(variant, boss=boss or ("" if config else SIMULATED[env].get("boss", DEFAULT_BOSS)))
    settings = fight_settings([config] if config else [], options)
    return {"boss": settings["boss"], "variant": settings["variant"]}


def _made(
    env: str, phase: int, names: dict[str, str], speed: float, stepping: str, pid: int | None, launch: str
) -> BossEnv:
    import gymnasium

    import soulsgym  # noqa: F401 (registers the ids)
    from soulsgym.envs.registry import IN_THE_GAME, SIMULATED
    from soulsgym.envs.single import BossEnv
    from soulsgym.errors import MisuseError, suggestion

    known = (*SIMULATED, *IN_THE_GAME)
    if env not in known:
        raise MisuseError(f"environment {env!r} is not one that can be recorded{suggestion(env, known)}")
    game = game_options(env in IN_THE_GAME, speed, stepping, pid, launch, flag="an environment of the game")
    keywords: dict[str, Any] = names | ({"phase": phase} if phase != 1 else {})
    if game:
        keywords |= {"game_speed": game.speed, "stepping": game.stepping, "pid": game.pid, "launch": game.launch}
    if phase != 1 and "Demo" in env:
        raise MisuseError(f"{env} is the full fight; leave out --phase {phase}, or record the training fight")
    made = gymnasium.make(env, disable_env_checker=True, **keywords).unwrapped
    assert isinstance(made, BossEnv)
    return made


def recorded(env: BossEnv, fighter: Fighter, fights: int, seed: int, progress: Any = None) -> Recording:
    """Play the fights to their ends, or to the limit of steps; those of the simulator come with what repeats them."""
    import numpy as np

    from soulsgym.actions import NOTHING
    from soulsgym.envs.registry import MAX_EPISODE_STEPS
    from soulsgym.envs.simulated import FightEnv
    from soulsgym.recordings.exact import simulation_of
    from soulsgym.recordings.recording import Recording

    records, actions, episodes = [], [], []
    everyone = np.ones(1, np.bool_)
    for number in range(fights):
        env.reset(seed=seed + number)
        fighter.begin(env.fight, everyone)
        action, over, steps = NOTHING, False, 0
        while True:
            records.append(env.fight)
            actions.append(action)
            episodes.append(number)
            if over or steps == MAX_EPISODE_STEPS:
                break
            action = int(fighter.act(env.fight)[0])
            _, _, terminated, truncated, _ = env.step(action)
            over, steps = terminated or truncated, steps + 1
        if progress:
            progress(number + 1, fights)
    seeds = range(seed, seed + fights)
    return Recording(
        np.concatenate(records),
        np.array(actions, np.int64),
        np.array(episodes, np.int64),
        simulation=simulation_of(env.settings, seeds) if isinstance(env, FightEnv) else None,
    )


def _ends(recording: Recording) -> str:
    from soulsai.evaluation.video import OUTCOMES
    from soulsgym.state import Outcome

    ends = [OUTCOMES[Outcome(int(recording.fights["outcome"][high - 1]))] for _, high in recording.bounds()]
    return ", ".join(f"{ends.count(name)} {name}" for name in sorted(set(ends)))
