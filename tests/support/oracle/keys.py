"""Keys and filters of definitions in slow, plain Python (rule A9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol, TypeVar

from tests.support.oracle.windows import Key, Record

FILTERED_OUT = "filtered out"
"""A key whose windows nobody asks for; its records advance stream time, as all do (rule A2)."""


class Keyed(Protocol):
    """What the oracle returns of a key."""

    @property
    def key(self) -> Key: ...


T = TypeVar("T", bound=Keyed)


def seen_by(
    records: Sequence[Record],
    key: Callable[[Record], Key],
    passes: Callable[[Record], bool],
) -> list[Record]:
    """The records with the definition's key; `FILTERED_OUT` is the key of those that don't pass."""
    return [
        replace(record, key=key(record) if passes(record) else FILTERED_OUT) for record in records
    ]


def asked_for(found: Iterable[T]) -> list[T]:
    """What the oracle found, without what it found of records that are filtered out."""
    return [each for each in found if each.key != FILTERED_OUT]
