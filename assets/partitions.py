"""The one partition dimension of a pipeline: the arrival day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

import dagster as dg

from windows_pipeline.config import Pipeline


def arrival_days(pipeline: Pipeline) -> dg.DailyPartitionsDefinition:
    """The arrival days, UTC, from the pipeline's first to its last, or to yesterday."""
    end = pipeline.partitions.end
    return dg.DailyPartitionsDefinition(
        start_date=pipeline.partitions.start.isoformat(),
        end_date=None if end is None else (end + timedelta(days=1)).isoformat(),
        timezone="UTC",
    )


def days_of(partition_keys: Sequence[str]) -> list[date]:
    """The days of a run's partitions."""
    return [date.fromisoformat(key) for key in partition_keys]
