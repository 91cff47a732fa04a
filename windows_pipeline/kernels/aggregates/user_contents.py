"""The values inside a window, as a user's aggregate accumulates them (rule G1)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, Protocol

from windows_pipeline.aggregates import UserAggregate


class Contents(Protocol):
    """The values inside the current window, as windows of a group follow each other."""

    def enter(self, position: int, value: Any) -> None:
        """Adds a value."""
        ...

    def leave(self, position: int, value: Any) -> None:
        """Removes a value that entered before."""
        ...

    def accumulator(self) -> Any:
        """The user's accumulator of the values inside."""
        ...


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


def contents_of(user: UserAggregate, size: int) -> Contents:
    """Empty contents for values of positions below `size`."""
    return _Tree(user, max(size, 1)) if user.inverse is None else _Invertible(user, user.inverse)
