"""Networks, and all their numbers as one tensor."""

from soulsai.networks.actor_critic import ActorCritic
from soulsai.networks.adam import Adam
from soulsai.networks.flat import FlatParameters
from soulsai.networks.noisy import NoisyLinear
from soulsai.networks.normalizer import Normalizer
from soulsai.networks.policy_network import PolicyNetwork
from soulsai.networks.q_network import QNetwork

__all__ = ["ActorCritic", "Adam", "FlatParameters", "NoisyLinear", "Normalizer", "PolicyNetwork", "QNetwork"]
