"""Small files that are sorted in ranges, as large files are."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from windows_pipeline.arrival import ranges
from windows_pipeline.sources.tuning import IngestTuning

SMALL_RANGES = IngestTuning(records_per_task=1_000, records_per_range=500)
"""Ranges of some hundred records."""


class _Noted(logging.Handler):
    """Notes the number of ranges of each sort, which the log names."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.ranges: list[int] = []

    def emit(self, record: logging.LogRecord) -> None:
        assert isinstance(record.args, tuple)
        (count,) = record.args
        assert isinstance(count, int)
        self.ranges.append(count)


@contextmanager
def noted_ranges() -> Iterator[list[int]]:
    """Notes in how many ranges each day or micro-batch was sorted."""
    log, noted = logging.getLogger(ranges.__name__), _Noted()
    level = log.level
    log.addHandler(noted)
    log.setLevel(logging.INFO)
    try:
        yield noted.ranges
    finally:
        log.setLevel(level)
        log.removeHandler(noted)
