"""Networks, and all their numbers as one tensor."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from soulsai.config.schema import NetworkConfig, QConfig
from soulsai.networks.actor_critic import ActorCritic
from soulsai.networks.flat import FlatParameters
from soulsai.networks.noisy import NoisyLinear
from soulsai.networks.normalizer import Normalizer
from soulsai.networks.q_network import QNetwork

__all__ = [
    "ActorCritic",
    "FlatParameters",
    "NoisyLinear",
    "Normalizer",
    "QNetwork",
    "build_actor_critic",
    "build_q",
]


def build_q(
    observation_size: int, num_actions: int, network: NetworkConfig, q: QConfig, *, seed: int | None = None
) -> QNetwork:
    """A Q network with initial weights drawn from `seed`, or from torch's global generator."""
    with _drawing_from(seed):
        return QNetwork(observation_size, num_actions, network, q)


def build_actor_critic(
    observation_size: int, num_actions: int, network: NetworkConfig, *, seed: int | None = None
) -> ActorCritic:
    """A policy and value network with initial weights drawn from `seed`, or from torch's global generator."""
    with _drawing_from(seed):
        return ActorCritic(observation_size, num_actions, network)


@contextmanager
def _drawing_from(seed: int | None) -> Iterator[None]:
    if seed is None:
        yield
        return
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
