"""The loss of PPO and its gradient in one pass over the rows, and the choice of actions in another, for the processor;
the equations are those of `ppo.py` and `masked.py`.

A loss made of torch's operations reads and writes each row some thirty times, which takes as long as a fifth of the
network's own passes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from soulsai.ops.exponential import FAST, exp_
from soulsgym.compiling import inner, njit

METRICS = ("loss/policy", "loss/value", "policy/entropy", "policy/kl", "policy/clip_fraction")
"""What `write_slopes` adds up."""
ZERO, LOWER_THAN_ALL, CLOSED = np.float32(0.0), np.float32(-np.inf), np.float32(-1e9)


@inner(cache=True, fastmath=set(FAST))
def _exponentials(logits: Any, masks: Any, index: Any, p: Any, highest: Any) -> None:
    """Write exp(logit - highest) of all open actions, and the highest of each row; 0 for closed ones, nearly."""
    for i in range(len(logits)):
        mask, best = masks[index[i]], LOWER_THAN_ALL
        for j in range(logits.shape[1]):
            z = logits[i, j] if mask[j] else CLOSED
            best = best if z <= best else z
            p[i, j] = z
        highest[i] = best
        for j in range(logits.shape[1]):
            p[i, j] -= best
    exp_(p.reshape(p.size), np.empty(p.size, np.int32))


@njit(cache=True, fastmath=set(FAST))
def write_slopes(logits: Any, new_values: Any, index: Any, masks: Any, actions: Any, log_probs: Any, advantages: Any,
                 values: Any, returns: Any, clip: float, value_clip: float, value_weight: float,
                 entropy_weight: float, scale: float, to_logits: Any, to_values: Any, sums: Any) -> None:  # fmt: skip
    """Slopes of `scale` times the sum of the losses of the rows that `index` names, by logits and values of these."""
    count, highest = logits.shape[1], np.empty(len(index), np.float32)
    _exponentials(logits, masks, index, to_logits, highest)
    for i in range(len(index)):
        row = index[i]
        z, mask, p, action, advantage = logits[i], masks[row], to_logits[i], actions[row], advantages[i]
        total, entropy = p.sum(), ZERO
        level = highest[i] + np.log(total)
        for j in range(count):
            p[j] = p[j] / total if mask[j] else ZERO
            entropy -= p[j] * (z[j] - level)
        log_ratio = z[action] - level - log_probs[row]
        ratio = np.exp(log_ratio)
        is_cut = ratio > 1.0 + clip if advantage > 0.0 else ratio < 1.0 - clip
        near = min(max(ratio, 1.0 - clip), 1.0 + clip)
        push = 0.0 if is_cut else -ratio * advantage  # of the loss, by the log probability of the action
        for j in range(count):
            p[j] *= np.float32(scale) * (np.float32(entropy_weight) * (z[j] - level + entropy) - np.float32(push))
        p[action] += scale * push
        error = new_values[i, 0] - returns[row]
        slope = error
        if value_clip > 0.0:
            moved = new_values[i, 0] - values[row]
            near_error = values[row] + min(max(moved, -value_clip), value_clip) - returns[row]
            if near_error * near_error > error * error:
                error, slope = near_error, near_error if abs(moved) <= value_clip else 0.0
        to_values[i, 0] = scale * value_weight * slope
        sums[0] -= scale * advantage * (near if is_cut else ratio)
        sums[1] += scale * 0.5 * error * error
        sums[2] += scale * entropy
        sums[3] += scale * (ratio - 1.0 - log_ratio)
        sums[4] += scale * (abs(ratio - 1.0) > clip)


@njit(cache=True)
def draw_actions(logits: Any, masks: Any, uniform: Any, actions: Any, log_probs: Any) -> None:
    """Open actions [B], drawn with the probabilities of the logits from even numbers [0, 1) of each row."""
    p, highest = np.empty_like(logits), np.empty(len(logits), np.float32)
    _exponentials(logits, masks, np.arange(len(logits)), p, highest)
    for row in range(len(logits)):
        total = p[row].sum()
        left, action = uniform[row] * total, 0
        for j in range(logits.shape[1]):
            if masks[row, j]:
                action = j  # the last open one if rounding leaves a little
                left -= p[row, j]
                if left < 0.0:
                    break
        actions[row] = action
        log_probs[row] = logits[row, action] - highest[row] - np.log(total)
