"""The settings of PPO."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

if TYPE_CHECKING:
    from soulsai.config.schema import Config


class PPOConfig(Struct, frozen=True):
    """Proximal policy optimisation; used with algorithm = "ppo"."""

    rollout: Annotated[int, Meta(ge=1, le=65_536, description="decisions of each fight between updates")] = 32
    epochs: Annotated[int, Meta(ge=1, le=100, description="passes over a rollout")] = 4
    minibatch: Annotated[int, Meta(ge=1, description="decisions in a gradient step")] = 2048
    learning_rate: Annotated[float, Meta(ge=0.0, le=1.0, description="of Adam")] = 2e-3
    final_learning_rate: Annotated[float, Meta(ge=0.0, le=1.0, description="share of it left at the end")] = 0.05
    adam_eps: Annotated[float, Meta(ge=0.0, le=1.0, description="of Adam")] = 1e-5
    gamma: Annotated[float, Meta(ge=0.0, le=1.0, description="discount of an environment step")] = 0.98
    lam: Annotated[float, Meta(ge=0.0, le=1.0, description="decay of advantages over a decision")] = 0.9
    clip: Annotated[float, Meta(ge=0.0, le=10.0, description="largest change of a ratio that still counts")] = 0.2
    value_clip: Annotated[float, Meta(ge=0.0, description="largest change of a value that counts; 0: no limit")] = 0.0
    entropy: Annotated[float, Meta(ge=0.0, le=10.0, description="weight of the entropy at the start")] = 0.01
    final_entropy: Annotated[float, Meta(ge=0.0, le=10.0, description="weight of the entropy at the end")] = 0.001
    value: Annotated[float, Meta(ge=0.0, le=100.0, description="weight of the value loss")] = 0.5
    gradient_norm: Annotated[float, Meta(ge=0.0, description="largest norm of a gradient; 0: no limit")] = 0.5
    normalize_advantages: Annotated[bool, Meta(description="per minibatch")] = True
    target_kl: Annotated[float, Meta(ge=0.0, description="divergence that ends an update early; 0: no limit")] = 0.0


def problems(config: Config) -> Iterator[str]:
    """What cannot work together."""
    ppo = config.section(PPOConfig)
    key, number = config.side_by_side()
    collected = ppo.rollout * number
    if ppo.minibatch > collected:
        yield (
            f"ppo.minibatch = {ppo.minibatch} is more than the {collected} decisions between updates "
            f"(ppo.rollout {ppo.rollout} times {key} {number}); make it smaller"
        )
