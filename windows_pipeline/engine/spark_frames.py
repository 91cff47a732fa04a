"""Row windows by Spark's own frames, where these are linear and as exact as the engine's."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate, Function
from windows_pipeline.engine.row_kernel import result_column
from windows_pipeline.windows.arguments import MAX_INSTANT_MS
from windows_pipeline.windows.row_bounds import FrameUnit
from windows_pipeline.windows.row_windows import RowWindow, SlideRows

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_PLAIN = (*_WHOLE, T.DecimalType, T.StringType, T.BinaryType, T.DateType, T.TimestampType)


def spark_serves(window: RowWindow, records: DataFrame, aggregates: Sequence[Aggregate]) -> bool:
    """Whether Spark's own frame is as good.

    A frame without a start only grows, so Spark adds each row once, and spills a group that
    memory does not hold. Its counts, its sums of integers and its smallest and largest values
    are the same as the engine's (rules G1, G2); floats and the rest are not to the last bit.
    """
    if not isinstance(window, SlideRows) or window.back is not None:
        return False
    # Without ANSI's rules Spark's sums wrap.
    checks_overflow = records.sparkSession.conf.get("spark.sql.ansi.enabled") == "true"
    return all(_is_alike(one, records, sums=checks_overflow) for one in aggregates)


def evaluate_in_spark(
    records: DataFrame,
    window: SlideRows,
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
    arrival: Sequence[str],
    keep: Sequence[str],
) -> DataFrame:
    """As `row_evaluation.evaluate_rows`, without bounds, of a window that `spark_serves`."""
    in_order = Window.partitionBy(*keys).orderBy(_time_ms(window), *arrival)
    first, last = Window.unboundedPreceding, Window.unboundedFollowing
    ahead = last if window.ahead is None else window.ahead
    if window.unit is FrameUnit.ROWS:
        frame = in_order.rowsBetween(first, ahead)
    else:
        frame = Window.partitionBy(*keys).orderBy(_time_ms(window)).rangeBetween(first, ahead)
    results = (
        _over(one, frame).alias(result_column(place)) for place, one in enumerate(aggregates)
    )
    return records.select(*keep, *results)


def _is_alike(aggregate: Aggregate, records: DataFrame, *, sums: bool) -> bool:
    kind = records.schema[aggregate.column].dataType
    match aggregate.function:
        case Function.COUNT:
            return True
        case Function.MIN | Function.MAX:
            return isinstance(kind, _PLAIN)
        case Function.SUM:
            return sums and isinstance(kind, _WHOLE)
        case _:
            return False


def _over(aggregate: Aggregate, frame: WindowSpec) -> Column:
    return F.call_function(str(aggregate.function), F.col(aggregate.column)).over(frame)


def _time_ms(window: SlideRows) -> Column:
    """The time, an error where the engine has one; nothing where arrival alone counts."""
    if window.by_arrival:
        return F.lit(0)
    time_ms = F.col("event_time_ms")
    told = F.concat(F.lit("event time "), time_ms.cast("string"), F.lit(" ms is out of range"))
    refusal = F.raise_error(told)
    return F.when(time_ms.between(-MAX_INSTANT_MS, MAX_INSTANT_MS), time_ms).otherwise(refusal)
