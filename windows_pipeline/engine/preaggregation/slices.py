"""Aggregates records before the shuffle, into one row for each key and slice (rule C2).

A slice is a piece of time that no bound of a hopping window cuts: the same windows contain all its
records, except for those that were closed when a record came. It is gcd(size, advance) long, or
longer where fewer bounds fall. `combine` computes windows from slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TypeGuard

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate, Function, UserAggregate
from windows_pipeline.engine.preaggregation.slice_numbers import (
    LIMB,
    SQUARE_LIMB,
    divided,
    limbs_of_integer,
    limbs_of_scaled,
    limbs_of_wholes,
    power_of,
    scaled,
    square_of,
    wholes_of_decimal,
)
from windows_pipeline.kernels.aggregates.sums import VARIANCES
from windows_pipeline.windows import TimeWindows
from windows_pipeline.windows.arguments import MAX_INSTANT_MS

RECORDS = "_slice_records"
FIRST_MS = "_event_time_ms"
LAST_MS = "_slice_last_ms"
HIGH, LOW, VALUES, TIME_MS, VALUE, TOTAL = "high", "low", "values", "time_ms", "value", "total"
POWER, SCALE, MULTIPLES, KIND = "power", "scale", "multiples", "kind"
"""The fields of a slice's partial aggregate; see `_state`."""

_ENTRY_MS, _EXIT_MS = "_entry_ms", "_exit_ms"
_MOST_DIGITS = 28
"""Spark's sum of decimals has ten digits more than they have, but at most 38."""
_DOUBLES = (T.FloatType, T.DoubleType)
MOST_BIGINT_DIGITS = 18
"""The most digits of a decimal whose unscaled value always fits a bigint."""
_ADDING = (Function.SUM, Function.AVG)
_OF_VALUES = (Function.COUNT_DISTINCT, Function.PERCENTILE, Function.MEDIAN)
"""Aggregates that need each distinct value of a slice, with the number of its records."""


def can_pre_aggregate(aggregates: Sequence[Aggregate]) -> bool:
    """Whether all of these aggregates can be computed from slices, exactly (rule G2).

    Lists and a user's aggregates cannot. A list's partial result would be its records. A user's
    functions run in Python, which gets records only after the shuffle.
    """
    return not any(
        each.function is Function.COLLECT_LIST or isinstance(each.function, UserAggregate)
        for each in aggregates
    )


def has_short_states(aggregates: Sequence[Aggregate]) -> bool:
    """Whether a slice's partial results are of one length, however many records it has."""
    return can_pre_aggregate(aggregates) and not any(
        each.function in _OF_VALUES for each in aggregates
    )


def with_separate_columns(
    records: DataFrame, aggregates: Sequence[Aggregate]
) -> tuple[DataFrame, list[Aggregate]]:
    """Copies columns so that each aggregate has its own, as `in_slices` needs."""
    names = [f"_slice_value_{index}" for index in range(len(aggregates))]
    copies = {name: F.col(each.column) for name, each in zip(names, aggregates, strict=True)}
    renamed = [replace(each, column=name) for name, each in zip(names, aggregates, strict=True)]
    return (records.withColumns(copies) if copies else records), renamed


