"""Counts and averages of a sample's windows: approximate, to propose a threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from windows_pipeline.starter.instants import connected

_SLIDING = """
    SELECT event_ms, count(*) OVER of_size AS counts, avg(value) OVER of_size AS averages
    FROM records
    WINDOW of_size AS (
        PARTITION BY key ORDER BY event_ms RANGE BETWEEN {size_ms} PRECEDING AND CURRENT ROW
    )
    ORDER BY key, event_ms
"""
"""Each record's left window (rule B3)."""
_ALIGNED = """
    SELECT end_ms, count(*) AS counts, avg(value) AS averages
    FROM (
        SELECT key, value, (last_start - hop) * {advance_ms} + {size_ms} AS end_ms
        FROM (
            SELECT *, CAST(floor(event_ms / {advance_ms}) AS BIGINT) AS last_start,
                unnest(range({size_ms} // {advance_ms})) AS hop
            FROM records
        )
    )
    GROUP BY key, end_ms
"""
"""The windows that start at multiples of the advance."""
_SESSIONS = """
    SELECT max(event_ms), count(*) AS counts, avg(value) AS averages
    FROM (
        SELECT key, event_ms, value, count(*) FILTER (is_new) OVER of_key AS session
        FROM (
            SELECT *, event_ms - lag(event_ms) OVER of_key > {size_ms} AS is_new
            FROM records
            WINDOW of_key AS (PARTITION BY key ORDER BY event_ms)
        )
        WINDOW of_key AS (PARTITION BY key ORDER BY event_ms)
    )
    GROUP BY key, session
"""
_QUERIES = {
    "sliding": _SLIDING,
    "tumbling": _ALIGNED,
    "hopping": _ALIGNED,
    "session": _SESSIONS,
}


@dataclass(frozen=True, slots=True)
class SampleWindows:
    """The windows of a sample.

    Attributes:
        ends_ms: Their ends, ms since 1970.
        counts: How many records each holds.
        averages: The average of their values; NaN where there is none.
    """

    ends_ms: np.ndarray
    counts: np.ndarray
    averages: np.ndarray

    @property
    def count(self) -> int:
        """How many windows there are."""
        return len(self.ends_ms)

    def closed_at(self, close_time_ms: int) -> SampleWindows:
        """Returns the windows that end before a time."""
        is_closed = self.ends_ms < close_time_ms
        return SampleWindows(
            self.ends_ms[is_closed], self.counts[is_closed], self.averages[is_closed]
        )


def sample_windows(
    key: np.ndarray,
    event_ms: np.ndarray,
    values: np.ndarray | None,
    kind: str,
    size_ms: int,
    advance_ms: int,
) -> SampleWindows:
    """Finds the windows of records.

    Args:
        key: The number of each record's key.
        event_ms: The event times.
        values: The values to average; NaN for none.
        kind: `sliding` (each record's left window), `tumbling`, `hopping` or `session`.
        size_ms: The length of a window, or a session's gap.
        advance_ms: The advance of hopping windows.
    """
    of_values = np.full(len(key), np.nan) if values is None else values
    # Without a value, NaN is null.
    value = pa.array(of_values, pa.float64(), from_pandas=True)
    records = pa.table({"key": key, "event_ms": event_ms, "value": value})
    advance = advance_ms if kind == "hopping" else size_ms
    query = _QUERIES[kind].format(size_ms=size_ms, advance_ms=advance)
    with connected() as database:
        database.register("records", records)
        found = database.sql(query).to_arrow_table()
    return SampleWindows(*(column.to_numpy() for column in found.columns))
