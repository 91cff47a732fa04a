"""Aggregates of many windows in one pass: each record enters once and leaves once.

Every function takes the `WindowArrays` of a chunk, a value of each record in the order of group and
event time, and a mask of the values that are not null. It returns a value of each window.
"""

from __future__ import annotations

import numpy as np

from windows_pipeline.compat.numba_jit import compiled
from windows_pipeline.kernels.aggregates import exact_sum
from windows_pipeline.kernels.windows.arrays import WindowArrays

_LOW_MASK = (1 << 32) - 1


def running_count(windows: WindowArrays, valid: np.ndarray) -> np.ndarray:
    """How many values of each window are not null."""
    return running_total(windows, valid.astype(np.int64))


def running_sum_of_integers(
    windows: WindowArrays, values: np.ndarray, valid: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Exact sums as high * 2**32 + low, 0 <= low < 2**32 (rule G2).

    The high and low halves of the values are summed separately, so that no sum overflows; the
    whole sum fits 64 bits where high fits 32.
    """
    numbers = np.where(valid, values, 0)
    low = running_total(windows, numbers & _LOW_MASK)
    high = running_total(windows, numbers >> 32) + (low >> 32)
    return high, low & _LOW_MASK


def running_total(windows: WindowArrays, values: np.ndarray) -> np.ndarray:
    """Sums of integers of up to 32 bits and a sign, which overflow for no length of chunk."""
    by_entry = np.concatenate(([0], np.cumsum(values[windows.enter_order])))
    by_time = np.concatenate(([0], np.cumsum(values)))
    inside: np.ndarray = by_entry[windows.entered] - by_time[windows.left]
    return inside


def running_sum_of_doubles(
    windows: WindowArrays, values: np.ndarray, valid: np.ndarray, by: np.ndarray
) -> np.ndarray:
    """Correctly rounded sums (rule G2), with NaN and infinities added as in IEEE 754.

    Args:
        windows: The windows.
        values: Doubles.
        valid: A mask of the values that are not null.
        by: The divisor of each sum: 1, or for a mean the count of the window's values.
    """
    finite = valid & np.isfinite(values)
    nans = running_count(windows, valid & np.isnan(values))
    above = running_count(windows, valid & (values == np.inf))
    below = running_count(windows, valid & (values == -np.inf))
    sums = _finite_sums(windows.entered, windows.left, windows.enter_order, values, finite, by)
    return _with_infinities(sums, nans, above, below)


def _with_infinities(
    sums: np.ndarray, nans: np.ndarray, above: np.ndarray, below: np.ndarray
) -> np.ndarray:
    """Adds NaN and infinities, given their counts, to sums of finite doubles, as in IEEE 754."""
    sums[above > 0] = np.inf
    sums[below > 0] = -np.inf
    sums[(nans > 0) | ((above > 0) & (below > 0))] = np.nan
    return sums


@compiled
def _finite_sums(
    entered: np.ndarray,
    left: np.ndarray,
    enter_order: np.ndarray,
    values: np.ndarray,
    finite: np.ndarray,
    by: np.ndarray,
) -> np.ndarray:
    sums = np.empty(len(entered), np.float64)
    digits = np.zeros(exact_sum.DIGITS, np.int64)
    scratch = np.zeros(exact_sum.DIGITS, np.int64)
    first, last = exact_sum.DIGITS, -1
    p = q = 0
    for w in range(len(entered)):
        while p < entered[w]:
            r = enter_order[p]
            if finite[r]:
                lowest, highest = exact_sum.add(digits, values[r], 1)
                first, last = min(first, lowest), max(last, highest)
            p += 1
        while q < left[w]:
            if finite[q]:
                exact_sum.add(digits, values[q], -1)
            q += 1
        sums[w] = exact_sum.rounded(digits, first, last, scratch, by[w])
    return sums


def running_sum_of_multiples(
    windows: WindowArrays,
    powers: np.ndarray,
    limbs: np.ndarray,
    limb_bits: int,
    by: np.ndarray,
    *,
    nans: np.ndarray,
    above: np.ndarray,
    below: np.ndarray,
) -> np.ndarray:
    """Correctly rounded sums of integer multiples of powers of two, and of what is not finite.

    Rule G2; NaN and infinities are added as in IEEE 754.

    Args:
        windows: The windows.
        powers: Each record's power of two, at least -1074.
        limbs: A row a limb, the lowest first, each of up to 63 bits and a sign.
        limb_bits: How many bits each limb lies above the limb before.
        by: The divisor of each sum, see `running_sum_of_doubles`.
        nans: How many values of each record are NaN.
        above: How many are infinity.
        below: How many are negative infinity.
    """
    order = windows.enter_order
    sums = _sums_of_multiples(windows.entered, windows.left, order, powers, limbs, limb_bits, by)
    counts = (running_total(windows, values) for values in (nans, above, below))
    return _with_infinities(sums, *counts)


@compiled
def _sums_of_multiples(
    entered: np.ndarray,
    left: np.ndarray,
    enter_order: np.ndarray,
    powers: np.ndarray,
    limbs: np.ndarray,
    limb_bits: int,
    by: np.ndarray,
) -> np.ndarray:
    sums = np.empty(len(entered), np.float64)
    digits = np.zeros(exact_sum.DIGITS, np.int64)
    scratch = np.zeros(exact_sum.DIGITS, np.int64)
    first, last = exact_sum.DIGITS, -1
    p = q = 0
    for w in range(len(entered)):
        while p < entered[w]:
            r = enter_order[p]
            for limb in range(len(limbs)):
                position = powers[r] - exact_sum.LOWEST_EXPONENT + limb * limb_bits
                lowest, highest = exact_sum.add_whole(digits, limbs[limb, r], position, 1)
                first, last = min(first, lowest), max(last, highest)
            p += 1
        while q < left[w]:
            for limb in range(len(limbs)):
                position = powers[q] - exact_sum.LOWEST_EXPONENT + limb * limb_bits
                exact_sum.add_whole(digits, limbs[limb, q], position, -1)
            q += 1
        sums[w] = exact_sum.rounded(digits, first, last, scratch, by[w])
    return sums


def running_largest(windows: WindowArrays, codes: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """The record with each window's largest code; -1 where the window has no valid record.

    For the record with the smallest code pass the complement (`~codes`).
    """
    return _largest(windows.group, windows.entered, windows.left, windows.enter_order, codes, valid)


@compiled
def _largest(
    group: np.ndarray,
    entered: np.ndarray,
    left: np.ndarray,
    enter_order: np.ndarray,
    codes: np.ndarray,
    valid: np.ndarray,
) -> np.ndarray:
    # The queue has the records that can still become the largest, in the order in which they leave
    # (which is the order of their numbers). Of two records, the one that leaves first stays only
    # if it is larger.
    largest = np.full(len(group), -1, np.int64)
    queue = np.empty(len(codes), np.int64)
    head = tail = p = 0
    for w in range(len(group)):
        while p < entered[w]:
            record = enter_order[p]
            p += 1
            if valid[record]:
                tail = _push(queue, head, tail, record, codes)
        while head < tail and queue[head] < left[w]:
            head += 1
        if head < tail:
            largest[w] = queue[head]
    return largest


@compiled
def _push(queue: np.ndarray, head: int, tail: int, record: int, codes: np.ndarray) -> int:
    """Inserts a record (a partly late one may go before others); returns the new tail."""
    position = tail
    while position > head and queue[position - 1] > record:
        position -= 1
    if position < tail and codes[queue[position]] >= codes[record]:
        return tail  # a record that leaves later is at least as large
    keep = position
    while keep > head and codes[queue[keep - 1]] <= codes[record]:
        keep -= 1
    later = queue[position:tail].copy()
    queue[keep] = record
    queue[keep + 1 : keep + 1 + len(later)] = later
    return keep + 1 + len(later)
