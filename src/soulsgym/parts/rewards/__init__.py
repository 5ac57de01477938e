"""Rewards: what is good and what is bad, as named terms with weights."""

from soulsgym.parts.rewards.own import term
from soulsgym.parts.rewards.presets import PRESETS, make_reward
from soulsgym.parts.rewards.reward import Reward, Term
from soulsgym.parts.rewards.soulsgym import SoulsGymReward
from soulsgym.parts.rewards.terms import TERMS
from soulsgym.parts.rewards.weighted import WeightedReward

__all__ = ["PRESETS", "TERMS", "Reward", "SoulsGymReward", "Term", "WeightedReward", "make_reward", "term"]
