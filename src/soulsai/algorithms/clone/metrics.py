"""Metrics that only this algorithm has."""

from soulsai.telemetry.metric import Metric

METRICS = (
    Metric("loss/clone", "nat", "cloning: how unlikely the policy finds what was demonstrated"),
    Metric("clone/agreement", "share", "cloning: decisions that the policy would have made, too"),
    Metric("clone/held_out", "share", "cloning: the same in fights that it does not learn from"),
)
