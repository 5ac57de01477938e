"""Rewards: what is good and what is bad, as named terms."""

from soulsgym.parts.rewards.soulsgym import SoulsGymReward

__all__ = ["SoulsGymReward"]
