"""Row windows by Spark's own frames, where Spark is as fast and as exact as the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from pyspark.sql import Column, DataFrame, Window, WindowSpec
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.preaggregation.partial_result import ShortResult
from windows_pipeline.engine.preaggregation.partial_results import partial_result_of
from windows_pipeline.engine.row_kernel import result_column
from windows_pipeline.windows.arguments import MAX_INSTANT_MS
from windows_pipeline.windows.frames.bounds import FrameUnit
from windows_pipeline.windows.frames.row_windows import RowWindow, SlideRows

_HALF_BITS = 32
_LOW_HALF = (1 << _HALF_BITS) - 1
_WINDOW = "\0"
"""The part of an error's text that each row replaces by the name of its window."""


def spark_serves(
    window: RowWindow, records: DataFrame, aggregates: Sequence[Aggregate]
) -> TypeGuard[SlideRows]:
    """Whether Spark's own frame has the engine's results at the same cost.

    A frame without a start only grows: Spark adds each row once, and spills a group that does
    not fit into memory. Spark's counts, sums of integers, and smallest and largest values equal
    the engine's (rules G1, G2). Its sums of floats and other aggregates differ in the last bits.
    """
    if not isinstance(window, SlideRows) or window.back is not None:
        return False
    return all(_is_same_in_spark(each, records) for each in aggregates)


def evaluate_in_spark(
    records: DataFrame,
    window: SlideRows,
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
    arrival: Sequence[str],
    keep: Sequence[str],
    *,
    with_failed: bool = False,
) -> DataFrame:
    """Computes `evaluate_rows` without window bounds, for a window that `spark_serves`."""
    in_order = Window.partitionBy(*keys).orderBy(_time_ms(window), *arrival)
    first, last = Window.unboundedPreceding, Window.unboundedFollowing
    ahead = last if window.ahead is None else window.ahead
    if window.unit is FrameUnit.ROWS:
        frame = in_order.rowsBetween(first, ahead)
    else:
        frame = Window.partitionBy(*keys).orderBy(_time_ms(window)).rangeBetween(first, ahead)
    named = {result_column(index): each for index, each in enumerate(aggregates)}
    halved = [name for name, each in named.items() if _is_sum_of_bigints(each, records)]
    found = [
        part
        for name, each in named.items()
        for part in (_halves(name, each, frame) if name in halved else [_whole(name, each, frame)])
    ]
    rows = records.select(*dict.fromkeys([*keep, *keys, "_event_time_ms"]), *found)
    window_name = None if with_failed else _window_name(window, keys)
    results = [
        _of_halves(name, each, window_name) if name in halved else F.col(name)
        for name, each in named.items()
    ]
    if with_failed:
        of_overflows = [F.when(~_fits(name), named[name].name) for name in halved]
        failed = F.array_compact(F.array(*of_overflows)) if of_overflows else F.array()
        results.append(failed.cast("array<string>").alias("failed"))
    return rows.select(*keep, *results)


def _is_sum_of_bigints(aggregate: Aggregate, records: DataFrame) -> bool:
    """Whether the sum can overflow. For smaller integers no group has enough rows."""
    kind = records.schema[aggregate.column].dataType
    return aggregate.may_overflow("bigint") and isinstance(kind, T.LongType)


def _whole(name: str, aggregate: Aggregate, frame: WindowSpec) -> Column:
    """An aggregate of each row's frame."""
    value = F.col(aggregate.column)
    return F.call_function(aggregate.function.name, value).over(frame).alias(name)


def _halves(name: str, aggregate: Aggregate, frame: WindowSpec) -> list[Column]:
    """The sums of the values' high and low halves, which never overflow a bigint."""
    value = F.col(aggregate.column)
    high = F.sum(F.shiftright(value, _HALF_BITS)).over(frame)
    low = F.sum(value.bitwiseAND(F.lit(_LOW_HALF))).over(frame)
    return [high.alias(name), low.alias(f"{name}_low")]


def _of_halves(name: str, aggregate: Aggregate, window_name: Column | None) -> Column:
    """The sum from its `_halves`. If it does not fit a bigint: an error, or null without a name.

    Args:
        name: The column of the high halves.
        aggregate: The sum.
        window_name: Names the window in the error; None for no error.
    """
    low = F.col(f"{name}_low").bitwiseAND(F.lit(_LOW_HALF))
    total = F.shiftleft(_high(name), _HALF_BITS).bitwiseOR(low)
    if window_name is None:
        return F.when(_fits(name), total).alias(name)
    before, after = aggregate.overflow("bigint", _WINDOW).split(_WINDOW)
    refusal = F.raise_error(F.concat(F.lit(before), window_name, F.lit(after))).cast("bigint")
    return F.when(~_fits(name), refusal).otherwise(total).alias(name)


def _high(name: str) -> Column:
    """The high half of a sum, from its `_halves`."""
    return F.col(name) + F.shiftright(F.col(f"{name}_low"), _HALF_BITS)


def _fits(name: str) -> Column:
    """Whether a sum fits a bigint; null for a frame without a value."""
    most = 1 << _HALF_BITS - 1
    return _high(name).between(-most, most - 1)


def _window_name(window: SlideRows, keys: Sequence[str]) -> Column:
    """Names a row's window in an error, in the words of the engine."""
    texts = [F.coalesce(F.col(name).cast("string"), F.lit("None")) for name in keys]
    key = F.concat(F.lit("("), F.concat_ws(", ", *texts), F.lit(")"))
    at = F.lit("in the order of arrival")
    if window.time_column is not None:
        at = F.concat(F.lit("at "), F.col("_event_time_ms").cast("string"), F.lit(" (ms)"))
    return F.concat(F.lit("the window of a row of key "), key, F.lit(" "), at)


def _is_same_in_spark(aggregate: Aggregate, records: DataFrame) -> bool:
    kind = records.schema[aggregate.column].dataType
    partial = partial_result_of(aggregate)
    return isinstance(partial, ShortResult) and isinstance(kind, partial.same_in_spark)


def _time_ms(window: SlideRows) -> Column:
    """The event time, an error where it is out of range; a constant where only arrival orders."""
    if window.by_arrival:
        return F.lit(0)
    time_ms = F.col("_event_time_ms")
    text = F.concat(
        F.lit(f"event_time: must be within {MAX_INSTANT_MS} ms of 1970, not "),
        time_ms.cast("string"),
        F.lit(" ms; correct the record, or leave it out"),
    )
    refusal = F.raise_error(text)
    return F.when(time_ms.between(-MAX_INSTANT_MS, MAX_INSTANT_MS), time_ms).otherwise(refusal)
