"""The partitions of a pipeline's assets: arrival days."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import dagster as dg

from windows_pipeline.config import Pipeline

# Dagster's documentation names these tags; its public modules export no constants for them.
RANGE_START_TAG = "dagster/asset_partition_range_start"
RANGE_END_TAG = "dagster/asset_partition_range_end"


def arrival_days(pipeline: Pipeline) -> dg.DailyPartitionsDefinition:
    """The arrival days (UTC) from the pipeline's first to its last day.

    By default the last is yesterday; of a stream, which fills the current day, today.
    """
    end = pipeline.partitions.end
    return dg.DailyPartitionsDefinition(
        start_date=pipeline.partitions.start.isoformat(),
        end_date=None if end is None else (end + timedelta(days=1)).isoformat(),
        timezone="UTC",
        end_offset=0 if end is not None or pipeline.source.by_days else 1,
    )


def range_tags(first: str, last: str) -> dict[str, str]:
    """The tags of a run that materializes a range of arrival days.

    Args:
        first: The partition key of the first day: `2013-01-01`.
        last: The partition key of the last day.
    """
    return {RANGE_START_TAG: first, RANGE_END_TAG: last}


def days_of(partition_keys: Sequence[str]) -> list[date]:
    """The arrival days that a run's partition keys name."""
    return [date.fromisoformat(key) for key in partition_keys]
