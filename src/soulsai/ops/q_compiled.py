"""Target and loss of Q-learning in one pass over the rows each, for the processor; the equations are those of
`q_targets.py`, `losses.py` and `importance.py`.

A network's values are given as its heads say them: advantages [B, A] and values [B, 1], or without `dueling` the
values of all actions, and anything for the second.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from soulsgym.compiling import inner, njit


@inner(cache=True)
def _level(advantages: Any, value: float, dueling: bool) -> float:
    """What dueling adds to all advantages of a row."""
    if not dueling:
        return 0.0
    total = 0.0
    for j in range(len(advantages)):
        total += advantages[j]
    return value - total / len(advantages)


@njit(cache=True)
def write_targets(first: Any, of_first: Any, second: Any, of_second: Any, clipped: bool, dueling: bool, masks: Any,
                  rewards: Any, discounts: Any, limit: float, targets: Any) -> None:  # fmt: skip
    """From the value, by the second, of the open action that the first finds best; or `clipped`, of the one that both
    together find best, the smaller value."""
    for row in range(len(targets)):
        best, highest = 0, -np.inf
        for j in range(first.shape[1]):
            score = first[row, j] + second[row, j] if clipped else first[row, j]
            if masks[row, j] and score > highest:
                best, highest = j, score
        value = second[row, best] + _level(second[row], of_second[row, 0], dueling)
        if clipped:
            other = first[row, best] + _level(first[row], of_first[row, 0], dueling)
            value = other if other <= value else value
        target = rewards[row] + discounts[row] * value
        if limit > 0.0 and abs(target) > limit:
            target = limit if target > 0.0 else -limit
        targets[row] = target


@njit(cache=True)
def write_slopes(advantages: Any, values: Any, dueling: bool, actions: Any, targets: Any, weights: Any, huber: bool,
                 to_advantages: Any, to_values: Any, errors: Any) -> tuple[float, float, float]:  # fmt: skip
    """Slopes of the weighted mean loss, and the error of each row; gives the loss, the mean and the largest value."""
    loss, total, largest, count = 0.0, 0.0, -np.inf, advantages.shape[1]
    scale = 1.0 / len(actions)
    for row in range(len(actions)):
        q = advantages[row, actions[row]] + _level(advantages[row], values[row, 0], dueling)
        error = q - targets[row]
        size = abs(error)
        slope = scale * weights[row] * (2.0 * error if not huber else error if size <= 1.0 else error / size)
        loss += weights[row] * (error * error if not huber else 0.5 * error * error if size <= 1.0 else size - 0.5)
        for j in range(count):
            to_advantages[row, j] = -slope / count if dueling else 0.0
        to_advantages[row, actions[row]] += slope
        if dueling:
            to_values[row, 0] = slope
        errors[row] = size
        total += q
        largest = max(largest, q)
    return scale * loss, scale * total, largest


@njit(cache=True)
def add_margin(advantages: Any, actions: Any, opened: Any, margin: float, weight: float, to_advantages: Any) -> float:
    """Add the slopes of the margin of the first rows, those with `opened` actions; gives their weighted loss.

    What dueling adds is the same for all actions of a row, so advantages stand for values.
    """
    loss = 0.0
    for row in range(len(opened)):
        chosen = actions[row]
        best, highest = chosen, advantages[row, chosen]
        for j in range(advantages.shape[1]):
            if j != chosen and opened[row, j] and advantages[row, j] + margin > highest:
                best, highest = j, advantages[row, j] + margin
        loss += weight * (highest - advantages[row, chosen])
        to_advantages[row, best] += weight
        to_advantages[row, chosen] -= weight
    return loss
