"""`souls eval`: how good a policy is, and why it still dies."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Annotated, Any

import typer

from soulsai.cli.in_game import SPEED, GameSpeed, InGame, Launch, Pid, Stepping, game_options
from soulsai.cli.measuring import (
    WHO,
    AsJson,
    Boss,
    FightOptions,
    Fights,
    Full,
    Latest,
    NoHit,
    Phase,
    Randomize,
    Seed,
    Variant,
    bar,
    fight_settings,
    measured,
    warn,
)

if TYPE_CHECKING:
    from pathlib import Path

    from soulsai.evaluation.evaluation import EvaluationSettings
    from soulsai.evaluation.witness import Witness
    from soulsai.learning.contestants import Contestant
    from soulsgym.game.engine import GameOptions


def evaluate_run(
    run: Annotated[str, typer.Argument(metavar="RUN", help=WHO)],
    second: Annotated[str, typer.Argument(metavar="[RUN2]", help="Who takes over in the second phase.")] = "",
    fights: Fights = None,
    seed: Seed = 0,
    boss: Boss = "",
    variant: Variant = "",
    randomize: Randomize = 0.0,
    phase: Phase = None,
    full: Full = False,
    no_hit: NoHit = None,
    latest: Latest = False,
    record: Annotated[
        int, typer.Option(min=0, max=1000, help="Keep the first so many fights in the run's folder, for the viewer.")
    ] = 0,
    in_game: InGame = False,
    game_speed: GameSpeed = SPEED,
    stepping: Stepping = "auto",
    pid: Pid = None,
    launch: Launch = "",
    as_json: AsJson = False,
) -> None:
    """Measure a policy, greedy, in fights it never saw: win rate with interval, times, damage, and why it dies.

    With RUN2, the first policy plays phase 1 and the second the rest. The result is kept in the folder of the (first)
    run. A .pt file holds code that loading runs: give only those that you trust; .onnx files are safe. With --game the
    fights are fought in the running game, one after the other; give fewer of them.

    With --variant drawn:20 every fight counts equally: the win rate is the mean over the files.

    Example: souls eval runs/mine --fights 1000 --variant hard
    """
    from soulsai.learning.contestants import load_contestant

    options = FightOptions(variant, randomize, phase, full, no_hit, boss)
    number = options.fights(fights)
    game = game_options(in_game, game_speed, stepping, pid, launch)
    contestants = [load_contestant(text, latest=latest, warn=warn) for text in (run, second) if text]
    if record and contestants[0].run is None:
        raise typer.BadParameter(f"--record {record}: {run} has no folder to keep fights in; use souls record")
    if len(contestants) == 1 and contestants[0].is_gym:
        only_fights = [*(["--game"] if in_game else []), *(["--record"] if record else [])]
        _evaluate_gym(contestants[0], number, seed, options, only_fights, as_json=as_json)
    else:
        _evaluate_fights(contestants, number, seed, options, game, record=record, as_json=as_json)


def _evaluate_fights(
    contestants: list[Contestant],
    fights: int,
    seed: int,
    options: FightOptions,
    game: GameOptions | None,
    *,
    record: int,
    as_json: bool,
) -> None:
    from soulsai.cli.tables import print_evaluation
    from soulsai.evaluation import PhaseFighters
    from soulsai.evaluation.witness import Witness

    options = _of_two_phases(options) if len(contestants) > 1 else options
    settings = fight_settings([one.config for one in contestants if one.config], options)
    fighters = [one.fighter(settings["boss"]) for one in contestants]
    fighter = fighters[0] if len(fighters) == 1 else PhaseFighters(*fighters)
    names = " and ".join(one.name for one in contestants)
    witness = Witness(record) if record else None
    found = measured(fighter, fights, seed, settings, names, game, witness)
    if as_json:
        typer.echo(found.to_json())
    else:
        print_evaluation(found, title=names)
    file = _keep(contestants[0], _file_name(found.settings, contestants[1:]), found.to_json(), quiet=as_json)
    if witness is not None and file is not None:
        _keep_fights(contestants, witness, file.stem, quiet=as_json)


def _of_two_phases(options: FightOptions) -> FightOptions:
    from dataclasses import replace

    from soulsgym.errors import MisuseError

    if options.phase is not None:
        raise MisuseError(f"two runs are for the full fight, not for phase {options.phase}; leave out --phase or RUN2")
    return replace(options, full=True)


def _evaluate_gym(
    one: Contestant, episodes: int, seed: int, options: FightOptions, only_fights: list[str], *, as_json: bool
) -> None:
    from soulsai.learning.judging import gym_returns
    from soulsgym.errors import MisuseError

    assert one.config is not None
    assert one.policy is not None
    name = one.config.gym.id
    if given := [*options.given(), *only_fights]:
        raise MisuseError(f"{one.name} plays {name}, which is no fight; leave out {', '.join(given)}")
    if episodes < 1:
        raise MisuseError(f"number of episodes {episodes} is not possible; give 1 or more")
    if seed < 0:
        raise MisuseError(f"seed {seed} is negative; give 0 or more")
    with bar(f"{one.name}: {episodes:,} episodes of {name}"):
        returns = gym_returns(one.config, one.policy, episodes, seed)
    content = {"id": name, "seed": seed, **_mean_and_interval(returns), "returns": returns.tolist()}
    typer.echo(json.dumps(content) if as_json else _gym_sentence(one.name, content, episodes))
    _keep(one, "eval", json.dumps(content), quiet=as_json)


def _mean_and_interval(returns: Any) -> dict[str, float | None]:
    """The mean with its 95 % interval, which a single episode does not have."""
    mean = float(returns.mean())
    half = 1.96 * float(returns.std(ddof=1)) / len(returns) ** 0.5 if len(returns) > 1 else None
    return {"mean": mean} | ({"low": None, "high": None} if half is None else {"low": mean - half, "high": mean + half})


def _gym_sentence(name: str, content: dict[str, Any], episodes: int) -> str:
    number = f"{episodes:,} episode{'s' if episodes != 1 else ''}"
    interval = "" if content["low"] is None else f" (95 % interval {content['low']:.1f} to {content['high']:.1f})"
    return f"{name}: mean return {content['mean']:.1f} over {number} of {content['id']}{interval}"


def _keep_fights(contestants: list[Contestant], witness: Witness, name: str, *, quiet: bool) -> None:
    """With what the policy thought, unless two took turns."""
    from soulsai.learning.showing import keep_fight

    one = contestants[0]
    assert one.run is not None
    assert one.config is not None
    policy = one.policy if len(contestants) == 1 else None
    for number in range(len(witness)):
        file = one.run.recordings / f"{name}-{number + 1:04d}.npz"
        keep_fight(file, one.config, policy, witness, witness.fight(number))
    if not quiet:
        typer.echo(f"kept {len(witness)} fights in {one.run.recordings}; see them: souls dashboard {one.run.folder}")


def _keep(one: Contestant, name: str, text: str, *, quiet: bool) -> Path | None:
    """Only a run has a place for results."""
    if one.run is None:
        return None
    from soulsai.learning.session import update_report

    file = one.run.add_evaluation(name, text)
    update_report(one.run)
    if not quiet:
        typer.echo(f"kept as {file}, and in {one.run.report_file}")
    return file


def _file_name(settings: EvaluationSettings, others: list[Contestant]) -> str:
    from soulsai.runs.fight_files import short_name

    parts = ["eval", *(f"with-{one.name}" for one in others)]
    parts += [short_name(settings.variant)] if settings.variant != "standard" else []
    parts += [f"randomize-{settings.randomize:g}"] if settings.randomize else []
    parts += [f"phase-{settings.phase}"] if not settings.full else []
    parts += ["no-hit"] if settings.no_hit else []
    parts += ["game"] if settings.engine == "game" else []
    return re.sub(r"[^A-Za-z0-9_.-]", "_", "-".join(parts))
