"""Offsets of a topic that no record came with: what was lost is said, never passed over."""

from __future__ import annotations

from collections.abc import Iterable

from windows_pipeline.sources.kafka_errors import KafkaDataLostError
from windows_pipeline.streaming.standing import Part, Standing


def require_no_holes(standing: Standing, parts: Iterable[Part], topic: str) -> None:
    """Refuses a micro-batch that lacks offsets.

    A partition that is new begins with any offset.

    Args:
        standing: What came before.
        parts: The micro-batch's, each of another source partition.
        topic: The topic's name.

    Raises:
        KafkaDataLostError: Offsets are missing; names the partition and how many.
    """
    next_offsets = {
        row.source_partition: row.last_offset + 1
        for row in sorted(standing.log, key=lambda row: row.last_offset or -1)
        if row.last_offset is not None
    }
    for part in parts:
        if part.first_offset is None or part.last_offset is None:
            continue
        first = min(next_offsets.get(part.source_partition, part.first_offset), part.first_offset)
        missing = part.last_offset - first + 1 - part.rows - part.rejected
        if missing > 0:
            raise KafkaDataLostError(
                f"topic {topic}, partition {part.source_partition}: of the offsets {first} to "
                f"{part.last_offset} {missing} have no record. If the topic is compacted or has "
                "transactions, that is no loss: write holes: allowed under kafka. Else land the "
                "lost records again, or accept the loss by the same"
            )
