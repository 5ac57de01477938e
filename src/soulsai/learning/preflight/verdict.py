"""All checks together, and what comes of them; those of settings and of a sample of random play are here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

import numpy as np
from msgspec.structs import fields

from soulsai.algorithms.algorithm import algorithm_of
from soulsai.algorithms.findings import MEANINGS, Finding, Sample, UselessSettings
from soulsai.config.algorithms import algorithm_settings
from soulsai.config.refusal import way_out
from soulsai.config.schema import Config
from soulsai.config.toml import toml_value
from soulsai.errors import ConfigError, PreflightError
from soulsai.experience import Sizes
from soulsai.learning.preflight.encoders import encoder_findings
from soulsai.learning.preflight.exploits import exploit_findings
from soulsai.learning.preflight.sample import play_sample
from soulsai.replay import ReplayStore
from soulsai.replay.store import BYTES_PER_GB, refuse_if_too_large
from soulsgym.errors import MisuseError

DEFAULTS = Config()
LARGEST, LARGEST_DEVIATION = 10.0, 5.0
"""Initial weights expect inputs of about 1; those of health points or animation numbers drown all others."""
NAMED = 3


def preflight(config: Config, say: Callable[[str], None]) -> None:
    """Say what looks wrong; PreflightError if something does that `run.accept` does not name."""
    _refuse_unknown(config.run.accept)
    sample = play_sample(config)
    if _has_replay(config):
        needed_gb = _replay_bytes(config, sample) / BYTES_PER_GB
        say(f"replay needs {needed_gb:.{1 if needed_gb >= 0.1 else 3}f} GB when full")
    found = _findings(config, sample)
    accepted = config.run.accept
    refused = [finding for finding in found if finding.refuses and finding.name not in accepted]
    for finding in found:
        if finding not in refused:  # those are told by the error
            say(f"{'accepted' if finding.name in accepted else 'hint'}: {finding}")
    if refused:
        raise PreflightError(_refusal(refused, accepted))


def findings(config: Config) -> list[Finding]:
    """Everything that looks wrong about a config."""
    return _findings(config, play_sample(config))


def _findings(config: Config, sample: Sample) -> list[Finding]:
    return [
        *option_findings(config),
        *decision_findings(config),
        *algorithm_of(config).findings(config, sample),
        *replay_findings(config, sample),
        *sight_findings(config, sample),
        *encoder_findings(config),
        *exploit_findings(config),
    ]


def _refuse_unknown(accepted: Sequence[str]) -> None:
    for name in accepted:
        if name not in MEANINGS:
            advice = way_out(name, MEANINGS, '"{}"')
            raise ConfigError(f"run.accept has the unknown finding {toml_value(name)}; {advice}")


def _refusal(refused: Sequence[Finding], accepted: Sequence[str]) -> str:
    listed = " ".join(f"({number}) {finding};" for number, finding in enumerate(refused, 1))
    # The list of a setting is replaced as a whole, so what is accepted already has to be in it.
    names = toml_value(tuple(dict.fromkeys([*accepted, *(finding.name for finding in refused)])))
    return f"the preflight found: {listed} if this is intended, use --set run.accept='{names}' or --accept-all"


# Settings


def option_findings(config: Config) -> Iterator[Finding]:
    """Everything that was set in vain."""
    for holds, keys, why in _rules(config):
        changed = [f"{key} = {_value(config, key)}" for key in _changed_keys(config, keys)] if holds else []
        if changed:
            verb, them = ("have", "them") if len(changed) > 1 else ("has", "it")
            yield Finding(
                "options-cancel", f"{', '.join(changed)} {verb} no effect: {why}; leave {them} out, or change that"
            )


def decision_findings(config: Config) -> Iterator[Finding]:
    """Steps without a choice that are learned from as if they had one."""
    if config.world == "fight" and not config.fight.decisions:
        yield Finding(
            "decisions-unmerged",
            "fight.decisions is false: more than half of what is learned from are steps without any choice; "
            "use --set fight.decisions=true",
        )


def _rules(config: Config) -> Iterator[UselessSettings]:
    yield UselessSettings(config.run.evaluate_every_steps == 0, ("run.stop_at",), "run.evaluate_every_steps is 0")
    if config.world == "fight":
        yield from _fight_rules(config)
    else:
        fights = ("fight", "encoder", "reward", "starts", "actions.preset", "actions.names")
        yield UselessSettings(True, fights, 'world is "gym"')
    settings, algorithm = algorithm_settings(), algorithm_of(config)
    unused = {name for one in settings.values() for name in one.uses} - set(settings[algorithm.name].uses)
    others = (*(name for name in settings if name != algorithm.name), *sorted(unused))
    yield UselessSettings(True, others, f'algorithm is "{algorithm.name}"')
    yield from algorithm.useless(config)


def _fight_rules(config: Config) -> Iterator[UselessSettings]:
    middle = ("starts.curriculum", "starts.boss_hp_share", "starts.player_hp_share", "starts.late_phase")
    starts = config.starts
    yield UselessSettings(True, ("gym",), 'world is "fight"')
    yield UselessSettings(starts.mid_fight == 0.0, middle, "starts.mid_fight is 0")
    yield UselessSettings(
        starts.mid_fight > 0.0 and not config.fight.full, ("starts.late_phase",), "fight.full is false"
    )
    yield UselessSettings(bool(config.actions.names), ("actions.preset",), "actions.names names the actions")


def _changed_keys(config: Config, keys: tuple[str, ...]) -> Iterator[str]:
    for key in keys:
        names = [key] if "." in key else [f"{key}.{field.name}" for field in fields(getattr(config, key))]
        yield from (name for name in names if attrgetter(name)(config) != attrgetter(name)(DEFAULTS))


def _value(config: Config, key: str) -> str:
    value = attrgetter(key)(config)
    return "{...}" if isinstance(value, dict) else toml_value(value)


# What random play has met


def replay_findings(config: Config, sample: Sample) -> Iterator[Finding]:
    """A replay that is larger than the memory that is free."""
    if not _has_replay(config):
        return
    try:
        refuse_if_too_large(_replay_bytes(config, sample), f"replay.capacity = {config.replay.capacity}")
    except MisuseError as error:
        yield Finding("replay-too-large", str(error))


def _has_replay(config: Config) -> bool:
    return "replay" in algorithm_settings()[config.algorithm].uses


def _replay_bytes(config: Config, sample: Sample) -> int:
    schema = algorithm_of(config).schema(config, Sizes(len(sample.names), sample.num_actions, 0, 1))
    return ReplayStore.bytes_needed(config.replay.capacity, schema)


def sight_findings(config: Config, sample: Sample) -> Iterator[Finding]:
    """Inputs that are too large, and masks that nobody uses."""
    if not config.network.normalize:
        yield from _input_findings(sample)
    if not config.actions.masks and sample.closed_share > 0.0:
        yield Finding(
            "mask-unused",
            f"{sample.closed_share:.0%} of the actions are closed at a time and do nothing, but actions.masks is "
            "false: they are tried and learned all the same; use --set actions.masks=true",
        )


def _input_findings(sample: Sample) -> Iterator[Finding]:
    # Written so that what is not a number is too large as well.
    small = (np.maximum(np.abs(sample.low), np.abs(sample.high)) <= LARGEST) & (sample.deviation <= LARGEST_DEVIATION)
    large = np.flatnonzero(~small)
    if not len(large):
        return
    named = [f"{sample.names[i]} ({sample.low[i]:.4g} to {sample.high[i]:.4g})" for i in large[:NAMED]]
    more = f" and {len(large) - NAMED} more" if len(large) > NAMED else ""
    yield Finding(
        "inputs-not-normalised",
        f"large beside the other inputs: {', '.join(named)}{more}; use --set network.normalize=true",
    )
