"""Metrics that only this algorithm has."""

from soulsai.telemetry.metric import Metric

METRICS = (
    Metric("policy/clip_fraction", "share", "PPO: samples whose probability ratio left the clipping range"),
    Metric("value/explained_variance", "", "PPO: 1 is a perfect value head, 0 no better than a constant"),
)
