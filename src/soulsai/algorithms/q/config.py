"""The settings of Q-learning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta, Struct

if TYPE_CHECKING:
    from soulsai.config.schema import Config

USES = ("replay", "demos")
"""Common sections that not every algorithm uses."""


class QConfig(Struct, frozen=True):
    """Q-learning, composed; used with algorithm = "q"."""

    double: Annotated[bool, Meta(description="the online network chooses, the target network evaluates")] = False
    twin: Annotated[
        bool,
        Meta(description="two online networks; a coin decides which learns from the other; acting takes their sum"),
    ] = False
    clipped: Annotated[bool, Meta(description="two networks; targets take the smaller value, against optimism")] = False
    dueling: Annotated[bool, Meta(description="separate value and advantage streams")] = False
    noisy: Annotated[bool, Meta(description="exploration by learned noise in the weights of the head")] = False
    noise: Annotated[float, Meta(ge=0.0, le=10.0, description="initial size of that noise")] = 0.5
    distribution: Annotated[
        Literal["none", "c51", "quantile"],
        Meta(description="learn the mean of the return, or its distribution"),
    ] = "none"
    atoms: Annotated[int, Meta(ge=2, le=1001, description="atoms of c51, or quantiles")] = 51
    value_range: Annotated[tuple[float, float], Meta(description="c51: lowest and highest return")] = (-10.0, 10.0)
    n_step: Annotated[int, Meta(ge=1, le=1000, description="decisions summed before the bootstrap")] = 1
    gamma: Annotated[float, Meta(ge=0.0, le=1.0, description="discount of an environment step")] = 0.98
    batch: Annotated[int, Meta(ge=1, description="transitions in a gradient step")] = 256
    update_every: Annotated[float, Meta(ge=1e-3, description="environment steps for each gradient step")] = 8.0
    burst: Annotated[int, Meta(ge=1, le=100_000, description="gradient steps done at once")] = 1
    warmup_steps: Annotated[int, Meta(ge=0, description="environment steps before the first gradient step")] = 2000
    random_warmup: Annotated[bool, Meta(description="act randomly during the warm-up")] = False
    optimizer: Annotated[Literal["adam", "adamw"], Meta(description="adam or adamw")] = "adam"
    learning_rate: Annotated[float, Meta(ge=0.0, le=1.0, description="of the optimizer")] = 1e-3
    final_learning_rate: Annotated[float, Meta(ge=0.0, le=1.0, description="share of it left at the end")] = 1.0
    adam_eps: Annotated[float, Meta(ge=0.0, le=1.0, description="of the optimizer")] = 1e-8
    weight_decay: Annotated[float, Meta(ge=0.0, le=1.0, description="of adamw")] = 0.0
    loss: Annotated[Literal["huber", "mse"], Meta(description="of the mean")] = "huber"
    value_clip: Annotated[float, Meta(ge=0.0, description="targets are clipped to plus or minus this; 0: no limit")] = (
        0.0
    )
    gradient_norm: Annotated[float, Meta(ge=0.0, description="largest norm of a gradient; 0: no limit")] = 10.0
    target: Annotated[Literal["soft", "hard"], Meta(description="soft: a little each period; hard: a copy")] = "soft"
    tau: Annotated[float, Meta(ge=0.0, le=1.0, description="share of the online network in a soft update")] = 0.005
    target_period: Annotated[int, Meta(ge=1, description="gradient steps between target updates")] = 1
    epsilon: Annotated[float, Meta(ge=0.0, le=1.0, description="share of random actions at the start")] = 1.0
    final_epsilon: Annotated[float, Meta(ge=0.0, le=1.0, description="share of random actions at the end")] = 0.02
    epsilon_steps: Annotated[int, Meta(ge=1, description="environment steps until the final share")] = 50_000
    spread: Annotated[
        float,
        Meta(
            ge=0.0,
            le=20.0,
            description="exponent that spreads epsilon over the fights, large to small; 0: the same for all",
        ),
    ] = 0.0


def names_of(q: QConfig) -> tuple[str, ...]:
    """The names of the networks that act together."""
    return ("network", "twin") if q.twin or q.clipped else ("network",)


def problems(config: Config) -> Iterator[str]:
    """What cannot work together."""
    q, capacity = config.section(QConfig), config.replay.capacity
    low, high = q.value_range
    if not low < high:
        yield f"q.value_range = [{low}, {high}] must be the lowest return and then a higher one"
    if q.twin and q.clipped:
        yield "q.twin and q.clipped are two ways of using two networks; set one of them"
    key, number = config.side_by_side()
    added = number * q.n_step
    if capacity < max(q.batch, added):
        yield (
            f"replay.capacity = {capacity} is too small: it must hold q.batch ({q.batch}) "
            f"and {key} times q.n_step ({added}) transitions"
        )
