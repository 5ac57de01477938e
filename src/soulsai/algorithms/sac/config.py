"""The settings of SAC."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

USES = ("replay",)
"""Common sections that not every algorithm uses."""


class SACConfig(Struct, frozen=True):
    """Soft actor-critic for discrete actions, masked; used with algorithm = "sac"."""

    gamma: Annotated[float, Meta(ge=0.0, le=1.0, description="discount of an environment step")] = 0.98
    n_step: Annotated[
        int, Meta(ge=1, le=1000, description="decisions whose rewards are summed before the bootstrap")
    ] = 1
    batch: Annotated[int, Meta(ge=1, description="transitions in a gradient step")] = 256
    update_every: Annotated[float, Meta(ge=0.001, description="environment steps for each gradient step")] = 8.0
    warmup_steps: Annotated[int, Meta(ge=0, description="environment steps before the first gradient step")] = 2000
    learning_rate: Annotated[
        float, Meta(ge=0.0, le=1.0, description="of Adam, for policy, critics and temperature")
    ] = 1e-3
    adam_eps: Annotated[float, Meta(ge=0.0, le=1.0, description="of Adam")] = 1e-8
    tau: Annotated[
        float, Meta(ge=0.0, le=1.0, description="share of the critics in a soft update of their targets")
    ] = 0.005
    temperature: Annotated[float, Meta(ge=1e-06, le=100.0, description="weight of the entropy at the start")] = 0.1
    target_entropy: Annotated[
        float,
        Meta(
            ge=0.0,
            le=1.0,
            description="target entropy, as a share of the maximum; 0: the temperature stays as it is",
        ),
    ] = 0.3
    gradient_norm: Annotated[float, Meta(ge=0.0, description="largest norm of a gradient; 0: no limit")] = 10.0
