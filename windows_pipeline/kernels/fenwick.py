"""Marks on places in a row, kept in a Fenwick tree: each step costs the logarithm of the row.

A place can have several.

The tree is an array of zeros, one longer than the row.
"""

from __future__ import annotations

import numpy as np

from windows_pipeline.compat.numba_jit import compiled


@compiled
def mark(tree: np.ndarray, place: int, change: int) -> None:
    """Sets so many marks on a place, or takes them away (below 0)."""
    node = place + 1
    while node < len(tree):
        tree[node] += change
        node += node & -node


@compiled
def marks_before(tree: np.ndarray, place: int) -> int:
    """How many marks are on the places before one."""
    marks = 0
    node = place
    while node > 0:
        marks += tree[node]
        node -= node & -node
    return marks


@compiled
def place_of(tree: np.ndarray, number: int) -> int:
    """The place of the mark with so many marks before it."""
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
