"""What actors ask of a network: arrays in, arrays out, whatever computes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import numpy.typing as npt

from soulsai.acting.light import LightNetwork

if TYPE_CHECKING:
    from soulsai.networks import PolicyNetwork

Floats = npt.NDArray[np.float32]
Flags = npt.NDArray[np.bool_]
Actions = npt.NDArray[np.int64]

CLOSED = np.float32(-1e9)
"""Score of a closed action."""


class ActingNetwork(Protocol):
    """Plays with the weights as they are."""

    def scores(self, x: Floats) -> Floats:
        """Scores of all actions [B, A], not masked."""

    def think(self, x: Floats) -> tuple[Floats, Floats]:
        """Logits [B, A] and values [B] of a network that has both, until the next time."""

    def values(self, x: Floats) -> Floats:
        """Values [B]."""

    def draw_noise(self, seed: int) -> None:
        """New noise in the weights, where they have any."""


def acting_network(network: PolicyNetwork | LightNetwork) -> ActingNetwork:
    """A network to play with; one of torch goes on learning meanwhile."""
    if isinstance(network, LightNetwork):
        return network
    from soulsai.acting.torch_network import TorchNetwork  # a worker never gets here: it has no torch

    return TorchNetwork(network)


def best_open(scores: Floats, masks: Flags) -> Actions:
    """The best open action of every row."""
    best: Actions = np.where(masks, scores, CLOSED).argmax(axis=1)
    return best


def draw_open(logits: Floats, masks: Flags, uniform: Floats) -> Actions:
    """Open actions drawn with the probabilities of the logits, from uniform noise of the same shape (Gumbel)."""
    finest = np.finfo(np.float32)
    noise = -np.log(-np.log(np.clip(uniform, finest.tiny, np.float32(1.0) - finest.eps / 2)))
    drawn: Actions = (np.where(masks, logits, CLOSED) + noise).argmax(axis=1)
    return drawn


def mix_random(
    greedy: Actions, masks: Flags, shares: npt.NDArray[np.float64], generator: np.random.Generator
) -> Actions:
    """The greedy actions with a share of them replaced by open ones, drawn evenly."""
    numbers = generator.random((len(greedy), masks.shape[1] + 1))
    random = np.where(masks, numbers[:, 1:], -1.0).argmax(axis=1)
    return np.where(numbers[:, 0] < shares, random, greedy)
