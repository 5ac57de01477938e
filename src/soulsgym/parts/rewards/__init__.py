"""Rewards: what is good and what is bad, as named terms with weights."""

from soulsgym.parts.rewards.presets import PRESETS, SOULSGYM, make_reward
from soulsgym.parts.rewards.reward import Reward
from soulsgym.parts.rewards.term import Term, term
from soulsgym.parts.rewards.terms import TERMS

__all__ = ["PRESETS", "SOULSGYM", "TERMS", "Reward", "Term", "make_reward", "term"]
