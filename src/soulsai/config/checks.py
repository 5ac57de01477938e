"""Settings that fit their keys but not one another. What works but is unwise is left to the preflight."""

from __future__ import annotations

from collections.abc import Iterator

from soulsai.config.refusal import did_you_mean, refusal
from soulsai.config.schema import (
    DRAWN,
    STANDARD,
    ActionsConfig,
    Config,
    EncoderConfig,
    FightConfig,
    RewardConfig,
    StartsConfig,
)
from soulsai.config.toml import toml_value


def checked(config: Config, source: str = "settings") -> Config:
    """The config, if a run can use it; `source` says in errors where it comes from."""
    for problem in _problems(config):
        raise refusal(source, problem)
    return config


def check_names(config: Config, source: str = "settings") -> Config:
    """The config, if every part that it names is known; this imports the user's own files of parts."""
    named = _named(config)
    if config.world == "fight" and (named or config.fight.parts):
        # Imported late: the parts live beside the simulator.
        from soulsgym.parts.files import parts_in

        with parts_in(config.fight.parts):
            for key, kind, name in named:
                if way_out := unknown_part(kind, name):
                    raise refusal(source, f"{key}: {kind} {toml_value(name)} is not known; {way_out}")
    return config


def unknown_part(kind: str, name: str) -> str:
    """What to do about a name that no part of a kind has; nothing if one has it."""
    from soulsgym.parts.registry import known_names

    known = known_names(kind)
    near = did_you_mean(name, known)
    way_out = f'did you mean "{near}"?' if near else f"there are {', '.join(known)}, and your own with --parts FILE"
    return "" if name in known else way_out


def _named(config: Config) -> list[tuple[str, str, str]]:
    """The key, kind and name of every part that is not the default."""
    named = [
        ("encoder.name", "encoder", config.encoder.name, EncoderConfig.name),
        ("reward.preset", "reward", config.reward.preset, RewardConfig.preset),
        ("actions.preset", "action set", config.actions.preset, ActionsConfig.preset),
        ("fight.ending", "ending", config.fight.ending, FightConfig.ending),
        ("starts.name", "starts", config.starts.name, StartsConfig.name),
    ]
    terms = [("reward.weights", "reward term", name) for name in config.reward.weights]
    return [(key, kind, name) for key, kind, name, default in named if name != default] + terms


def _problems(config: Config) -> Iterator[str]:
    yield from _variant_problems(config) if config.world == "fight" else ()
    yield from _game_problems(config)
    yield from _action_problems(config.actions.names)
    yield from _share_problems(config.starts)
    yield from _value_range_problems(config.q.value_range)
    if config.q.twin and config.q.clipped:
        yield "q.twin and q.clipped are two ways of using two networks; set one of them"
    yield from _minibatch_problems(config) if config.algorithm == "ppo" else _capacity_problems(config)


def _variant_problems(config: Config) -> Iterator[str]:
    fight = config.fight
    if not fight.variants:
        yield 'fight.variants is empty; name at least one, such as ["standard"]'
    if fight.number < len(fight.variants):
        yield (
            f"fight.number = {fight.number} is less than the {len(fight.variants)} entries of fight.variants; "
            "give more fights"
        )
    if fight.boss == FightConfig.boss and set(fight.variants) <= {STANDARD}:
        return
    # Imported late, and not for the defaults: `souls presets` need not wait for it.
    from soulsgym.errors import MisuseError
    from soulsgym.spec import is_path, variants
    from soulsgym.spec.fight import read_files
    from soulsgym.spec.population import drawn_count

    try:
        # A path may be one of the learner's machine, or only its copy is left: files are checked where they are read.
        known = () if is_path(fight.boss) else variants(fight.boss)
        if known and fight.engine == "sim" and fight.boss != FightConfig.boss:
            read_files(fight.boss)  # refuses one without moves
    except MisuseError as error:
        yield f"fight.boss: {error}"
        return
    for variant in fight.variants:
        try:
            is_one = drawn_count(variant) is None
        except MisuseError as error:
            yield f"fight.variants: {error}"
            continue
        if is_one and known and not is_path(variant) and variant not in known:
            near = did_you_mean(variant, [*known, "drawn:32"])
            way_out = f'did you mean "{near}"?' if near else f"there are {', '.join(known)}, paths of files and drawn:N"
            yield f"fight.variants has the unknown variant {toml_value(variant)}; {way_out}"


def _game_problems(config: Config) -> Iterator[str]:
    fight, run = config.fight, config.run
    if config.world != "fight" or fight.engine != "game":
        return
    if fight.number != 1:
        yield f"fight.number = {fight.number} but the game plays one fight at a time; set it to 1"
    if len(fight.variants) > 1 or fight.variants[0].startswith(DRAWN):
        yield f"fight.variants = {toml_value(fight.variants)} but the game has its own numbers; name one file"
    if fight.randomize:
        yield f"fight.randomize = {fight.randomize} but the game cannot be randomised; set it to 0"
    for key in ("evaluate_every_steps", "final_fights"):
        if getattr(run, key):
            yield (
                f"run.{key} = {getattr(run, key)} but the game plays one fight at a time; set it to 0, and use "
                "souls eval --game afterwards"
            )


def _action_problems(names: tuple[str, ...]) -> Iterator[str]:
    if not names:
        return
    # Imported late: the names live beside the simulator.
    from soulsgym.actions import ACTION_NAMES

    for name in names:
        if name not in ACTION_NAMES:
            near = did_you_mean(name, ACTION_NAMES)
            way_out = f'did you mean "{near}"?' if near else f"there are {', '.join(ACTION_NAMES)}"
            yield f"actions.names has the unknown action {toml_value(name)}; {way_out}"
        if names.count(name) > 1:
            yield f"actions.names has {toml_value(name)} twice; leave one out"


def _share_problems(starts: StartsConfig) -> Iterator[str]:
    shares = {"boss_hp_share": starts.boss_hp_share, "player_hp_share": starts.player_hp_share}
    for key, (low, high) in shares.items():
        if not 0.0 < low <= high <= 1.0:
            yield (
                f"starts.{key} = {toml_value((low, high))} must be the lowest and then the highest share, "
                "both above 0 and at most 1"
            )


def _value_range_problems(value_range: tuple[float, float]) -> Iterator[str]:
    low, high = value_range
    if not low < high:
        yield f"q.value_range = {toml_value(value_range)} must be the lowest return and then a higher one"


def _side_by_side(config: Config) -> tuple[str, int]:
    """The key that says how many fights or environments are played at once, and their number."""
    return ("fight.number", config.fight.number) if config.world == "fight" else ("gym.number", config.gym.number)


def _minibatch_problems(config: Config) -> Iterator[str]:
    key, number = _side_by_side(config)
    collected = config.ppo.rollout * number
    if config.ppo.minibatch > collected:
        yield (
            f"ppo.minibatch = {config.ppo.minibatch} is more than the {collected} decisions between updates "
            f"(ppo.rollout {config.ppo.rollout} times {key} {number}); make it smaller"
        )


def _capacity_problems(config: Config) -> Iterator[str]:
    key, number = _side_by_side(config)
    added = number * config.q.n_step
    if config.replay.capacity < max(config.q.batch, added):
        yield (
            f"replay.capacity = {config.replay.capacity} is too small: it must hold q.batch ({config.q.batch}) "
            f"and {key} times q.n_step ({added}) transitions"
        )
