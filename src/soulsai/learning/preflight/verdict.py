"""All checks together, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from soulsai.config.refusal import did_you_mean
from soulsai.config.schema import Config
from soulsai.config.toml import toml_value
from soulsai.errors import ConfigError, PreflightError
from soulsai.learning.preflight.encoders import encoder_findings
from soulsai.learning.preflight.exploits import exploit_findings
from soulsai.learning.preflight.finding import MEANINGS, Finding
from soulsai.learning.preflight.limits import limit_findings
from soulsai.learning.preflight.options import option_findings
from soulsai.learning.preflight.replay import replay_findings, replay_need
from soulsai.learning.preflight.sample import Sample, play_sample
from soulsai.learning.preflight.sights import sight_findings
from soulsai.learning.preflight.value_range import value_range_findings


def preflight(config: Config, say: Callable[[str], None]) -> None:
    """Say what looks wrong; PreflightError if something does that `run.accept` does not name."""
    _refuse_unknown(config.run.accept)
    sample = play_sample(config)
    if config.algorithm == "q":
        say(replay_need(config, sample))
    found = _findings(config, sample)
    accepted = config.run.accept
    for finding in found:
        say(_said(finding, accepted))
    refused = [finding for finding in found if finding.refuses and finding.name not in accepted]
    if refused:
        raise PreflightError(_refusal(refused, accepted))


def findings(config: Config) -> list[Finding]:
    """Everything that looks wrong about a config."""
    return _findings(config, play_sample(config))


def _findings(config: Config, sample: Sample) -> list[Finding]:
    return [
        *option_findings(config),
        *limit_findings(config, sample),
        *value_range_findings(config, sample),
        *replay_findings(config, sample),
        *sight_findings(config, sample),
        *encoder_findings(config),
        *exploit_findings(config),
    ]


def _refuse_unknown(accepted: Sequence[str]) -> None:
    for name in accepted:
        if name not in MEANINGS:
            near = did_you_mean(name, MEANINGS)
            way_out = f"did you mean {toml_value(near)}?" if near else f"there are {', '.join(MEANINGS)}"
            raise ConfigError(f"run.accept has the unknown finding {toml_value(name)}; {way_out}")


def _said(finding: Finding, accepted: Sequence[str]) -> str:
    if finding.name in accepted:
        return f"accepted: {finding}"
    return f"found: {finding}" if finding.refuses else f"hint: {finding}"


def _refusal(refused: Sequence[Finding], accepted: Sequence[str]) -> str:
    listed = " ".join(f"({number}) {finding};" for number, finding in enumerate(refused, 1))
    # The list of a setting is replaced as a whole, so what is accepted already has to be in it.
    names = toml_value(tuple(dict.fromkeys([*accepted, *(finding.name for finding in refused)])))
    return f"the preflight found: {listed} if this is intended, use --set run.accept='{names}' or --accept-all"
