"""The contract's count windows in slow, plain Python (rule F1; rule 6 of Flink's cases)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Fired(NamedTuple):
    """A window that its last record completed.

    Attributes:
        key: Whose it is.
        held: The indices of its records, in the order in which they came.
    """

    key: object
    held: tuple[int, ...]


def count_windows(
    keys: Iterable[object], size: int, advance: int, *, short_first: bool
) -> list[Fired]:
    """What fires as records come, one by one.

    Args:
        keys: The records' keys in arrival order; None is a key as any other.
        size: How many records a window holds.
        advance: How many come between one and the next.
        short_first: DataStream's countWindow(size, advance), not the Table API.
    """
    come: defaultdict[object, list[int]] = defaultdict(list)
    fired = []
    for index, key in enumerate(keys):
        own = come[key]
        own.append(index)
        if short_first:
            fires = len(own) % advance == 0
        else:
            fires = len(own) >= size and (len(own) - size) % advance == 0
        if fires:
            fired.append(Fired(key, tuple(own[-size:])))
    return fired


def values_of(held: Sequence[int], values: Sequence[V]) -> list[V]:
    """A window's values in the order in which they came."""
    return [values[index] for index in held]
