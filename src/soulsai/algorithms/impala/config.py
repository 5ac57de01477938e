"""The settings of IMPALA."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class ImpalaConfig(Struct, frozen=True):
    """An actor-critic with V-trace, for workers that lag; used with algorithm = "impala"."""

    rollout: Annotated[
        int,
        Meta(ge=2, le=65536, description="decisions of each fight in a sequence; the last one only says what follows"),
    ] = 16
    sequences: Annotated[int, Meta(ge=1, le=65536, description="sequences in a gradient step")] = 64
    learning_rate: Annotated[float, Meta(ge=0.0, le=1.0, description="of Adam")] = 1e-3
    final_learning_rate: Annotated[
        float, Meta(ge=0.0, le=1.0, description="share of the learning rate left at the end, reached linearly")
    ] = 0.05
    adam_eps: Annotated[float, Meta(ge=0.0, le=1.0, description="of Adam")] = 1e-5
    gamma: Annotated[float, Meta(ge=0.0, le=1.0, description="discount of an environment step")] = 0.98
    rho_clip: Annotated[float, Meta(ge=0.0, le=1000.0, description="largest importance weight of a decision")] = 1.0
    c_clip: Annotated[
        float, Meta(ge=0.0, le=1000.0, description="largest importance weight of the decisions before it")
    ] = 1.0
    entropy: Annotated[float, Meta(ge=0.0, le=10.0, description="weight of the entropy at the start")] = 0.01
    final_entropy: Annotated[float, Meta(ge=0.0, le=10.0, description="weight of the entropy at the end")] = 0.001
    value: Annotated[float, Meta(ge=0.0, le=100.0, description="weight of the value loss")] = 0.5
    gradient_norm: Annotated[float, Meta(ge=0.0, description="largest norm of a gradient; 0: no limit")] = 0.5
    max_lag: Annotated[
        int, Meta(ge=0, description="how many policy versions a sequence may lag; older ones are discarded and counted")
    ] = 100