def in_slices(
    records: DataFrame, windows: TimeWindows, keys: Sequence[str], aggregates: Sequence[Aggregate]
) -> DataFrame:
    """Aggregates the records of each key and slice that entered the same windows.

    Where doubles are summed, a slice has a row for each magnitude (`slice_numbers`); for distinct
    counts and percentiles, a row for each value.

    Args:
        records: The records that `evaluate_windows` takes, all of one computed day.
        windows: The windows.
        keys: The key's columns.
        aggregates: Aggregates that `can_pre_aggregate`, each with a column of its own.

    Returns:
        The same columns, as `evaluate_windows` takes them: the event time is the slice's first,
        the close time the largest that its records met, and an aggregate's column is its partial
        result; with `_slice_records` (bigint: how many) and `_slice_last_ms` (bigint: the last
        event time).
    """
    time_ms = F.col(FIRST_MS)
    # The kernel refuses times out of range.
    in_range = F.when(F.abs(time_ms) <= F.lit(MAX_INSTANT_MS), time_ms)
    entry_ms = _next_end(windows, in_range)
    carried = []
    if "_close_after_ms" in records.columns:
        carried.append(F.first("_close_after_ms").alias("_close_after_ms"))
    if "_close_time_ms" in records.columns:
        entry_ms = F.greatest(entry_ms, _next_end(windows, F.col("_close_time_ms")))
        carried.append(F.max("_close_time_ms").alias("_close_time_ms"))
    exit_ms = in_range - F.pmod(in_range, F.lit(windows.advance_ms))
    by: list[Column | str] = ["_computed_day", *keys]
    by += [entry_ms.alias(_ENTRY_MS), exit_ms.alias(_EXIT_MS)]
    times = [F.min(time_ms).alias(FIRST_MS), F.max(time_ms).alias(LAST_MS)]
    also = [*times, F.count("*").alias(RECORDS), *carried]
    return in_groups(records, aggregates, by, also).drop(_ENTRY_MS, _EXIT_MS)


def in_groups(
    records: DataFrame,
    aggregates: Sequence[Aggregate],
    by: Sequence[Column | str],
    also: Sequence[Column],
) -> DataFrame:
    """Aggregates the records of each group into rows that `combine` takes as slices.

    Args:
        records: `_event_time_ms`, the columns of `by`, and those that the aggregates take.
        aggregates: Aggregates that `can_pre_aggregate`, each with a column of its own.
        by: The group. Where doubles are summed, it has a row for each magnitude; for distinct
            counts and percentiles, a row for each value.
        also: Other aggregates to return.

    Returns:
        The columns of `by` and `also`, and the aggregates' columns with their partial results.
    """
    values = [each.column for each in aggregates if each.function in _OF_VALUES]
    states = {
        each.column: _state(each, records.schema[each.column].dataType)
        for each in aggregates
        if each.column not in values
    }
    doubles = [each.column for each in aggregates if _adds_doubles(each, records.schema)]
    squared = [each.column for each in aggregates if each.function in VARIANCES]
    prepared = _with_wholes(_as_multiples(records, doubles), squared)
    groups = prepared.groupBy(*by, *map(_power, doubles), *values)
    found = groups.agg(*also, *(state.alias(name) for name, state in states.items()))
    return found.drop(*map(_power, doubles))


def _adds_doubles(aggregate: Aggregate, records: T.StructType) -> bool:
    kind = records[aggregate.column].dataType
    return aggregate.function in (*_ADDING, *VARIANCES) and isinstance(kind, _DOUBLES)


def _as_multiples(records: DataFrame, doubles: Sequence[str]) -> DataFrame:
    """Doubles as multiples (`slice_numbers.scaled`), with the powers."""
    if not doubles:  # Spark Connect refuses a call without columns
        return records
    values = {name: F.col(name).cast("double") for name in doubles}
    split = records.withColumns({_power(name): power_of(value) for name, value in values.items()})
    return split.withColumns(
        {name: scaled(value, F.col(_power(name))) for name, value in values.items()}
    )


def _power(name: str) -> str:
    return f"_power_of_{name}"


def _with_wholes(records: DataFrame, squared: Sequence[str]) -> DataFrame:
    """Splits decimals too long for a bigint once; Spark would else divide again for each limb."""
    wholes: dict[str, Column] = {}
    for name in squared:
        kind = records.schema[name].dataType
        if _is_long(kind):
            parts = wholes_of_decimal(F.col(name), kind.scale)
            wholes |= zip(_wholes(name), parts, strict=True)
    return records.withColumns(wholes) if wholes else records


def _is_long(kind: T.DataType) -> TypeGuard[T.DecimalType]:
    return isinstance(kind, T.DecimalType) and kind.precision > MOST_BIGINT_DIGITS


