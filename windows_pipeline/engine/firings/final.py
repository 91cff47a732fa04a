"""Final firings: each window fires as it closes, with its final result (rules A4, E1, E2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.compat.python_workers import in_workers
from windows_pipeline.engine.firings.kernel import AFTER
from windows_pipeline.engine.firings.watermark_steps import Advances
from windows_pipeline.kernels.time import END_OF_INPUT_MS
from windows_pipeline.windows import PipelineWindows, WindowSpec


def at_closing(
    closed: DataFrame,
    windows: WindowSpec | PipelineWindows,
    advances: Mapping[int, Advances],
    records: T.StructType,
    arrival: Sequence[str],
) -> DataFrame:
    """Adds the columns of a firing to closed windows, as if each fired only then.

    Args:
        closed: The closed windows of `evaluate_windows`.
        windows: What windows they are.
        advances: The watermark advances, by computed day.
        records: A schema that has the arrival columns.
        arrival: The names of the arrival columns.

    Returns:
        The columns of `fire`, one row for each window.
    """
    # Stream time passes an inclusive window end one millisecond later (rule A4).
    beyond_ms = windows.close_delay_ms + (not windows.excludes_end)
    firings = closed.drop("closed").withColumns(
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


def with_final(fired: DataFrame, closing: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Adds final firings to other firings; a window whose firing on time is final has no second.

    Args:
        fired: All firings so far of the windows that close, and any others; `fire` returned them.
        closing: What `at_closing` returned for the windows that close.
        keys: The columns of the key.
    """
    both = fired.withColumn("_closes", F.lit(False)).unionByName(
        closing.withColumn("_closes", F.lit(True))
    )
    of_window = Window.partitionBy("_computed_day", *keys, "_window_start_ms", "_window_end_ms")
    closes = F.col("_closes")
    found = both.withColumns(
        {
            "_fired": F.count_if(~closes).over(of_window),
            "_passed": F.count_if(~closes & (F.col("reason") != "EARLY")).over(of_window),
            "_is_done": F.count_if(~closes & F.col("is_final")).over(of_window) > 0,
        }
    )
    numbered = found.where(~(closes & F.col("_is_done"))).withColumns(
        {
            "firing_id": F.when(closes, F.col("_fired")).otherwise(F.col("firing_id")),
            "reason": F.when(closes & (F.col("_passed") > 0), "LATE").otherwise(F.col("reason")),
        }
    )
    return numbered.drop("_closes", "_fired", "_passed", "_is_done")


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
