"""The space file of a sweep: a config in TOML with ranges in the place of values; whatever does not fit is refused.

Written like a preset, a table of keys for each section:

    [sweep]
    trials = 40
    [sweep.fixed]
    run.steps = 8_000_000
    [ppo]
    learning_rate = {low = 5e-4, high = 8e-3, log = true}
    minibatch = {values = [1024, 2048, 4096]}
    [network]
    hidden = {choices = [[128, 128], [256, 256]]}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from soulsai.config.algorithms import algorithm_settings
from soulsai.config.checks import unknown_part
from soulsai.config.merging import merge, merge_section, table_of
from soulsai.config.presets import parse_toml, read_text
from soulsai.config.refusal import refusal, way_out
from soulsai.config.schema import Config
from soulsai.config.toml import toml_value
from soulsai.config.values import show_value
from soulsgym.parts.files import parts_in
from soulsgym.parts.rewards.presets import weights_of

SWEEP, FIXED = "sweep", "fixed"
WORDS = ("low", "high", "log", "step", "choices", "values")
HOW = "{low = ..., high = ...} or {choices = [...]}"
DIGITS = 4
"""Significant digits of a drawn number: more would only make commands long."""
SAME = 1e-9
WEIGHTS = "reward.weights."
WIN_RATE, RETURN = "win_rate/evaluation", "return/evaluation"
FIGHT_ONLY = ("fight", "encoder", "reward", "actions", "starts")

INCOMPARABLE = {
    "trials would learn different things": "world",
    "every trial already has its own seed": "run.seed",
    "trials are compared after the same number of steps": "run.steps run.evaluate_every_steps run.stop_at",
    "trials are compared by evaluations of one kind": "run.evaluation_fights run.final_fights",
    "it changes nothing that is learned": "run.accept run.device run.threads run.checkpoint_every_s "
    "run.keep_checkpoints run.log_every_s",
    "trials would be judged by different fights": "fight.engine fight.boss fight.bosses fight.variants fight.phase "
    "fight.full fight.step_limit fight.no_hit",
    "trials would be judged by different episodes": "gym.id gym.kwargs",
}
"""Keys that a sweep leaves alone, by the reason."""


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`, both included."""

    key: str
    low: float
    high: float
    whole: bool
    log: bool = False
    step: float | None = None

    def distribution(self) -> BaseDistribution:
        """As Optuna has it."""
        if self.whole:
            return IntDistribution(int(self.low), int(self.high), log=self.log, step=int(self.step or 1))
        return FloatDistribution(float(self.low), float(self.high), log=self.log, step=self.step)

    def value(self, stored: Any) -> Any:
        """What the config is given for what Optuna has drawn."""
        if self.whole:
            return int(stored)
        if self.step:
            return float(f"{stored:.10g}")
        return min(max(float(f"{stored:.{DIGITS}g}"), float(self.low)), float(self.high))

    def to_optuna(self, value: Any) -> Any:
        """What Optuna would have drawn for a value; None if it never draws it."""
        if not _is_number(value) or not self.low <= value <= self.high:
            return None
        steps = (value - self.low) / self.step if self.step else 0.0
        if abs(steps - round(steps)) > SAME:
            return None
        return int(value) if self.whole else float(value)


@dataclass(frozen=True)
class Choices:
    """A few values; `ordered` ones have neighbours, so that what helps one says something about the next."""

    key: str
    options: tuple[Any, ...]
    ordered: bool = False

    @property
    def texts(self) -> list[str]:
        """The options as TOML: Optuna knows no lists."""
        return [toml_value(option) for option in self.options]

    def distribution(self) -> BaseDistribution:
        """As Optuna has it: ordered options by their place, others by their text."""
        return IntDistribution(0, len(self.options) - 1) if self.ordered else CategoricalDistribution(self.texts)

    def value(self, stored: Any) -> Any:
        """What the config is given for what Optuna has drawn."""
        return self.options[stored if self.ordered else self.texts.index(stored)]

    def to_optuna(self, value: Any) -> Any:
        """What Optuna would have drawn for a value; None if it never draws it."""
        text = "" if value is None else toml_value(value)
        for place, option in enumerate(self.options):
            if text == self.texts[place] or (_is_number(option) and _is_number(value) and option == value):
                return place if self.ordered else self.texts[place]
        return None


Dimension = Range | Choices


