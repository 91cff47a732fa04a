"""What the sizes of landed files tell of their records."""

from __future__ import annotations

from collections.abc import Iterable

RECORDS_A_TASK = 1_000_000
"""More than so many that stand in one order are sorted by several tasks."""
_RECORD_BYTES = 100
"""What a landed record takes, about."""
_RECORDS_A_RANGE = 250_000
"""Fewer, as compressed files hold several times as many as their bytes tell."""


def records_in(size_bytes: int) -> int:
    """A guess of how many records files of this size hold."""
    return size_bytes // _RECORD_BYTES


def ranges_for(sizes_bytes: Iterable[int]) -> int | None:
    """How many tasks should sort what landed.

    Args:
        sizes_bytes: What would be sorted by one task each.

    Returns:
        How many ranges of the whole order there should be; None where each can stay whole.
    """
    records = [records_in(size) for size in sizes_bytes]
    if max(records, default=0) <= RECORDS_A_TASK:
        return None
    return -(-sum(records) // _RECORDS_A_RANGE)
