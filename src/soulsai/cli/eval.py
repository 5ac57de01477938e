"""`souls eval`, `compare` and `export`: how good a policy is, whether it is better, and a file of it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from soulsai.cli.options import (
    WHO,
    AsJson,
    FightOptions,
    Fights,
    InGame,
    Latest,
    Seed,
    TargetFlags,
    bar,
    choose_trained,
    print_json,
    run_argument,
    warn,
)
from soulsai.cli.tables import print_evaluation
from soulsai.config.schema import DEFAULT_BOSS, DRAWN, STANDARD, Config
from soulsai.evaluation import Evaluation, EvaluationSettings, Fighter, PhaseFighters, compare, evaluate
from soulsai.evaluation.fight_recorder import FightRecorder
from soulsai.learning.candidates import Candidate, load_candidate
from soulsai.runs.fight_files import short_name
from soulsai.runs.summary import open_trained
from soulsgym.errors import MisuseError
from soulsgym.spec import is_path, load_fight

if TYPE_CHECKING:
    from soulsgym.target import TargetOptions

WAYS_OUT = {
    "boss": "--boss or runs of one boss",
    "variant": "--variant",
    "phase": "--phase or --full",
    "full": "--phase or --full",
}
"""What to give when two runs were trained for fights that differ in something."""


def evaluate_run(
    run: Annotated[str | None, run_argument(f"{WHO[:-1]}; the newest run if not given.")] = None,
    second: Annotated[str | None, run_argument("Who takes over in the second phase.", "RUN2")] = None,
    fights: Fights = None,
    seed: Seed = 0,
    record: Annotated[
        int,
        typer.Option(min=0, max=1000, help="Save the first N fights in the run's folder, for the viewer.", metavar="N"),
    ] = 0,
    in_game: InGame = False,
    as_json: AsJson = False,
    *,
    options: FightOptions,
    flags: TargetFlags,
) -> None:
    """Measure a policy: win rate, times, damage, causes of death.

    It plays greedily, in fights it has never seen.

    With RUN2, the first policy plays phase 1 and the second the rest. The result is kept in the folder of the (first)
    run. Loading a .pt file runs the code inside it: use only files that you trust; .onnx files are safe. With --game
    the fights are played in the running game, one after the other; ask for fewer.

    With --variant drawn:20 every fight counts equally: the win rate is the mean over the files. A run of several bosses
    fights each of them, or the one of --boss; with --json there is a line for each.

    Example: souls eval runs/mine --fights 1000 --variant hard
    """
    number = options.number(fights)
    game = flags.target(in_game)
    names = [choose_trained(run), *([second] if second else [])]
    candidates = [load_candidate(name, latest=options.latest, warn=warn) for name in names]
    if record and candidates[0].run is None:
        raise typer.BadParameter(f"--record {record}: {names[0]} has no folder to keep fights in; use souls record")
    if len(candidates) == 1 and candidates[0].is_gym:
        only_fights = [*options.flags(), *(["--game"] if in_game else []), *(["--record"] if record else [])]
        _evaluate_gym(candidates[0], number, seed, only_fights, as_json=as_json)
    else:
        _evaluate_fights(candidates, number, seed, options, game, record=record, as_json=as_json)


def _evaluate_fights(
    candidates: list[Candidate],
    fights: int,
    seed: int,
    options: FightOptions,
    game: TargetOptions | None,
    *,
    record: int,
    as_json: bool,
) -> None:
    if len(candidates) > 1:
        if options.phase is not None:
            way_out = "leave out --phase or RUN2"
            raise MisuseError(f"two runs are for the full fight, not for phase {options.phase}; {way_out}")
        options = replace(options, full=True)
    configs = [one.config for one in candidates if one.config]
    bosses = configs[0].fight.bosses if configs and not options.boss else ()
    for boss in bosses or [options.boss]:
        against = replace(options, boss=boss)
        _evaluate_against(candidates, fights, seed, against, game, several=bool(bosses), record=record, as_json=as_json)


def _evaluate_against(
    candidates: list[Candidate],
    fights: int,
    seed: int,
    options: FightOptions,
    game: TargetOptions | None,
    *,
    several: bool,
    record: int,
    as_json: bool,
) -> None:
    settings = fight_settings([one.config for one in candidates if one.config], options)
    fighters = [one.fighter(settings["boss"]) for one in candidates]
    fighter = fighters[0] if len(fighters) == 1 else PhaseFighters(*fighters)
    names = " and ".join(one.name for one in candidates) + (f" against {settings['boss']}" if several else "")
    recorder = FightRecorder(record) if record else None
    found = measure(fighter, fights, seed, settings, names, game=game, recorder=recorder)
    found = replace(found, players=tuple(one.name for one in candidates))
    if as_json:
        typer.echo(found.to_json())
    else:
        print_evaluation(found, title=names)
    file = _keep(candidates[0], _file_name(found.settings, candidates), found.to_json(), quiet=as_json)
    if recorder is not None and file is not None:
        _keep_fights(candidates, recorder, file.stem, quiet=as_json)


def _evaluate_gym(one: Candidate, episodes: int, seed: int, only_fights: list[str], *, as_json: bool) -> None:
    from soulsai.learning.scoring import gym_returns

    assert one.config is not None
    assert one.policy is not None
    name = one.config.gym.id
    if only_fights:
        raise MisuseError(f"{one.name} plays {name}, which is not a fight; leave out {', '.join(only_fights)}")
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


def _keep_fights(candidates: list[Candidate], recorder: FightRecorder, name: str, *, quiet: bool) -> None:
    """With what the policy thought, unless two took turns."""
    from soulsai.learning.showing import keep_fight
    from soulsai.learning.wiring import against

    one = candidates[0]
    assert one.run is not None
    assert one.config is not None
    policy = one.policy if len(candidates) == 1 else None
    config = against(one.config, recorder.settings.boss) if recorder.settings else one.config
    for number in range(len(recorder)):
        file = one.run.recordings / f"{name}-{number + 1:04d}.npz"
        keep_fight(file, config, policy, recorder, number)
    if not quiet:
        typer.echo(f"kept {len(recorder)} fights in {one.run.recordings}; see them: souls dashboard {one.run.folder}")


def _keep(one: Candidate, name: str, text: str, *, quiet: bool) -> Path | None:
    """Only a run has a place for results."""
    if one.run is None:
        return None
    from soulsai.learning.session import update_report

    file = one.run.add_evaluation(name, text)
    update_report(one.run)
    if not quiet:
        typer.echo(f"kept as {file}, and in {one.run.report_file}")
    return file


def _file_name(settings: EvaluationSettings, candidates: list[Candidate]) -> str:
    parts = ["eval", *(f"with-{one.name}" for one in candidates[1:])]
    config = candidates[0].config
    parts += [settings.boss] if config and config.fight.bosses else []
    parts += [short_name(settings.variant)] if settings.variant != "standard" else []
    parts += [f"randomize-{settings.randomize:g}"] if settings.randomize else []
    parts += [f"phase-{settings.phase}"] if not settings.full else []
    parts += ["no-hit"] if settings.no_hit else []
    parts += [settings.engine] if settings.engine != "sim" else []
    return re.sub(r"[^A-Za-z0-9_.-]", "_", "-".join(parts))


def compare_runs(
    a: Annotated[str, run_argument(WHO, "A")],
    b: Annotated[str, run_argument("The other one.", "B")],
    fights: Fights = None,
    seed: Seed = 0,
    as_json: AsJson = False,
    *,
    options: FightOptions,
) -> None:
    """Test whether one policy is better than another.

    Both fight the same fights. Nothing is kept.

    Example: souls compare runs/mine player:duellist
    """
    both = [load_candidate(text, latest=options.latest, warn=warn) for text in (a, b)]
    settings = fight_settings([one.config for one in both if one.config], options)
    fighters = [one.fighter(settings["boss"]) for one in both]
    same = both[0].name == both[1].name
    names = tuple(f"{one.name} ({letter})" if same else one.name for one, letter in zip(both, "AB", strict=True))
    found = [measure(fighters[i], options.number(fights), seed, settings, names[i]) for i in (0, 1)]
    comparison = compare(found[0], found[1], names=(names[0], names[1]))
    if as_json:
        verdict = {"sentence": comparison.sentence, "is_real": comparison.is_real, "difference": comparison.difference}
        sides = {key: {"name": name, **one.summary()} for key, name, one in zip("ab", names, found, strict=True)}
        print_json({"settings": asdict(found[0].settings), **asdict(comparison), **verdict, **sides})
        return
    for name, evaluation in zip(names, found, strict=True):
        typer.echo(f"{name} {evaluation.headline}")
    typer.echo(comparison.sentence)


def export(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[RUN] FILE",
            help="Folder or name of a run or zoo:NAME, the newest run if not given, and a new file: .onnx, or .pt "
            "(TorchScript).",
        ),
    ],
    latest: Latest = False,
) -> None:
    """Write the policy of a run to an ONNX or TorchScript file.

    The names of its inputs and actions and its config are inside. Inputs are `observation` (rows x numbers, float32)
    and `mask` (rows x actions, true where open); outputs are `action` and `scores`. Prefer ONNX: it plays
    without torch, and loading a TorchScript file runs the code inside it.

    Example: souls export runs/mine gundyr.onnx
    """
    from soulsai.acting.exported import SUFFIXES, export_policy
    from soulsai.algorithms.algorithm import algorithm_of
    from soulsai.learning.loading import load_networks, names_of
    from soulsai.runs.files import check_new_file

    if len(words) > 2:
        raise typer.BadParameter(f"give a run and a file, not {len(words)} words")
    run, file = words[0] if len(words) > 1 else None, Path(words[-1])
    check_new_file(file, "policy", *SUFFIXES)
    config, networks = load_networks(open_trained(choose_trained(run)), latest=latest, warn=warn)
    algorithm_of(config).policy(networks)  # without their noise
    observations, actions = names_of(config)
    export_policy(networks, config, file, observation_names=observations, action_names=actions)
    typer.echo(f"{file}: {len(observations)} numbers in, {len(actions)} actions out; try `souls eval {file}`")


def fight_settings(configs: Sequence[Config], options: FightOptions) -> dict[str, Any]:
    """The keywords of `evaluate` for fights like those of training, but plain, changed by the options.

    Several configs must agree on the kind of fight, or the options say which.
    """
    if options.full and options.phase is not None:
        raise MisuseError(f"use --full or --phase {options.phase}, not both")
    plain = {"boss": DEFAULT_BOSS, "variant": STANDARD} | _chosen_settings(options)
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
    value = settings.get(key)
    if key not in ("boss", "variant") or value is None or not (is_path(value) or is_path(settings["boss"])):
        return value
    if value.startswith(DRAWN):
        return value
    return load_fight(settings["boss"], value if key == "variant" else STANDARD)


def _settings(config: Config, options: FightOptions) -> dict[str, Any]:
    fight = config.fight
    if options.boss and options.boss not in fight.all_bosses:
        trained = ", ".join(map(short_name, fight.all_bosses))
        raise MisuseError(f"--boss {options.boss}: the run was trained on {trained}; leave it out, or give one of them")
    own = {name: getattr(fight, name) for name in ("phase", "full", "step_limit", "no_hit")}
    own |= {"boss": fight.main_boss, "variant": fight.main_variant} | _chosen_settings(options)
    # Where a single phase was trained from random poses, they are a part of the task; in full fights they are practice.
    return own | {"random_pose": config.starts.random_pose and not fight.full and not own["full"]}


def _chosen_settings(options: FightOptions) -> dict[str, Any]:
    given = {"boss": options.boss or None, "variant": options.variant or None, "no_hit": options.no_hit}
    asked: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if options.phase is not None or options.full:
        asked |= {"phase": 1 if options.phase is None else options.phase, "full": options.full}
    return asked | {"randomize": options.randomize}


def measure(fighter: Fighter, fights: int, seed: int, settings: dict[str, Any], title: str, **more: Any) -> Evaluation:
    """Play the fights, with a bar on a terminal."""
    with bar(title) as progress:
        return evaluate(fighter, fights, seed=seed, progress=progress, **more, **settings)
