"""Metrics that only this algorithm has."""

from soulsai.telemetry.metric import Metric

METRICS = (Metric("temperature", "", "SAC: weight of the entropy"),)
