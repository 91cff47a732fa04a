"""Has small files sorted in ranges, as large ones are."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pyspark.sql import Column, DataFrame

from windows_pipeline.arrival import ranges as arrival_ranges
from windows_pipeline.arrival.ranges import numbered_in_ranges
from windows_pipeline.sources import landed_sizes
from windows_pipeline.streaming import order


def noted_ranges(patched: pytest.MonkeyPatch) -> list[int]:
    """Notes in how many ranges a day or a micro-batch was sorted."""
    noted: list[int] = []

    def number(
        records: DataFrame, within: Sequence[str], by: Sequence[Column], ranges: int
    ) -> DataFrame:
        noted.append(ranges)
        return numbered_in_ranges(records, within, by, ranges)

    for module in (arrival_ranges, order):
        patched.setattr(module, "numbered_in_ranges", number)
    return noted


def in_small_ranges(patched: pytest.MonkeyPatch) -> list[int]:
    """Has ranges of some hundred records, and notes how many there were."""
    patched.setattr(landed_sizes, "RECORDS_A_TASK", 1_000)
    patched.setattr(landed_sizes, "_RECORDS_A_RANGE", 500)
    return noted_ranges(patched)
