"""A policy and the value of what it sees."""

from __future__ import annotations

from torch import Tensor, nn

from soulsai.config.schema import NetworkConfig
from soulsai.networks.layers import linear, normalizer, torso, torso_width
from soulsai.networks.policy_network import PolicyNetwork

POLICY_GAIN = 0.01
"""Small: the first policy is nearly even over the actions (Andrychowicz et al. 2021 found this to matter)."""

VALUE_GAIN = 1.0


class ActorCritic(PolicyNetwork):
    """Observations [B, D] to logits [B, A] and values [B]."""

    scores_are = "probability"

    def __init__(self, observation_size: int, num_actions: int, network: NetworkConfig) -> None:
        super().__init__()
        width = torso_width(observation_size, network)
        self.normalizer = normalizer(observation_size, network)
        self.torso = torso(observation_size, network)
        self.value_torso = torso(observation_size, network) if network.separate else None
        """Of its own for the value; otherwise it shares that of the policy."""
        self.policy_head = linear(width, num_actions, network, gain=POLICY_GAIN)
        self.value_head = linear(width, 1, network, gain=VALUE_GAIN)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Logits of all actions, not masked, and values."""
        if self.normalizer is not None:
            x = self.normalizer(x)
        features = self.torso(x)
        value_features = features if self.value_torso is None else self.value_torso(x)
        return self.policy_head(features), self.value_head(value_features).squeeze(1)

    def chains(self) -> list[tuple[nn.Sequential, list[nn.Linear]]]:
        """Policy and value, on the same hidden layers or on their own."""
        if self.value_torso is None:
            return [(self.torso, [self.policy_head, self.value_head])]
        return [(self.torso, [self.policy_head]), (self.value_torso, [self.value_head])]

    def scores(self, x: Tensor) -> Tensor:
        """Logits of all actions, not masked."""
        logits: Tensor = self(x)[0]
        return logits

    def state_values(self, x: Tensor) -> Tensor:
        """What the value head says."""
        values: Tensor = self(x)[1]
        return values
