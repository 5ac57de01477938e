"""Settings that were changed and have no effect, or fight one another."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from soulsai.config.schema import Config
from soulsai.config.toml import toml_value
from soulsai.learning.preflight.finding import Finding

NAME = "options-cancel"
DEFAULTS = Config()
MOST_EPSILON = 0.1
"""Beside learned noise; more random actions than these leave the noise little to explore."""

Rule = tuple[bool, tuple[str, ...], str]
"""Whether it holds, the keys (or whole sections) that have no effect then, and why."""


def option_findings(config: Config) -> Iterator[Finding]:
    """Everything that was set in vain."""
    for holds, keys, why in _rules(config):
        changed = [f"{key} = {_value(config, key)}" for key in _changed(config, keys)] if holds else []
        if changed:
            verb, them = ("have", "them") if len(changed) > 1 else ("has", "it")
            yield Finding(NAME, f"{', '.join(changed)} {verb} no effect: {why}; leave {them} out, or change that")
    if config.algorithm == "q":
        yield from _conflicts(config)


def _rules(config: Config) -> Iterator[Rule]:
    yield config.run.evaluate_every_steps == 0, ("run.stop_at",), "run.evaluate_every_steps is 0"
    yield from _fight_rules(config) if config.world == "fight" else _gym_rules()
    yield from _q_rules(config) if config.algorithm == "q" else _ppo_rules()


def _fight_rules(config: Config) -> Iterator[Rule]:
    middle = ("starts.curriculum", "starts.boss_hp_share", "starts.player_hp_share", "starts.late_phase")
    starts = config.starts
    yield True, ("gym",), 'world is "fight"'
    yield starts.mid_fight == 0.0, middle, "starts.mid_fight is 0"
    yield starts.mid_fight > 0.0 and not config.fight.full, ("starts.late_phase",), "fight.full is false"
    yield bool(config.actions.names), ("actions.preset",), "actions.names names the actions"


def _gym_rules() -> Iterator[Rule]:
    yield True, ("fight", "encoder", "reward", "starts", "actions.preset", "actions.names"), 'world is "gym"'


def _ppo_rules() -> Iterator[Rule]:
    yield True, ("q", "replay"), 'algorithm is "ppo"'


def _q_rules(config: Config) -> Iterator[Rule]:
    q = config.q
    yield True, ("ppo", "network.separate"), 'algorithm is "q"'
    yield (
        q.twin,
        ("q.double", "q.target", "q.tau", "q.target_period"),
        "with q.twin there is no target network, each twin values what the other chooses",
    )
    yield q.clipped, ("q.double",), "with q.clipped both target networks choose together"
    yield not q.twin and q.target == "hard", ("q.tau",), 'q.target is "hard"'
    yield not q.noisy, ("q.noise",), "q.noisy is false"
    yield q.distribution == "none", ("q.atoms",), 'q.distribution is "none"'
    yield q.distribution != "c51", ("q.value_range",), 'q.distribution is not "c51"'
    yield q.distribution != "none", ("q.value_clip", "q.loss"), f'q.distribution is "{q.distribution}"'
    yield q.epsilon == q.final_epsilon == 0.0, ("q.spread",), "q.epsilon and q.final_epsilon are 0"
    yield q.warmup_steps == 0, ("q.random_warmup",), "q.warmup_steps is 0"
    unused = ("replay.alpha", "replay.beta", "replay.final_beta")
    yield not config.replay.prioritized, unused, "replay.prioritized is false"


def _conflicts(config: Config) -> Iterator[Finding]:
    q = config.q
    if q.noisy and q.final_epsilon > MOST_EPSILON:
        yield Finding(
            NAME,
            f"q.noisy explores by itself, but q.final_epsilon = {q.final_epsilon:g} of the actions stay random; "
            f"use {MOST_EPSILON:g} or less, such as 0",
        )
    if q.weight_decay and q.optimizer == "adam":
        yield Finding(
            NAME,
            f"q.weight_decay = {q.weight_decay:g} goes through the moments of adam and hardly decays large weights; "
            "use --set q.optimizer=adamw",
        )


def _changed(config: Config, keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        names = [key] if "." in key else [f"{key}.{field.name}" for field in fields(getattr(config, key))]
        yield from (name for name in names if _of(config, name) != _of(DEFAULTS, name))


def _value(config: Config, key: str) -> str:
    value = _of(config, key)
    return "{...}" if isinstance(value, dict) else toml_value(value)


def _of(config: Config, key: str) -> Any:
    section, name = key.split(".")
    return getattr(getattr(config, section), name)
