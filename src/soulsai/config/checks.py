"""Settings that fit their keys but not one another. What works but is unwise is left to the preflight."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from soulsai.config.algorithms import algorithm_settings
from soulsai.config.refusal import refusal, way_out
from soulsai.config.schema import DEFAULT_BOSS, DRAWN, Config, FightConfig, StartsConfig
from soulsai.config.toml import toml_value
from soulsgym.actions import ACTION_NAMES
from soulsgym.errors import MisuseError
from soulsgym.spec.fight import is_path, read_files, variants
from soulsgym.spec.population import drawn_count

QUOTED = '"{}"'
PARTS = {
    "encoder.name": "encoder",
    "reward.preset": "reward",
    "actions.preset": "action set",
    "fight.ending": "ending",
    "starts.name": "starts",
}
"""Keys that name a part, and its kind."""


def check_config(config: Config, source: str = "settings") -> Config:
    """The config, if a run can use it; `source` says in errors where it comes from."""
    for problem in _problems(config):
        raise refusal(source, problem)
    return config


def check_names(config: Config, source: str = "settings") -> Config:
    """The config, if every part that it names is known; this imports the user's own files of parts."""
    named = _chosen_parts(config)
    if config.world == "fight" and (named or config.fight.parts):
        # Imported late: parts are compiled, and Numba takes a moment to load.
        from soulsgym.parts.files import parts_in

        with parts_in(config.fight.parts):
            for key, kind, name in named:
                if advice := unknown_part(kind, name):
                    raise refusal(source, f"{key}: {kind} {toml_value(name)} is not known; {advice}")
    return config


def unknown_part(kind: str, name: str) -> str:
    """What to do about a name that no part of a kind has; nothing if one has it."""
    from soulsgym.parts.registry import known_names

    known = known_names(kind)
    return "" if name in known else way_out(name, known, QUOTED, "there are {}, and your own with --parts FILE")


def _chosen_parts(config: Config) -> list[tuple[str, str, str]]:
    """The key, kind and name of every part that is not the default."""
    usual = Config()
    named = [(key, kind, attrgetter(key)(config)) for key, kind in PARTS.items()]
    terms = [("reward.weights", "reward term", name) for name in config.reward.weights]
    return [(key, kind, name) for key, kind, name in named if name != attrgetter(key)(usual)] + terms


def _problems(config: Config) -> Iterator[str]:
    yield from _variant_problems(config) if config.world == "fight" else ()
    yield from _game_problems(config)
    yield from _action_problems(config.actions.names)
    yield from _share_problems(config.starts)
    yield from algorithm_settings()[config.algorithm].problems(config)


def _variant_problems(config: Config) -> Iterator[str]:
    fight = config.fight
    if not fight.variants:
        yield 'fight.variants is empty; name at least one, such as ["standard"]'
    if fight.engine == "sim" and fight.number < len(fight.variants) * len(fight.all_bosses):
        each = " for each boss" if fight.bosses else ""
        yield (
            f"fight.number = {fight.number} is less than the {len(fight.variants)} entries of fight.variants{each}; "
            "give more fights"
        )
    yield from _bosses_problems(fight)
    for boss in fight.all_bosses:
        yield from _boss_problems(fight, boss)


def _bosses_problems(fight: FightConfig) -> Iterator[str]:
    for boss in fight.bosses:
        if is_path(boss):
            yield f"fight.bosses has the file {toml_value(boss)}, but several bosses are known by name alone"
        if fight.bosses.count(boss) > 1:
            yield f"fight.bosses has {toml_value(boss)} twice; leave one out"
    if fight.boss not in (*fight.all_bosses, DEFAULT_BOSS):
        yield f"fight.boss = {toml_value(fight.boss)} is none of fight.bosses; leave one of the two keys out"
    if fight.bosses and (files := [variant for variant in fight.variants if is_path(variant)]):
        yield f"fight.variants has the file {toml_value(files[0])}, which is of one boss; use it with fight.boss alone"


def _boss_problems(fight: FightConfig, boss: str) -> Iterator[str]:
    try:
        # A path may be one of the learner's machine, or only its copy is left: files are checked where they are read.
        known = () if is_path(boss) else variants(boss)
        if known and fight.engine == "sim":
            read_files(boss)  # refuses one without moves
    except MisuseError as error:
        yield f"fight.{'bosses' if fight.bosses else 'boss'}: {error}"
        return
    for variant in fight.variants:
        try:
            is_one = drawn_count(variant) is None
        except MisuseError as error:
            yield f"fight.variants: {error}"
            continue
        if is_one and known and not is_path(variant) and variant not in known:
            advice = way_out(variant, [*known, "drawn:32"], QUOTED, "there are {} and paths of files")
            of = f" of {boss}" if fight.bosses else ""
            yield f"fight.variants has the unknown variant {toml_value(variant)}{of}; {advice}"


def _game_problems(config: Config) -> Iterator[str]:
    fight, run = config.fight, config.run
    if config.world != "fight" or fight.engine != "game":
        return
    if fight.bosses:
        yield f"fight.bosses = {toml_value(fight.bosses)} but the game plays one fight at a time; use fight.boss"
    if fight.number != 1:
        yield f"fight.number = {fight.number} but the game plays one fight at a time; set it to 1"
    if len(fight.variants) > 1 or fight.variants[0].startswith(DRAWN):
        yield (
            f"fight.variants = {toml_value(fight.variants)} but the game has its own numbers; name one: "
            """--set fight.variants='["standard"]'"""
        )
    if fight.randomize:
        yield f"fight.randomize = {fight.randomize} but the game cannot be randomised; set it to 0"
    for key in ("evaluate_every_steps", "final_fights"):
        if getattr(run, key):
            yield (
                f"run.{key} = {getattr(run, key)} but the game plays one fight at a time; set it to 0, and use "
                "souls eval --game afterwards"
            )


def _action_problems(names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        if name not in ACTION_NAMES:
            advice = way_out(name, ACTION_NAMES, QUOTED)
            yield f"actions.names has the unknown action {toml_value(name)}; {advice}"
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
