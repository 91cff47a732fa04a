"""Firings of windows that fire once, when they close (rules A4, E1, E2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.compat.python_workers import in_workers
from windows_pipeline.engine.firings.kernel import AFTER
from windows_pipeline.engine.firings.watermark_steps import Advances
from windows_pipeline.kernels.time import END_OF_INPUT_MS


def at_closing(
    windows: DataFrame,
    beyond_ms: int,
    advances: Mapping[int, Advances],
    records: T.StructType,
    arrival: Sequence[str],
) -> DataFrame:
    """Adds the columns of a firing to closed windows, each of which fires once.

    Args:
        windows: The closed windows of `evaluate_windows`.
        beyond_ms: How far stream time must be above a window's end to close it.
        advances: The watermark advances, by computed day.
        records: A schema that has the arrival columns.
        arrival: The names of the arrival columns.

    Returns:
        The columns of `fire`, one row for each window.
    """
    firings = windows.drop("closed").withColumns(
        {
            "_closes_ms": F.col("_window_end_ms") + F.lit(beyond_ms),
            "firing_id": F.lit(0).cast("bigint"),
            "reason": F.lit("ON_TIME"),
            "cause": F.lit("STREAM_TIME"),
            "is_final": F.lit(True),
        }
    )
    schema = T.StructType([*firings.schema, T.StructField("_stream_time_ms", T.LongType())])
    for name in arrival:
        schema.add(AFTER + name, records[name].dataType)
    return in_workers(firings, _ClosingKernel(advances, arrival), schema).drop("_closes_ms")


class _ClosingKernel:
    """Looks up the watermark advance that closes each window."""

    def __init__(self, advances: Mapping[int, Advances], arrival: Sequence[str]) -> None:
        self._advances = dict(advances)
        self._arrival = list(arrival)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            days = np.array(table.column("_computed_day"), np.int64)
            for day in np.unique(days).tolist():
                of_day = table.filter(pa.array(days == day))
                yield from self._closed(of_day, self._advances[day]).to_batches()

    def _closed(self, windows: pa.Table, advances: Advances) -> pa.Table:
        closes_ms = np.array(windows.column("_closes_ms"))
        closing = np.searchsorted(advances.stream_time_ms, closes_ms)
        met_ms = advances.stream_time_ms[closing]
        met = pa.array(met_ms, mask=met_ms == END_OF_INPUT_MS)
        windows = windows.append_column("_stream_time_ms", met)
        after = advances.at.take(pa.array(closing))
        for name in self._arrival:
            windows = windows.append_column(AFTER + name, after.column(name))
        return windows
