"""How far around a record its window holds others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class LookAround(NamedTuple):
    """How far around a record its window holds records.

    Attributes:
        back: How many records before a record its window can hold.
        ahead: How many records after it.
        back_ms: How far before a record its window can begin.
        ahead_ms: How far after it the window can end.
        gap_ms: A shard ends only where the next record is further away than this.
    """

    back: int = 0
    ahead: int = 0
    back_ms: int = 0
    ahead_ms: int = 0
    gap_ms: int = 0

    @classmethod
    def of_all(cls, found: Sequence[LookAround | None]) -> LookAround | None:
        """The most that one of several windows needs; None if one has no bound."""
        bounded = [each for each in found if each is not None]
        return cls(*map(max, zip(*bounded, strict=True))) if len(bounded) == len(found) else None
