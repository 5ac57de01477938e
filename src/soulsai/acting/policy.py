"""Greedy policies: from encoded observations and masks to actions."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from soulsai.networks import ActorCritic, QNetwork
from soulsai.ops.masked import masked_argmax


class Policy(Protocol):
    """Chooses the action it thinks best."""

    def choose(self, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """The best open action of every row."""


class NetworkPolicy:
    """The best action by a network: the most probable, or the one of highest value summed over twins."""

    def __init__(self, *networks: ActorCritic | QNetwork) -> None:
        self.networks = networks
        self._device = next(networks[0].parameters()).device

    @torch.no_grad()
    def scores(self, observations: torch.Tensor) -> torch.Tensor:
        """What the choice goes by, for every action."""
        total = _scores(self.networks[0], observations)
        for network in self.networks[1:]:
            total = total + _scores(network, observations)
        return total

    def choose(self, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """The best open action of every row."""
        scores = self.scores(torch.from_numpy(observations).to(self._device))
        best: npt.NDArray[np.int64] = masked_argmax(scores, torch.from_numpy(masks).to(self._device)).cpu().numpy()
        return best


def _scores(network: ActorCritic | QNetwork, observations: torch.Tensor) -> torch.Tensor:
    if isinstance(network, ActorCritic):
        logits: torch.Tensor = network(observations)[0]
        return logits
    return network.means(observations)
