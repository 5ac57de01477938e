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

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, get_args, get_origin

from soulsai.config.merging import SECTIONS, merged
from soulsai.config.refusal import did_you_mean, refusal
from soulsai.config.schema import Config
from soulsai.config.setting import setting
from soulsai.config.toml import toml_value
from soulsai.config.values import fits, kinds, setting_of, shown, wanted
from soulsai.sweeps.dimension import Choices, Dimension, Range

SWEEP, FIXED = "sweep", "fixed"
WORDS = ("low", "high", "log", "step", "choices", "values")
HOW = "{low = ..., high = ...} or {choices = [...]}"

WIN_RATE, RETURN = "win_rate/evaluation", "return/evaluation"

INCOMPARABLE = {
    "world": "trials would learn different things",
    "run.seed": "every trial has a seed of its own already",
    "run.steps": "trials are compared after the same number of steps",
    "run.evaluate_every_steps": "trials are compared after the same number of steps",
    "run.evaluation_fights": "trials are compared by evaluations of one kind",
    "run.final_fights": "trials are compared by evaluations of one kind",
    "run.stop_at": "trials are compared after the same number of steps",
    "run.accept": "it changes nothing that is learned",
    "run.device": "it changes nothing that is learned",
    "run.threads": "it changes nothing that is learned",
    "run.checkpoint_every_s": "it changes nothing that is learned",
    "run.keep_checkpoints": "it changes nothing that is learned",
    "run.log_every_s": "it changes nothing that is learned",
    "fight.engine": "trials would be judged by different fights",
    "fight.boss": "trials would be judged by different fights",
    "fight.variants": "trials would be judged by different fights",
    "fight.phase": "trials would be judged by different fights",
    "fight.full": "trials would be judged by different fights",
    "fight.step_limit": "trials would be judged by different fights",
    "fight.no_hit": "trials would be judged by different fights",
    "gym.id": "trials would be judged by different episodes",
    "gym.kwargs": "trials would be judged by different episodes",
}
"""Keys that a sweep leaves alone, and why."""


@dataclass(frozen=True)
class Plan:
    """The [sweep] table: how the space is searched."""

    trials: int = setting(30, "trials that are trained to the end or pruned", low=1, high=100_000)
    startup: int = setting(8, "trials drawn at random, and never pruned, before anything is learned from them", low=1)
    seed: int = setting(0, "of what is drawn, and added to the trial's number for the seed of its training", low=0,
                        high=2**31)  # fmt: skip
    metric: str = setting("", "what is to be large: win_rate/evaluation, or return/evaluation of Gymnasium worlds",
                          choices=("", WIN_RATE, RETURN))  # fmt: skip
    score: str = setting("last", "last: how good it is after training; mean: over all evaluations, for fast learners",
                         choices=("last", "mean"))  # fmt: skip
    pruner: str = setting("median", "what ends bad trials early", choices=("median", "halving", "none"))
    warmup: float = setting(0.25, "share of the steps before which no trial is pruned", low=0.0, high=1.0)
    best: int = setting(3, "best trials that are measured once more at the end, in fights nobody saw", low=1, high=50)
    fights: int = setting(1000, "fights (or episodes) of that last measurement", low=2, high=100_000)


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


