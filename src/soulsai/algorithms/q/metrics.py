"""Metrics that only this algorithm has."""

from soulsai.telemetry.metric import Metric

METRICS = (
    Metric("epsilon", "share", "Q-learning: random actions"),
    Metric("demo_share", "share", "Q-learning: demonstrated decisions in a batch"),
)
