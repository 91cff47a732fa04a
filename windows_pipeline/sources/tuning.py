"""How large amounts of records are divided among tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_RECORD_BYTES = 100
"""About how many bytes a landed record takes."""


@dataclass(frozen=True)
class IngestTuning:
    """From which sizes on several tasks share the work, and how large a share is.

    The tables' rows do not depend on these numbers.

    Attributes:
        records_per_task: How many records one task may put in order; several tasks sort more.
        records_per_range: How many records each of several tasks sorts. Fewer than
            `records_per_task`, as compressed files hold several times as many records as their
            size suggests.
        offsets_per_stretch: How many offsets of a topic's partition a task of a stream numbers.
        checked_rows_per_stretch: How many offsets of a large source partition a task of the
            checks looks at.
    """

    records_per_task: int = 1_000_000
    records_per_range: int = 250_000
    offsets_per_stretch: int = 100_000
    checked_rows_per_stretch: int = 1 << 20

    def ranges_for(self, sizes_bytes: Iterable[int]) -> int | None:
        """How many tasks should sort landed files.

        Args:
            sizes_bytes: The sizes of the shares that one task each would sort.

        Returns:
            Into how many ranges to cut the whole order; None where a task can sort each share.
        """
        records = [records_in(size) for size in sizes_bytes]
        if max(records, default=0) <= self.records_per_task:
            return None
        return -(-sum(records) // self.records_per_range)


INGEST_TUNING = IngestTuning()


def records_in(size_bytes: int) -> int:
    """Estimates how many records files of a size hold."""
    return size_bytes // _RECORD_BYTES
