"""Policies: from encoded observations and masks to actions."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch

from soulsai.networks import PolicyNetwork
from soulsai.ops.masked import masked_argmax


class Policy(Protocol):
    """Chooses the action it thinks best."""

    def choose(self, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """The best open action of every row."""


class NetworkPolicy:
    """The action with the highest score, summed over the networks."""

    def __init__(self, *networks: PolicyNetwork) -> None:
        self.networks = networks
        self._device = next(networks[0].parameters()).device

    @torch.no_grad()
    def scores(self, observations: torch.Tensor) -> torch.Tensor:
        """What the choice goes by, for every action."""
        total = self.networks[0].scores(observations)
        for network in self.networks[1:]:
            total = total + network.scores(observations)
        return total

    def choose(self, observations: npt.NDArray[np.float32], masks: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """The best open action of every row."""
        scores = self.scores(torch.from_numpy(observations).to(self._device))
        best: npt.NDArray[np.int64] = masked_argmax(scores, torch.from_numpy(masks).to(self._device)).cpu().numpy()
        return best
