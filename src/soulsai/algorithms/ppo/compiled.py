"""A gradient step of PPO, compiled: what one thread does, in one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from soulsai.networks.passes import SLOPE, Y, backward, forward, inputs_of, numbers_of
from soulsai.ops.ppo_compiled import write_slopes
from soulsgym.compiling import njit

BLOCK = 256
"""Rows at once: what passes leave behind stays in the cache of the core."""


@njit(cache=True)
def write_gradient(plan: Any, value: int, network: Any, room: Any, grad: Any, observations: Any, index: Any, masks: Any,
                   actions: Any, log_probs: Any, advantages: Any, values: Any, returns: Any, clip: float,
                   value_clip: float, value_weight: float, entropy_weight: float, scale: float,
                   sums: Any) -> None:  # fmt: skip
    """That of the rows that `index` names; their advantages are given in its order."""
    last, more = len(plan) - 1, np.empty_like(grad)
    for begin in range(0, len(index), BLOCK):
        part = index[begin : begin + BLOCK]
        rows = len(part)
        x = inputs_of(room, plan, rows)
        for i in range(rows):
            x[i] = observations[part[i]]
        forward(network, plan, x, room)
        write_slopes(numbers_of(room, Y, plan, last, rows), numbers_of(room, Y, plan, value, rows), part, masks,
                     actions, log_probs, advantages[begin : begin + BLOCK], values, returns, clip, value_clip,
                     value_weight, entropy_weight, scale, numbers_of(room, SLOPE, plan, last, rows),
                     numbers_of(room, SLOPE, plan, value, rows), sums)  # fmt: skip
        backward(network, plan, x, room, more if begin else grad)
        if begin:
            for i in range(len(grad)):
                grad[i] += more[i]
