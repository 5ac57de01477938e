"""The settings of behaviour cloning."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

USES = ("demos",)
"""Common sections that not every algorithm uses."""


class CloneConfig(Struct, frozen=True):
    """Behaviour cloning from recordings; used with algorithm = "clone". A step is a demonstrated decision."""

    batch: Annotated[int, Meta(ge=1, description="decisions in a gradient step")] = 256
    learning_rate: Annotated[float, Meta(ge=0.0, le=1.0, description="of Adam")] = 1e-3
    final_learning_rate: Annotated[float, Meta(ge=0.0, le=1.0, description="share of it left at the end")] = 0.1
    weight_decay: Annotated[float, Meta(ge=0.0, le=1.0, description="of AdamW")] = 0.01
    gradient_norm: Annotated[float, Meta(ge=0.0, description="largest norm of a gradient; 0: no limit")] = 1.0
    held_out: Annotated[float, Meta(ge=0.0, le=0.9, description="share of the fights held out for validation")] = 0.1
