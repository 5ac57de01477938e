"""The reward of SoulsGym: shares of health, a little at the end, and a pull to the middle of the arena."""

from __future__ import annotations

from soulsgym.parts.rewards.weighted import WeightedReward

WEIGHTS = {"dealt": 1.0, "taken": 1.0, "end": 0.1, "centre": 0.01}


class SoulsGymReward(WeightedReward):
    """Per step: shares of health taken and lost, +-0.1 at the end, 0.01 per metre towards the middle."""

    def __init__(self, n: int, centre_m: tuple[float, float]) -> None:
        super().__init__(n, WEIGHTS, centre_m=centre_m)