class Plan(Struct, frozen=True):
    """The [sweep] table: how the space is searched."""

    trials: Annotated[int, Meta(ge=1, le=100_000, description="trials that are trained to the end or pruned")] = 30
    startup: Annotated[int, Meta(ge=1, description="trials drawn at random first, and never pruned")] = 8
    seed: Annotated[
        int,
        Meta(
            ge=0, le=2**31, description="of what is drawn, and added to the trial's number for the seed of its training"
        ),
    ] = 0
    metric: Annotated[
        Literal["", "win_rate/evaluation", "return/evaluation"],
        Meta(description="what is to be large: win_rate/evaluation, or return/evaluation of Gymnasium worlds"),
    ] = ""
    score: Annotated[
        Literal["last", "mean"],
        Meta(description="last: how good it is after training; mean: over all evaluations, for fast learners"),
    ] = "last"
    pruner: Annotated[Literal["median", "halving", "none"], Meta(description="what ends bad trials early")] = "median"
    warmup: Annotated[float, Meta(ge=0.0, le=1.0, description="share of the steps without pruning")] = 0.25
    best: Annotated[int, Meta(ge=1, le=50, description="best trials, measured again at the end in new fights")] = 3
    fights: Annotated[int, Meta(ge=2, le=100_000, description="fights (or episodes) of that last measurement")] = 1000
    fixed: Annotated[dict[str, Any], Meta(description="settings of all trials, a table for each section")] = {}


