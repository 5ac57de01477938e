"""A network of torch as actors use it: in the process that learns, while it learns."""

from __future__ import annotations

import copy

import torch

from soulsai.acting.network import Floats
from soulsai.networks import ActorCritic, PolicyNetwork, QNetwork
from soulsai.networks.passes import Passes


class TorchNetwork:
    """Shares the weights, and not the noise: several may play at once, and the learner draws noise for itself."""

    def __init__(self, network: PolicyNetwork) -> None:
        self.network = _with_own_noise(network) if isinstance(network, QNetwork) and network.is_noisy else network
        self._device = next(network.parameters()).device
        is_compiled = isinstance(network, ActorCritic) and self._device.type == "cpu"
        self._passes = Passes(network) if is_compiled else None

    @torch.no_grad()
    def scores(self, x: Floats) -> Floats:
        """Scores of all actions."""
        found: Floats = self.network.scores(torch.from_numpy(x).to(self._device)).cpu().numpy()
        return found

    @torch.no_grad()
    def think(self, x: Floats) -> tuple[Floats, Floats]:
        """Logits and values, until the next time."""
        if self._passes is not None:
            logits, values = self._passes.forward(x)
            return logits, values[:, 0]
        found = self.network(torch.from_numpy(x).to(self._device))
        return found[0].cpu().numpy(), found[1].cpu().numpy()

    @torch.no_grad()
    def values(self, x: Floats) -> Floats:
        """Values."""
        found: Floats = self.network.state_values(torch.from_numpy(x).to(self._device)).cpu().numpy()
        return found

    def draw_noise(self, seed: int) -> None:
        """New noise in the weights."""
        assert isinstance(self.network, QNetwork)
        self.network.draw_noise(torch.Generator().manual_seed(seed))


def _with_own_noise(network: QNetwork) -> QNetwork:
    """The same weights and the same scale of inputs, with other noise."""
    own = copy.deepcopy(network)
    for mine, shared in zip(own.parameters(), network.parameters(), strict=True):
        mine.data = shared.data
    own.normalizer = network.normalizer
    return own
