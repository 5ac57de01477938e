"""What a policy asks of a network."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Literal

from torch import Tensor, nn

from soulsai.networks.normalizer import Normalizer


class PolicyNetwork(nn.Module, ABC):
    """Observations [B, D] to scores of all actions [B, A]; the best open one is played."""

    scores_are: ClassVar[Literal["probability", "q"]]
    """What scores mean to those who look at them: logits of probabilities, or values."""

    normalizer: Normalizer | None
    """What scales the inputs."""

    @abstractmethod
    def chains(self) -> list[tuple[nn.Sequential, list[nn.Linear]]]:
        """Hidden layers, and the heads that look at the last of them; empty if a head is not linear."""

    @abstractmethod
    def scores(self, x: Tensor) -> Tensor:
        """Scores of all actions, not masked."""

    def state_values(self, x: Tensor) -> Tensor:
        """What the network expects of each state; one whose scores are values knows nothing beside them."""
        raise NotImplementedError

    def quiet(self) -> None:
        """Play without noise, if the network has any."""
