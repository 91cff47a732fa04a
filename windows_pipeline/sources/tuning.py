"""When and how ingest divides records among tasks."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_RECORD_BYTES = 100
"""The approximate size of a landed record."""


@dataclass(frozen=True)
class IngestTuning:
    """The sizes above which several tasks share the work of ingest, and the size of a share.

    The rows of the tables do not depend on these numbers.

    Attributes:
        records_per_task: The most records that a single task sorts; several tasks share more.
        records_per_range: The records that each task sorts where several share the work. Fewer
            than `records_per_task`, because compressed files contain several times as many
            records as their size suggests.
        offsets_per_stretch: The offsets of a topic's partition that one task of a stream numbers.
        checked_rows_per_stretch: The offsets of a large source partition that one task of the
            checks reads.
    """

    records_per_task: int = 1_000_000
    records_per_range: int = 250_000
    offsets_per_stretch: int = 100_000
    checked_rows_per_stretch: int = 1 << 20

    def ranges_for(self, sizes_bytes: Iterable[int]) -> int | None:
        """The number of ranges into which to divide landed files for sorting.

        Args:
            sizes_bytes: The sizes of the shares, each of which a single task would sort.

        Returns:
            The number of ranges; None if every share is small enough for a single task.
        """
        records = [records_in(size) for size in sizes_bytes]
        if max(records, default=0) <= self.records_per_task:
            return None
        return -(-sum(records) // self.records_per_range)


INGEST_TUNING = IngestTuning()


def records_in(size_bytes: int) -> int:
    """Estimates the number of records in files of this total size."""
    return size_bytes // _RECORD_BYTES
