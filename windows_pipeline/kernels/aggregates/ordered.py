"""Distinct counts, percentiles and lists of many windows in one pass (rules G1, G2).

As in `running`, each record enters once and leaves once. The records inside are counted by value,
so a long window costs no more than a short one, except for its list.
"""

from __future__ import annotations

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.aggregates.running import running_count
from windows_pipeline.kernels.fenwick import mark, position_of
from windows_pipeline.kernels.windows.arrays import WindowArrays


def running_distinct_count(
    windows: WindowArrays, codes: np.ndarray, valid: np.ndarray, code_count: int
) -> np.ndarray:
    """How many different values each window contains; codes go from 0 to below `code_count`."""
    return _distinct(windows.entered, windows.left, windows.enter_order, codes, valid, code_count)


@compiled
def _distinct(
    entered: np.ndarray,
    left: np.ndarray,
    enter_order: np.ndarray,
    codes: np.ndarray,
    valid: np.ndarray,
    code_count: int,
) -> np.ndarray:
    distinct = np.empty(len(entered), np.int64)
    inside = np.zeros(code_count, np.int64)
    now = p = q = 0
    for w in range(len(entered)):
        while p < entered[w]:
            r = enter_order[p]
            p += 1
            if valid[r]:
                inside[codes[r]] += 1
                now += inside[codes[r]] == 1
        while q < left[w]:
            if valid[q]:
                inside[codes[q]] -= 1
                now -= inside[codes[q]] == 0
            q += 1
        distinct[w] = now
    return distinct


def running_percentile(
    starts: np.ndarray,
    windows: WindowArrays,
    codes: np.ndarray,
    values: np.ndarray,
    counts: np.ndarray,
    percentage: float,
) -> np.ndarray:
    """The value at index `percentage * (count - 1)` of each window's sorted values.

    Between two indexes it is interpolated exactly as Spark's `percentile` does.

    Args:
        starts: Where each group's records begin; one more entry for the end of the last.
        windows: The windows; the result of a window without a value is arbitrary.
        codes: The order of the values.
        values: The values as doubles.
        counts: How many times each value counts: 0 times where it is null.
        percentage: From 0 to 1.
    """
    return _percentiles(
        starts,
        windows.group,
        windows.entered,
        windows.left,
        windows.enter_order,
        codes,
        values,
        counts,
        percentage,
    )


@compiled
def _percentiles(
    starts: np.ndarray,
    group: np.ndarray,
    entered: np.ndarray,
    left: np.ndarray,
    enter_order: np.ndarray,
    codes: np.ndarray,
    values: np.ndarray,
    counts: np.ndarray,
    percentage: float,
) -> np.ndarray:
    result = np.empty(len(group), np.float64)
    w = 0
    while w < len(group):
        low, high = starts[group[w]], starts[group[w] + 1]
        order = np.argsort(codes[low:high], kind="mergesort")
        ascending, ranked = values[low:high][order], codes[low:high][order]
        rank = np.empty(high - low, np.int64)
        rank[order] = np.arange(high - low)
        tree = np.zeros(high - low + 1, np.int64)
        p = q = low
        inside = 0
        this = group[w]
        while w < len(group) and group[w] == this:
            while p < entered[w]:
                r = enter_order[p]
                p += 1
                if counts[r] > 0:
                    mark(tree, rank[r - low], counts[r])
                    inside += counts[r]
            while q < left[w]:
                if counts[q] > 0:
                    mark(tree, rank[q - low], -counts[q])
                    inside -= counts[q]
                q += 1
            if inside > 0:
                position = percentage * (inside - 1)
                result[w] = _interpolated(tree, ascending, ranked, position)
            w += 1
    return result


@compiled
def _interpolated(
    tree: np.ndarray, ascending: np.ndarray, ranked: np.ndarray, position: float
) -> float:
    below = int(position)
    lower_position = position_of(tree, below)
    lower = float(ascending[lower_position])
    if position == below:
        return lower
    upper_position = position_of(tree, below + 1)
    # Compares the values themselves, not the doubles nearest to them.
    if ranked[lower_position] == ranked[upper_position]:
        return lower
    upper = float(ascending[upper_position])
    return (below + 1 - position) * lower + (position - below) * upper


def running_lists(
    windows: WindowArrays, positions: np.ndarray, valid: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The records of each window whose value is not null, sorted by position.

    Returns:
        Where each window's records start, with one more entry for the end of the last; and the
        records.
    """
    offsets = np.concatenate(([0], np.cumsum(running_count(windows, valid))))
    record_at = np.empty(len(positions), np.int64)
    record_at[positions] = np.arange(len(positions))
    arrays = (windows.entered, windows.left, windows.enter_order, positions, record_at)
    return offsets, _lists(*arrays, valid, offsets)


@compiled
def _lists(
    entered: np.ndarray,
    left: np.ndarray,
    enter_order: np.ndarray,
    positions: np.ndarray,
    record_at: np.ndarray,
    valid: np.ndarray,
    offsets: np.ndarray,
) -> np.ndarray:
    listed = np.empty(offsets[-1], np.int64)
    inside = np.zeros(len(positions), np.bool_)
    first = len(positions)  # no record inside has a smaller position
    p = q = 0
    for w in range(len(entered)):
        while p < entered[w]:
            r = enter_order[p]
            p += 1
            if valid[r]:
                inside[positions[r]] = True
                first = min(first, positions[r])
        while q < left[w]:
            inside[positions[q]] = False
            q += 1
        if offsets[w] == offsets[w + 1]:
            continue
        while not inside[first]:
            first += 1
        position = first
        for i in range(offsets[w], offsets[w + 1]):
            while not inside[position]:
                position += 1
            listed[i] = record_at[position]
            position += 1
    return listed
