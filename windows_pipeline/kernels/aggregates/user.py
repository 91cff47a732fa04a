"""Computes a user's own aggregate of many windows (rule G1)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import pyarrow as pa

from windows_pipeline.aggregates import Aggregate, UserAggregate
from windows_pipeline.aggregates.column_type import parse_type
from windows_pipeline.kernels.aggregates.user_errors import with_location
from windows_pipeline.kernels.arrow_types import arrow_type
from windows_pipeline.kernels.values import is_valid, positions_by_time_and_value, value_codes
from windows_pipeline.kernels.windows.filled import WindowedRecords

_UNCHANGING = (bool, bytes, float, int, str, type(None))


class _Contents(Protocol):
    """The values inside the current window, as windows of a group follow each other."""

    def enter(self, position: int, value: Any) -> None: ...

    def leave(self, position: int, value: Any) -> None: ...

    def accumulator(self) -> Any: ...


class _Invertible:
    """A single accumulator: the user's `inverse` removes the values that leave."""

    def __init__(self, user: UserAggregate, inverse: Callable[[Any, Any], Any]) -> None:
        self._update, self._inverse = user.update, inverse
        self._accumulator = user.create()

    def enter(self, position: int, value: Any) -> None:
        self._accumulator = self._update(self._accumulator, value)

    def leave(self, position: int, value: Any) -> None:
        self._accumulator = self._inverse(self._accumulator, value)

    def accumulator(self) -> Any:
        return self._accumulator


class _Tree:
    """A binary tree of accumulators over the values, in the order of their positions.

    A node's accumulator is merged again only when it is needed after a value below it changed. So
    values may come in any order of positions, as partly late records do.
    """

    _EMPTY = object()
    _CHANGED = object()

    def __init__(self, user: UserAggregate, size: int) -> None:
        self._user = user
        self._leaves = 1 << (size - 1).bit_length()
        self._nodes = [self._EMPTY] * (2 * self._leaves)
        self._first, self._end = size, 0  # all values inside have positions between these

    def enter(self, position: int, value: Any) -> None:
        user = self._user
        self._change(position, user.update(user.create(), value))
        self._first, self._end = min(self._first, position), max(self._end, position + 1)

    def leave(self, position: int, value: Any) -> None:
        self._change(position, self._EMPTY)

    def accumulator(self) -> Any:
        while self._first < self._end and self._nodes[self._leaves + self._first] is self._EMPTY:
            self._first += 1
        earlier, later = [], []
        low, high = self._leaves + self._first, self._leaves + self._end
        while low < high:
            if low & 1:
                earlier.append(low)
                low += 1
            if high & 1:
                high -= 1
                later.append(high)
            low >>= 1
            high >>= 1
        return self._merged([self._node(node) for node in earlier + later[::-1]])

    def _change(self, position: int, accumulator: Any) -> None:
        nodes, node = self._nodes, self._leaves + position
        nodes[node] = accumulator
        node >>= 1
        while node and nodes[node] is not self._CHANGED:
            nodes[node] = self._CHANGED
            node >>= 1

    def _node(self, node: int) -> Any:
        found = self._nodes[node]
        if found is self._CHANGED:
            below = [self._node(2 * node), self._node(2 * node + 1)]
            full = [each for each in below if each is not self._EMPTY]
            found = self._merged(full) if full else self._EMPTY
            self._nodes[node] = found
        return found

    def _merged(self, accumulators: list[Any]) -> Any:
        # The user's merge may change its first argument, so no node's accumulator is passed there.
        merged = self._user.create()
        for each in accumulators:
            if each is not self._EMPTY:
                merged = self._user.merge(merged, each)
                if merged is each:
                    merged = copy.deepcopy(each)
        return merged


def aggregate_of_user(
    aggregate: Aggregate, user: UserAggregate, column: pa.Array, records: WindowedRecords
) -> pa.Array:
    """Computes a user's aggregate of each window.

    Raises:
        RuntimeError: A function of the user raised; names aggregate and window.
        TypeError: A result is not of the declared type; names aggregate and window.
    """
    kind = arrow_type(parse_type(user.result_type))
    results = list(_results(aggregate, user, column, records))
    try:
        return pa.array(results, kind)
    except (pa.ArrowException, TypeError, OverflowError, ValueError):
        for window, result in enumerate(results):
            _check_type(aggregate, user, result, kind, records.describe, window)
        raise


def _results(
    aggregate: Aggregate, user: UserAggregate, column: pa.Array, records: WindowedRecords
) -> Iterator[Any]:
    windows, starts = records.windows, records.starts
    valid = is_valid(column)
    codes = value_codes(column)
    positions = positions_by_time_and_value(starts, records.time_ms, codes, valid).tolist()
    counted = (valid | (not user.skip_nulls)).tolist()
    values, order = column.to_pylist(), windows.enter_order.tolist()
    group, low, entered, left = -1, 0, 0, 0
    contents: _Contents = _Tree(user, 1)
    rows = zip(windows.group.tolist(), windows.entered.tolist(), windows.left.tolist(), strict=True)
    for window, (of_group, to_enter, to_leave) in enumerate(rows):
        try:
            if of_group != group:
                group = of_group
                low = entered = left = int(starts[group])
                contents = _contents(user, int(starts[group + 1]) - low)
            for record in sorted(order[entered:to_enter], key=positions.__getitem__):
                if counted[record]:
                    contents.enter(positions[record] - low, values[record])
            for record in sorted(range(left, to_leave), key=positions.__getitem__):
                if counted[record]:
                    contents.leave(positions[record] - low, values[record])
            result = user.result(contents.accumulator())
        except Exception as error:
            raise RuntimeError(
                f"{aggregate.name}: {aggregate} failed in {records.describe(window)}: "
                f"{with_location(error)}"
            ) from error
        entered, left = to_enter, to_leave
        # A result may be part of the accumulator, which later values change.
        yield result if type(result) in _UNCHANGING else copy.deepcopy(result)


def _contents(user: UserAggregate, size: int) -> _Contents:
    return _Tree(user, size) if user.inverse is None else _Invertible(user, user.inverse)


def _check_type(
    aggregate: Aggregate,
    user: UserAggregate,
    result: Any,
    kind: pa.DataType,
    describe: Callable[[int], str],
    window: int,
) -> None:
    try:
        pa.array([result], kind)
    except (pa.ArrowException, TypeError, OverflowError, ValueError) as error:
        raise TypeError(
            f"{aggregate.name}: {aggregate} returned {result!r}, which is no {user.result_type}, "
            f"in {describe(window)}: {error}"
        ) from error
