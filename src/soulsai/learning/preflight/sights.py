"""What the network gets to see: inputs of a size it can learn from, and masks that are used."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from soulsai.config.schema import Config
from soulsai.learning.preflight.finding import Finding
from soulsai.learning.preflight.sample import Sample

LARGEST = 10.0
LARGEST_DEVIATION = 5.0
"""Initial weights expect inputs of about 1; those of health points or animation numbers drown all others."""
NAMED = 3


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
