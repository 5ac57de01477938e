"""What the preflight can find out about a run's settings, and the names by which findings are accepted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MEANINGS: Mapping[str, str] = MappingProxyType(
    {
        "options-cancel": "a setting was changed that another one makes useless",
        "few-updates": "each new transition is learned from too few times",
        "many-updates": "each new transition is learned from too many times",
        "target-period": "the target network follows too fast or too slowly",
        "learning-rate": "the learning rate is far from all that ever worked",
        "warmup-too-long": "the warm-up takes the whole run",
        "epsilon-unfinished": "the run ends before exploration has come down",
        "beta-above-one": "importance weights correct for more than there is to correct",
        "n-step-uncorrected": "returns over several decisions, with rewards of choices long given up",
        "decisions-unmerged": "steps without a choice are learned from as if they had one",
        "minibatch-remainder": "the last decisions of a rollout fill no minibatch",
        "value-range": "returns lie outside of what c51 can say",
        "replay-too-large": "the replay does not fit into memory",
        "inputs-not-normalised": "inputs are large beside the others",
        "mask-unused": "the environment says which actions are masked, and the mask is ignored",
        "encoder-not-reset": "what the network sees of a fight depends on the fight before",
        "reward-exploit": "a silly way to play earns as much as a good one",
    }
)
"""Every finding there can be, and what it means."""


@dataclass(frozen=True)
class Finding:
    """Something that looks wrong: the reason and the way out. Without `refuses` it is only a hint."""

    name: str
    text: str
    refuses: bool = True

    def __str__(self) -> str:
        return f"{self.name}: {self.text}"


class UselessSettings(NamedTuple):
    """Keys, or whole sections, that have no effect where `holds`, and why."""

    holds: bool
    keys: tuple[str, ...]
    why: str


@dataclass(frozen=True, eq=False)
class Sample:
    """What a little random play has met."""

    names: tuple[str, ...]  # of the inputs
    low: Floats  # of each input
    high: Floats
    deviation: Floats
    num_actions: int
    closed_share: float  # of all actions, over time
    steps_per_decision: float
    lowest_return: float  # discounted, from any step to the end of its episode or of the sample
    highest_return: float
    worst_return: float  # of a fight, by the weights of the reward
    best_return: float


LOWEST_RATE, HIGHEST_RATE = 1e-6, 1e-2
"""All published settings for such networks lie between 1e-5 and 3e-3."""


def rate_findings(key: str, rate: float) -> Iterator[Finding]:
    """A learning rate that is far from all that ever worked."""
    if not LOWEST_RATE <= rate <= HIGHEST_RATE:
        yield Finding(
            "learning-rate", f"{key} = {rate:g} is not within {LOWEST_RATE:g} to {HIGHEST_RATE:g}; begin with 1e-3"
        )
