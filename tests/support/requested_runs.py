"""The days of the runs that a schedule or a sensor requests."""

from __future__ import annotations

from collections.abc import Iterable

import dagster as dg

from windows_pipeline.dagster.partitions import RANGE_END_TAG, RANGE_START_TAG


def requested_days(requests: Iterable[dg.RunRequest]) -> list[tuple[str, str]]:
    """The first and the last day of each run."""
    return [
        (request.partition_key, request.partition_key)
        if request.partition_key is not None
        else (request.tags[RANGE_START_TAG], request.tags[RANGE_END_TAG])
        for request in requests
    ]
