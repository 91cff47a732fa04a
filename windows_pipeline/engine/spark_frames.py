"""Row windows by Spark's own frames, where these are linear and as exact as the engine's."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate, Function
from windows_pipeline.engine.row_kernel import result_column
from windows_pipeline.kernels.aggregates.sums import integer_overflow
from windows_pipeline.windows.arguments import MAX_INSTANT_MS
from windows_pipeline.windows.row_bounds import FrameUnit
from windows_pipeline.windows.row_windows import RowWindow, SlideRows

_WHOLE = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_PLAIN = (*_WHOLE, T.DecimalType, T.StringType, T.BinaryType, T.DateType, T.TimestampType)

_HALF_BITS = 32
_LOW_HALF = (1 << _HALF_BITS) - 1
_PLACE = "\0"
"""What stands in an error's text where each row names its window."""


def spark_serves(window: RowWindow, records: DataFrame, aggregates: Sequence[Aggregate]) -> bool:
    """Whether Spark's own frame is as good.

    A frame without a start only grows, so Spark adds each row once, and spills a group that
    memory does not hold. Its counts, its sums of integers and its smallest and largest values
    are the same as the engine's (rules G1, G2); floats and the rest are not to the last bit.
    """
    if not isinstance(window, SlideRows) or window.back is not None:
        return False
    return all(_is_alike(one, records) for one in aggregates)


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
    named = {result_column(place): one for place, one in enumerate(aggregates)}
    halved = [name for name, one in named.items() if _is_sum_of_bigints(one, records)]
    found = [
        part
        for name, one in named.items()
        for part in (_halves(name, one, frame) if name in halved else [_whole(name, one, frame)])
    ]
    rows = records.select(*keep, *keys, "_event_time_ms", *found)
    place = _place(window, keys)
    results = (
        _of_halves(name, one, place) if name in halved else F.col(name)
        for name, one in named.items()
    )
    return rows.select(*keep, *results)


def _is_sum_of_bigints(aggregate: Aggregate, records: DataFrame) -> bool:
    """Whether it can overflow: of smaller integers no group is long enough."""
    kind = records.schema[aggregate.column].dataType
    return aggregate.function is Function.SUM and isinstance(kind, T.LongType)


def _whole(name: str, aggregate: Aggregate, frame: WindowSpec) -> Column:
    """An aggregate of each row's frame."""
    value = F.col(aggregate.column)
    return F.call_function(str(aggregate.function), value).over(frame).alias(name)


def _halves(name: str, aggregate: Aggregate, frame: WindowSpec) -> list[Column]:
    """The sums of the values' halves, which stay within a bigint on the way, too."""
    value = F.col(aggregate.column)
    high = F.sum(F.shiftright(value, _HALF_BITS)).over(frame)
    low = F.sum(value.bitwiseAND(F.lit(_LOW_HALF))).over(frame)
    return [high.alias(name), low.alias(f"{name}_low")]


def _of_halves(name: str, aggregate: Aggregate, place: Column) -> Column:
    """The sum that `_halves` are of, an error where it does not fit."""
    below = F.col(f"{name}_low")
    high, low = F.col(name) + F.shiftright(below, _HALF_BITS), below.bitwiseAND(F.lit(_LOW_HALF))
    most = 1 << _HALF_BITS - 1
    before, after = integer_overflow(aggregate, _PLACE).split(_PLACE)
    refusal = F.raise_error(F.concat(F.lit(before), place, F.lit(after))).cast("bigint")
    total = F.shiftleft(high, _HALF_BITS).bitwiseOR(low)
    return F.when(~high.between(-most, most - 1), refusal).otherwise(total).alias(name)


def _place(window: SlideRows, keys: Sequence[str]) -> Column:
    """Names a row's window, as the engine does it."""
    texts = [F.coalesce(F.col(name).cast("string"), F.lit("None")) for name in keys]
    key = F.concat(F.lit("("), F.concat_ws(", ", *texts), F.lit(")"))
    at = F.lit("in the order of arrival")
    if window.time_column is not None:
        at = F.concat(F.lit("at "), F.col("_event_time_ms").cast("string"), F.lit(" (ms)"))
    return F.concat(F.lit("the window of a row of key "), key, F.lit(" "), at)


def _is_alike(aggregate: Aggregate, records: DataFrame) -> bool:
    kind = records.schema[aggregate.column].dataType
    match aggregate.function:
        case Function.COUNT:
            return True
        case Function.MIN | Function.MAX:
            return isinstance(kind, _PLAIN)
        case Function.SUM:
            return isinstance(kind, _WHOLE)
        case _:
            return False


def _time_ms(window: SlideRows) -> Column:
    """The time, an error where the engine has one; nothing where arrival alone counts."""
    if window.by_arrival:
        return F.lit(0)
    time_ms = F.col("_event_time_ms")
    told = F.concat(F.lit("event time "), time_ms.cast("string"), F.lit(" ms is out of range"))
    refusal = F.raise_error(told)
    return F.when(time_ms.between(-MAX_INSTANT_MS, MAX_INSTANT_MS), time_ms).otherwise(refusal)