@dataclass(frozen=True)
class Space:
    """What a sweep tries."""

    dimensions: tuple[Dimension, ...]
    fixed: tuple[str, ...]  # as --set takes them
    plan: Plan
    text: str  # of the file

    def keys(self) -> tuple[str, ...]:
        """The keys that differ from trial to trial."""
        return tuple(dimension.key for dimension in self.dimensions)

    def distributions(self) -> dict[str, BaseDistribution]:
        """What Optuna draws, by key."""
        return {one.key: one.distribution() for one in self.dimensions}

    def settings(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """The config's values, by key, for what Optuna has drawn; keys that it has not drawn are left out."""
        return {one.key: one.value(stored[one.key]) for one in self.dimensions if one.key in stored}


def as_arguments(settings: Mapping[str, Any]) -> list[str]:
    """Settings as `--set` takes them."""
    return [f"{key}={toml_value(value)}" for key, value in settings.items()]


def value_of(config: Config, key: str) -> Any:
    """The value of a key, or of an entry of a table; None if it has none."""
    found: Any = config
    for part in key.split(".", 2):
        found = found.get(part) if isinstance(found, dict) else getattr(found, part)
    if found is None and key.startswith(WEIGHTS):
        with parts_in(config.fight.parts):
            return weights_of(config.reward.preset).get(key.removeprefix(WEIGHTS), 0.0)
    return found


# Reading


def read_space(file: Path) -> Space:
    """The space in a file; ConfigError names the first thing that does not fit."""
    return space_of(read_text(file, "space file"), str(file))


def space_of(text: str, source: str) -> Space:
    """The space in a TOML text; `source` says in errors where the text comes from."""
    table = parse_toml(text, source)
    about = table.pop(SWEEP, {})
    if not isinstance(about, dict):
        raise refusal(source, f"{SWEEP} must be a table, not {show_value(about)}; begin it with [{SWEEP}]")
    dimensions = tuple(_dimension(key, value, source) for key, value in _flat(table, source).items())
    if not dimensions:
        raise refusal(source, f"there is nothing to try; give a key a range, such as network.hidden = {HOW}")
    plan = merge_section(Plan(), about, f"{SWEEP}.", source)
    fixed = _flat(plan.fixed, source)
    for key, value in fixed.items():
        _read(key, value, source)
        if key in (one.key for one in dimensions):
            raise refusal(source, f"{key} is both tried and fixed; leave one of them out")
    return Space(dimensions, tuple(as_arguments(fixed)), plan, text)


def _flat(table: Mapping[str, Any], source: str) -> dict[str, Any]:
    """What the file says of every key, such as `network.hidden`."""
    found: dict[str, Any] = {}
    for key, value in _leaves(table, "", source):
        if key in found:
            raise refusal(source, f"{key} is given twice; leave one out")
        found[key] = value
    return found


def _leaves(table: Mapping[str, Any], prefix: str, source: str) -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        key = f"{prefix}{name}"
        if not isinstance(value, dict) or (value and set(value) <= set(WORDS)):
            yield key, value
            continue
        default: Any = Config()
        for part in key.split("."):
            default = getattr(default, part, None)
        if default is None:  # refused, with the nearest name
            merge(Config(), table_of(key, value), source)
        if isinstance(default, (dict, Struct)):
            yield from _leaves(value, f"{key}.", source)
        else:
            yield key, value


def _read(key: str, value: Any, source: str) -> Any:
    """The value of a key as the config takes it; a ConfigError if there is no such key or the value does not fit."""
    return value_of(merge(Config(), table_of(key, value), source), key)


def _dimension(key: str, value: Any, source: str) -> Dimension:
    for reason, keys in INCOMPARABLE.items():
        if key in keys.split():
            raise refusal(source, f"{key} cannot be tried: {reason}; set it under [{SWEEP}.{FIXED}]")
    if not isinstance(value, dict):
        given = f"{key} = {show_value(_read(key, value, source))}"
        raise refusal(source, f"{given} leaves nothing to try; give {HOW}, or put it under [{SWEEP}.{FIXED}]")
    for word in value:
        if word not in WORDS:
            raise refusal(source, f"{key} has the unknown word {word}; {way_out(word, WORDS)}")
    word = next((word for word in ("choices", "values") if word in value), "")
    if word and len(value) > 1:
        raise refusal(source, f"{key} has {word} beside other words; give either {HOW}")
    if word:
        for problem in _list_problems(value[word], word):
            raise refusal(source, f"{key}: {problem}")
        for option in value[word]:
            _read(key, option, source)
        return Choices(key, tuple(value[word]), ordered=word == "values")
    for word in ("low", "high"):
        if word not in value:
            raise refusal(source, f"{key} has no {word}; give {HOW}")
    kinds = {type(_read(key, value[end], source)) for end in ("low", "high")}
    if not kinds <= {int, float}:
        raise refusal(source, f"{key} is not a number and has no range; give it {{choices = [...]}}")
    for problem in _range_problems(whole=kinds == {int}, **value):
        raise refusal(source, f"{key}{problem}")
    return Range(key, whole=kinds == {int}, **value)


def _list_problems(options: Any, word: str) -> Iterator[str]:
    if not isinstance(options, list) or len(options) < 2:
        yield f"{word} must be a list of two values or more, not {show_value(options)}"
        return
    texts = [toml_value(option) for option in options]
    yield from (f"{word} has {text} twice; leave one out" for text in texts if texts.count(text) > 1)
    if word == "values" and not all(map(_is_number, options)):
        yield f"values are numbers in a row; write choices for {show_value(options[0])}"
    elif word == "values" and options != sorted(options):
        yield "values must go up; write choices if they have no order"


def _range_problems(*, low: float, high: float, whole: bool, log: Any = False, step: Any = None) -> Iterator[str]:
    if not low < high:
        yield f": low = {show_value(low)} must be below high = {show_value(high)}"
    if not isinstance(log, bool):
        yield f": log must be true or false, not {show_value(log)}"
    if log and low <= 0:
        yield f": a logarithmic range must begin above 0, not at {show_value(low)}"
    if step is not None and (not _is_number(step) or (whole and step != int(step)) or not 0 < step <= high - low):
        noun = "whole number" if whole else "number"
        yield f": step must be a {noun} above 0 and at most {high - low:g}, not {show_value(step)}"
    if step is not None and log:
        yield " has step and log, which cannot both be; leave one out, or list values"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


# Does it make sense for a config?


def metric_of(space: Space, config: Config) -> str:
    """What is to be large."""
    return space.plan.metric or (WIN_RATE if config.world == "fight" else RETURN)


def check_fit(space: Space, config: Config, settings: Sequence[str], source: str) -> None:
    """ConfigError for the first key, or setting of the command line, that would train for nothing."""
    for problem in _fit_problems(space, config, settings):
        raise refusal(source, problem)


def _fit_problems(space: Space, config: Config, settings: Sequence[str]) -> Iterator[str]:
    keys, run = space.keys(), config.run
    for key in (setting.partition("=")[0].strip() for setting in settings):
        if key in keys:
            yield f"{key} is tried by this space and set by --set; leave one out"
    unused = _unused_sections(config, keys)
    for key in keys:
        if why := unused.get(key.partition(".")[0]):
            yield f"{key} changes nothing with {why}; leave it out"
    terms = [key.removeprefix(WEIGHTS) for key in keys if key.startswith(WEIGHTS)]
    with parts_in(config.fight.parts if terms else ()):
        unknown = {term: way_out for term in terms if (way_out := unknown_part("reward term", term))}
    for term, way_out in unknown.items():
        yield f"{WEIGHTS}{term} is the weight of no term of the reward; {way_out}"
    if "starts.random_pose" in keys and not config.fight.full:
        yield "starts.random_pose is a part of the task where a single phase is trained; leave it out"
    if config.world == "fight" and config.fight.engine == "game":
        yield "fight.engine = game: one game plays one fight at a time, too slow for a sweep; sweep in the simulator"
    if run.evaluate_every_steps == 0:
        yield "run.evaluate_every_steps = 0 leaves nothing to compare trials by; set it under [sweep.fixed]"
    if run.evaluate_every_steps > run.steps:
        yield (
            f"run.evaluate_every_steps = {run.evaluate_every_steps} is more than run.steps = {run.steps}, so that no "
            "trial could be pruned; make it smaller under [sweep.fixed]"
        )
    metric, wanted = metric_of(space, config), WIN_RATE if config.world == "fight" else RETURN
    if metric != wanted:
        yield f'sweep.metric = "{metric}" is never measured with world = "{config.world}"; write "{wanted}"'


def _unused_sections(config: Config, keys: Sequence[str]) -> dict[str, str]:
    """Sections that change nothing, and why."""
    unused = {}
    if "algorithm" not in keys:
        own = {config.algorithm, *algorithm_settings()[config.algorithm].uses}
        others = {section for name, each in algorithm_settings().items() for section in (name, *each.uses)}
        unused = dict.fromkeys(others - own, f'algorithm = "{config.algorithm}"')
    unused |= dict.fromkeys(FIGHT_ONLY if config.world == "gym" else ("gym",), f'world = "{config.world}"')
    return unused | {"fleet": "trials, which play for themselves"}
