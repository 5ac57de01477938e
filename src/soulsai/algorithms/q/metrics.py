"""Metrics that only this algorithm has."""

from soulsai.telemetry.metric import Metric

METRICS = (Metric("epsilon", "share", "Q-learning: random actions"),)
