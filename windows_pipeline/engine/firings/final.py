"""Windows as they fire once, when they close (rules A4, E1, E2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.engine.firings.kernel import AFTER
from windows_pipeline.engine.firings.watermark_steps import Rises
from windows_pipeline.kernels.time import END_OF_INPUT_MS


def at_closing(
    windows: DataFrame,
    beyond_ms: int,
    rises: Mapping[int, Rises],
    records: T.StructType,
    arrival: Sequence[str],
) -> DataFrame:
    """Adds to closed windows what their only firing says.

    Args:
        windows: What `evaluation.evaluate` gives, those that close.
        beyond_ms: How far above a window's end stream time closes it.
        rises: Where stream time rose, by target.
        records: The columns of arrival with their types.
        arrival: Their names.

    Returns:
        Of each window the columns of `firing_evaluation.fire`.
    """
    told = windows.drop("closed").withColumns(
        {
            "closes_ms": F.col("_window_end_ms") + F.lit(beyond_ms),
            "firing_id": F.lit(0).cast("bigint"),
            "reason": F.lit("ON_TIME"),
            "cause": F.lit("STREAM_TIME"),
            "is_final": F.lit(True),
        }
    )
    schema = T.StructType([*told.schema, T.StructField("_stream_time_ms", T.LongType())])
    for name in arrival:
        schema.add(AFTER + name, records[name].dataType)
    return told.mapInArrow(_ClosingKernel(rises, arrival), schema).drop("closes_ms")


class _ClosingKernel:
    """Looks up the rise that closes each window."""

    def __init__(self, rises: Mapping[int, Rises], arrival: Sequence[str]) -> None:
        self._rises = dict(rises)
        self._arrival = list(arrival)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            targets = np.array(table.column("_computed_day"), np.int64)
            for target in np.unique(targets).tolist():
                own = table.filter(pa.array(targets == target))
                yield from self._closed(own, self._rises[target]).to_batches()

    def _closed(self, windows: pa.Table, rises: Rises) -> pa.Table:
        place = np.searchsorted(rises.stream_time_ms, np.array(windows.column("closes_ms")))
        met_ms = rises.stream_time_ms[place]
        met = pa.array(met_ms, mask=met_ms == END_OF_INPUT_MS)
        windows = windows.append_column("_stream_time_ms", met)
        after = rises.at.take(pa.array(place))
        for name in self._arrival:
            windows = windows.append_column(AFTER + name, after.column(name))
        return windows