def read_space(file: Path) -> Space:
    """The space in a file; ConfigError names the first thing that does not fit."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise refusal(str(file), f"this space file cannot be read: {why}") from error
    return space_of(text, str(file))


def space_of(text: str, source: str) -> Space:
    """The space in a TOML text; `source` says in errors where the text comes from."""
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise refusal(source, f"this is not TOML: {error}") from error
    about = table.pop(SWEEP, {})
    if not isinstance(about, dict):
        raise refusal(source, f"{SWEEP} must be a table, not {shown(about)}; begin it with [{SWEEP}]")
    fixed = about.pop(FIXED, {})
    if not isinstance(fixed, dict):
        raise refusal(source, f"{SWEEP}.{FIXED} must be a table of settings, not {shown(fixed)}")
    dimensions = tuple(_dimension(key, value, source) for key, value in _leaves(_nested(table, source), source))
    if not dimensions:
        raise refusal(source, f"there is nothing to try; give a key a range, such as ppo.learning_rate = {HOW}")
    settings = tuple(_fixed(_nested(fixed, source), source))
    for key in (each.partition("=")[0] for each in settings):
        if key in (one.key for one in dimensions):
            raise refusal(source, f"{key} is both tried and fixed; leave one of them out")
    return Space(dimensions, settings, _plan(about, source), text)


def _nested(table: Mapping[str, Any], source: str) -> dict[str, Any]:
    """Quoted names with dots, such as "ppo.gamma", as the tables they mean."""
    nested: dict[str, Any] = {}
    for name, value in table.items():
        *above, last = name.split(".", 2)
        place = nested
        for part in above:
            place = place.setdefault(part, {})
        if last in place and not (isinstance(place[last], dict) and isinstance(value, dict)):
            raise refusal(source, f"{name} is given twice; leave one out")
        place[last] = place[last] | value if last in place else value
    return nested


def _leaves(table: Mapping[str, Any], source: str) -> Iterator[tuple[str, Any]]:
    """Every key with what the file says of it; unknown ones are refused, with the nearest known one."""
    for name, value in table.items():
        if name not in SECTIONS:
            if name not in kinds(Config):
                # Nothing in place of a range, so that the error speaks of a key and not of a section.
                merged(Config(), {name: None if _is_range(value) else value}, source)
            yield name, value
        elif not isinstance(value, dict) or _is_range(value):
            raise refusal(source, f"{name} is a section: give one of its keys, such as {_example(name)} = {HOW}")
        else:
            yield from _section_leaves(name, value, source)


def _section_leaves(section: str, table: Mapping[str, Any], source: str) -> Iterator[tuple[str, Any]]:
    types = kinds(SECTIONS[section])
    for name, value in table.items():
        if name not in types:
            merged(Config(), {section: {name: value}}, source)
        if get_origin(types[name]) is dict and isinstance(value, dict) and not set(value) <= set(WORDS):
            yield from ((f"{section}.{name}.{entry}", one) for entry, one in value.items())
        else:
            yield f"{section}.{name}", value


def _is_range(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and set(value) <= set(WORDS)


def _example(section: str) -> str:
    return f"{section}.{next(iter(kinds(SECTIONS[section])))}"


def _dimension(key: str, value: Any, source: str) -> Dimension:
    if key in INCOMPARABLE:
        raise refusal(source, f"{key} cannot be tried: {INCOMPARABLE[key]}; set it under [{SWEEP}.{FIXED}]")
    if not isinstance(value, dict):
        way_out = f"give {HOW}, or put it under [{SWEEP}.{FIXED}]"
        raise refusal(source, f"{key} = {shown(value)} leaves nothing to try; {way_out}")
    for word in value:
        if word not in WORDS:
            near = did_you_mean(word, WORDS)
            raise refusal(source, f"{key} has the unknown word {word}; {_hint(near)}")
    lists = [word for word in ("choices", "values") if word in value]
    if lists and len(value) > 1:
        raise refusal(source, f"{key} has {lists[0]} beside other words; give either {HOW}")
    if lists:
        return _choices(key, value[lists[0]], lists[0], source)
    return _range(key, value, source)


def _hint(near: str | None) -> str:
    return f"did you mean {near}?" if near else f"there are {', '.join(WORDS)}"


def _choices(key: str, options: Any, word: str, source: str) -> Choices:
    if not isinstance(options, list) or len(options) < 2:
        raise refusal(source, f"{key}: {word} must be a list of two values or more, not {shown(options)}")
    for option in options:
        _check_fits(key, option, source)
    texts = [toml_value(option) for option in options]
    for text in texts:
        if texts.count(text) > 1:
            raise refusal(source, f"{key}: {word} has {text} twice; leave one out")
    if word == "values" and not all(_is_number(option) for option in options):
        raise refusal(source, f"{key}: values are numbers in a row; write choices for {shown(options[0])}")
    if word == "values" and options != sorted(options):
        raise refusal(source, f"{key}: values must go up; write choices if they have no order")
    return Choices(key, tuple(options), ordered=word == "values")


def _range(key: str, value: Mapping[str, Any], source: str) -> Range:
    kind = _kind(key)
    if kind not in (int, float):
        raise refusal(source, f"{key} is no number and has no range; give it {{choices = [...]}}")
    for word in ("low", "high"):
        if word not in value:
            raise refusal(source, f"{key} has no {word}; give {HOW}")
        _check_fits(key, value[word], source)
    low, high, log, step = value["low"], value["high"], value.get("log", False), value.get("step")
    if not low < high:
        raise refusal(source, f"{key}: low = {shown(low)} must be below high = {shown(high)}")
    if not isinstance(log, bool):
        raise refusal(source, f"{key}: log must be true or false, not {shown(log)}")
    if log and low <= 0:
        raise refusal(source, f"{key}: a logarithmic range must begin above 0, not at {shown(low)}")
    if step is not None:
        _check_step(key, step, high - low, source, whole=kind is int, log=log)
    return Range(key, low, high, kind is int, log, step)


def _check_step(key: str, step: Any, width: float, source: str, *, whole: bool, log: bool) -> None:
    noun = "whole number" if whole else "number"
    if not _is_number(step) or (whole and not isinstance(step, int)) or not 0 < step <= width:
        raise refusal(source, f"{key}: step must be a {noun} above 0 and at most {width:g}, not {shown(step)}")
    if log:
        raise refusal(source, f"{key} has step and log, which cannot both be; leave one out, or list values")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _kind(key: str) -> Any:
    """The type of a key; of an entry of a table, that of its values."""
    section, *rest = key.split(".", 2)
    kind = kinds(SECTIONS[section])[rest[0]] if rest else kinds(Config)[section]
    return get_args(kind)[1] if len(rest) > 1 else kind


def _check_fits(key: str, value: Any, source: str) -> None:
    table: Any = value
    for part in reversed(key.split(".", 2)):
        table = {part: table}
    merged(Config(), table, source)


def _fixed(table: Mapping[str, Any], source: str) -> Iterator[str]:
    merged(Config(), table, source)
    for name, value in table.items():
        if name not in SECTIONS:
            yield f"{name}={toml_value(value)}"
            continue
        yield from (f"{name}.{key}={toml_value(one)}" for key, one in value.items())


def _plan(table: Mapping[str, Any], source: str) -> Plan:
    types, known = kinds(Plan), {key.name: key for key in fields(Plan)}
    for name, value in table.items():
        if name not in known:
            near = did_you_mean(name, [*known, FIXED])
            way_out = f"did you mean {near}?" if near else f"the keys there are {', '.join([*known, FIXED])}"
            raise refusal(source, f"there is no key {SWEEP}.{name}; {way_out}")
        about = setting_of(known[name])
        if not fits(value, types[name], about):
            raise refusal(source, f"{SWEEP}.{name} must be {wanted(types[name], about)}, not {shown(value)}")
    values: dict[str, Any] = {name: float(value) if types[name] is float else value for name, value in table.items()}
    return Plan(**values)