def _wholes(name: str) -> list[str]:
    return [f"_whole_{index}_of_{name}" for index in range(3)]


def _next_end(windows: TimeWindows, instant_ms: Column) -> Column:
    """The first window end after an instant, less a constant."""
    before_ms = instant_ms - F.lit(windows.size_ms)
    return before_ms - F.pmod(before_ms, F.lit(windows.advance_ms))


def _state(aggregate: Aggregate, kind: T.DataType) -> Column:
    """The partial aggregate of a slice's values, which `combine` merges with other slices'."""
    value = F.col(aggregate.column)
    time_and_value = F.struct(F.col(FIRST_MS).alias(TIME_MS), value.alias(VALUE))
    match aggregate.function:
        case Function.COUNT:
            return F.count(value)
        case Function.MIN:
            return F.min(value)
        case Function.MAX:
            return F.max(value)
        case Function.FIRST:
            return F.min(F.when(value.isNotNull(), time_and_value))
        case Function.LAST:
            return F.max(F.when(value.isNotNull(), time_and_value))
    if aggregate.function not in (Function.SUM, Function.AVG, *VARIANCES):
        raise ValueError(
            f"{aggregate}: must be a function that has a partial result; add its case here"
        )
    values = F.count(value).alias(VALUES)
    if aggregate.function in VARIANCES or isinstance(kind, _DOUBLES):
        return F.struct(*_unit(aggregate, kind), *_sums_of_limbs(aggregate, kind), values)
    if isinstance(kind, T.DecimalType):
        return F.struct(*_sums_of_decimals(value, kind), values)
    # High and low halves, so that neither sum overflows.
    high = F.sum(F.shiftright(value.cast("bigint"), 32))
    low = F.sum(value.cast("bigint").bitwiseAND(F.lit((1 << 32) - 1)))
    return F.struct(high.alias(HIGH), low.alias(LOW), values)


def _sums_of_decimals(value: Column, kind: T.DecimalType) -> list[Column]:
    """The sum; or where Spark's could overflow, the sums of the low 64 bits and of the rest."""
    of_kind = F.lit(None).cast(kind).alias(KIND)
    if kind.precision <= _MOST_DIGITS:
        return [F.sum(value).alias(TOTAL), of_kind]
    above, rest = divided(value, 1 << 64, kind.scale)
    multiples = F.sum(above.cast("decimal(19,0)"))
    return [F.sum(rest).alias(TOTAL), multiples.alias(MULTIPLES), of_kind]


def _unit(aggregate: Aggregate, kind: T.DataType) -> list[Column]:
    """The unit that the whole numbers count: a power of two over a power of ten."""
    power = F.col(_power(aggregate.column)) if isinstance(kind, _DOUBLES) else F.lit(0)
    scale = kind.scale if isinstance(kind, T.DecimalType) else 0
    return [power.alias(POWER), F.lit(scale).alias(SCALE)]


def _sums_of_limbs(aggregate: Aggregate, kind: T.DataType) -> list[Column]:
    """Sums of whole numbers limb by limb, and for variances also of their squares."""
    value = F.col(aggregate.column)
    if isinstance(kind, _DOUBLES):
        limbs = limbs_of_scaled(value)
    elif _is_long(kind):
        limbs = limbs_of_wholes([F.col(name) for name in _wholes(aggregate.column)])
    elif isinstance(kind, T.DecimalType):
        limbs = limbs_of_integer((value * F.lit(Decimal(10**kind.scale))).cast("bigint"))
    else:
        limbs = limbs_of_integer(value.cast("bigint"))
    sums = [F.sum(limb).alias(f"{LIMB}{index}") for index, limb in enumerate(limbs)]
    if aggregate.function in VARIANCES:
        squares = enumerate(square_of(limbs))
        sums += [F.sum(limb).alias(f"{SQUARE_LIMB}{index}") for index, limb in squares]
    return sums
