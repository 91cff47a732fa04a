"""A Fenwick tree that counts marks at positions; each operation takes logarithmic time.

A position can have several marks. The tree is an array, one longer than the number of positions,
and begins as zeros.
"""

from __future__ import annotations

import numpy as np

from windows_pipeline.compat.numba_jit import compiled


@compiled
def mark(tree: np.ndarray, position: int, change: int) -> None:
    """Adds marks to a position, or removes them where the change is negative."""
    node = position + 1
    while node < len(tree):
        tree[node] += change
        node += node & -node


@compiled
def marks_before(tree: np.ndarray, position: int) -> int:
    """How many marks all positions before this one have."""
    marks = 0
    node = position
    while node > 0:
        marks += tree[node]
        node -= node & -node
    return marks


@compiled
def position_of(tree: np.ndarray, number: int) -> int:
    """The position of the mark that has `number` marks before it."""
    step = 1
    while 2 * step < len(tree):
        step *= 2
    node = 0
    while step:
        if node + step < len(tree) and tree[node + step] <= number:
            node += step
            number -= tree[node]
        step //= 2
    return node
