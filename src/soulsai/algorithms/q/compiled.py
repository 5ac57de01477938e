"""A gradient step of Q-learning, compiled: what one thread does, in one call."""

from __future__ import annotations

from typing import Any

from soulsai.networks.passes import SLOPE, Y, backward, forward, numbers_of
from soulsai.ops.q_compiled import add_margin, write_slopes, write_targets
from soulsgym.compiling import njit


@njit(cache=True)
def look_ahead(plan: Any, value: int, clipped: bool, dueling: bool, networks: Any, rooms: Any, own_x: Any, x: Any,
               masks: Any, rewards: Any, discounts: Any, limit: float, targets: Any) -> None:  # fmt: skip
    """Write the targets of some rows, by what the first two networks say of what follows; the third passes its own."""
    rows, last = len(x), len(plan) - 1
    if len(own_x):
        forward(networks[2], plan, own_x, rooms[2])
    if rows:
        forward(networks[0], plan, x, rooms[0])
        forward(networks[1], plan, x, rooms[1])
        write_targets(numbers_of(rooms[0], Y, plan, last, rows), numbers_of(rooms[0], Y, plan, value, rows),
                      numbers_of(rooms[1], Y, plan, last, rows), numbers_of(rooms[1], Y, plan, value, rows),
                      clipped, dueling, masks, rewards, discounts, limit, targets)  # fmt: skip


@njit(cache=True)
def write_gradient(plan: Any, value: int, dueling: bool, network: Any, room: Any, grad: Any, x: Any, actions: Any,
                   weights: Any, targets: Any, huber: bool, errors: Any, shown: Any, margin: float,
                   margin_weight: float) -> Any:  # fmt: skip
    """That of the weighted loss after a pass, and the error of each row; gives loss, mean and largest value.

    The first rows are demonstrated, with the open actions `shown`.
    """
    rows, last = len(x), len(plan) - 1
    scores, slopes = numbers_of(room, Y, plan, last, rows), numbers_of(room, SLOPE, plan, last, rows)
    loss, mean, largest = write_slopes(scores, numbers_of(room, Y, plan, value, rows), dueling, actions, targets,
                                       weights, huber, slopes, numbers_of(room, SLOPE, plan, value, rows),
                                       errors)  # fmt: skip
    loss += add_margin(scores, actions, shown, margin, margin_weight / rows, slopes)
    backward(network, plan, x, room, grad)
    return loss, mean, largest
