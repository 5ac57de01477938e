"""What a check has found, and the names findings are accepted by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

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
        "mask-unused": "the world says which actions are closed, and nobody listens",
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
