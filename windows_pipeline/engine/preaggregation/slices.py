"""Sums records up before they are moved, one row a key and pane (rule C2).

A pane is a piece of time that no bound of a hopping window cuts: all its records are in the same
windows, but for those that came too late for some. It is as long as gcd(size, advance), or longer
where that is shorter than it need be. `combining` makes windows of panes.
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

RECORDS = "pane_records"
FIRST_MS = "_event_time_ms"
LAST_MS = "pane_last_ms"
HIGH, LOW, VALUES, TIME_MS, VALUE, TOTAL = "high", "low", "values", "time_ms", "value", "total"
POWER, SCALE, MULTIPLES, KIND = "power", "scale", "multiples", "kind"
"""The fields of what is known of a pane's values; see `_state`."""

_MOST_DIGITS = 28
"""Spark gives the sum of decimals ten digits more, and 38 at the most."""
_INTEGERS = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_DOUBLES = (T.FloatType, T.DoubleType)
_MOST_BIGINT_DIGITS = 18
"""Decimals of so many digits are bigints without their point."""
_ADDING = (Function.SUM, Function.AVG)
_OF_VALUES = (Function.COUNT_DISTINCT, Function.PERCENTILE, Function.MEDIAN)
"""What needs each distinct value of a pane, with the number of its records."""


def merges(aggregates: Sequence[Aggregate]) -> bool:
    """Whether panes tell all that these aggregates need, exactly (rule G2).

    So it is but for lists and a user's aggregates. A list's partial result is its records, and
    a user's functions are Python's, where records only come once they were moved.
    """
    return not any(
        one.function is Function.COLLECT_LIST or isinstance(one.function, UserAggregate)
        for one in aggregates
    )


def apart(records: DataFrame, aggregates: Sequence[Aggregate]) -> tuple[DataFrame, list[Aggregate]]:
    """Gives each aggregate a column of its own, as `in_panes` needs."""
    own = [f"{one.column}_{place}" for place, one in enumerate(aggregates)]
    copies = {name: F.col(one.column) for name, one in zip(own, aggregates, strict=True)}
    renamed = [replace(one, column=name) for name, one in zip(own, aggregates, strict=True)]
    return (records.withColumns(copies) if copies else records), renamed


def in_panes(
    records: DataFrame, windows: TimeWindows, keys: Sequence[str], aggregates: Sequence[Aggregate]
) -> DataFrame:
    """Sums up the records of each key and pane that entered the same windows.

    Where doubles are summed, those of one magnitude (`pane_numbers`); for distinct counts and
    percentiles, those of one value.

    Args:
        records: What `evaluation.evaluate` takes, all of one target.
        windows: The windows.
        keys: The key's columns.
        aggregates: Such as `merges` takes, each of a column of its own.

    Returns:
        The same columns, as `evaluate` takes them: the event time is the pane's first, the close
        time the largest that its records met, the aggregates' columns say what is known of their
        values; with `pane_records` (bigint) and `pane_last_ms` (bigint).
    """
    time_ms = F.col(FIRST_MS)
    in_range = F.when(F.abs(time_ms) <= F.lit(MAX_INSTANT_MS), time_ms)  # the rest is refused later
    entry_ms = _next_end(windows, in_range)
    carried = []
    if "_close_after_ms" in records.columns:
        carried.append(F.first("_close_after_ms").alias("_close_after_ms"))
    if "_close_time_ms" in records.columns:
        entry_ms = F.greatest(entry_ms, _next_end(windows, F.col("_close_time_ms")))
        carried.append(F.max("_close_time_ms").alias("_close_time_ms"))
    exit_ms = in_range - F.pmod(in_range, F.lit(windows.advance_ms))
    values = [one.column for one in aggregates if one.function in _OF_VALUES]
    states = {
        one.column: _state(one, records.schema[one.column].dataType)
        for one in aggregates
        if one.column not in values
    }
    doubles = [one.column for one in aggregates if _adds_doubles(one, records.schema)]
    squared = [one.column for one in aggregates if one.function in VARIANCES]
    prepared = _with_wholes(_as_multiples(records, doubles), squared)
    panes = prepared.groupBy(
        "_computed_day",
        *keys,
        entry_ms.alias("entry_ms"),
        exit_ms.alias("exit_ms"),
        *map(_power, doubles),
        *values,
    )
    return panes.agg(
        F.min(time_ms).alias(FIRST_MS),
        F.max(time_ms).alias(LAST_MS),
        F.count("*").alias(RECORDS),
        *carried,
        *(state.alias(name) for name, state in states.items()),
    ).drop("entry_ms", "exit_ms", *map(_power, doubles))


def _adds_doubles(aggregate: Aggregate, records: T.StructType) -> bool:
    kind = records[aggregate.column].dataType
    return aggregate.function in (*_ADDING, *VARIANCES) and isinstance(kind, _DOUBLES)


def _as_multiples(records: DataFrame, doubles: Sequence[str]) -> DataFrame:
    """Doubles as multiples (`pane_numbers.scaled`), with the powers."""
    if not doubles:  # Spark Connect takes no call without a column
        return records
    values = {name: F.col(name).cast("double") for name in doubles}
    split = records.withColumns({_power(name): power_of(value) for name, value in values.items()})
    return split.withColumns(
        {name: scaled(value, F.col(_power(name))) for name, value in values.items()}
    )


def _power(name: str) -> str:
    return f"{name}_power"


def _with_wholes(records: DataFrame, squared: Sequence[str]) -> DataFrame:
    """With decimals that are no bigints as several; else Spark would divide for each limb anew."""
    wholes: dict[str, Column] = {}
    for name in squared:
        kind = records.schema[name].dataType
        if _is_long(kind):
            parts = wholes_of_decimal(F.col(name), kind.scale)
            wholes |= zip(_wholes(name), parts, strict=True)
    return records.withColumns(wholes) if wholes else records


def _is_long(kind: T.DataType) -> TypeGuard[T.DecimalType]:
    return isinstance(kind, T.DecimalType) and kind.precision > _MOST_BIGINT_DIGITS


def _wholes(name: str) -> list[str]:
    return [f"{name}_whole_{place}" for place in range(3)]


def _next_end(windows: TimeWindows, instant_ms: Column) -> Column:
    """The first window end after an instant, but for a constant."""
    before_ms = instant_ms - F.lit(windows.size_ms)
    return before_ms - F.pmod(before_ms, F.lit(windows.advance_ms))


def _state(aggregate: Aggregate, kind: T.DataType) -> Column:
    """What is known of a pane's values, so that those of several panes can be combined."""
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
    values = F.count(value).alias(VALUES)
    if aggregate.function in VARIANCES or isinstance(kind, _DOUBLES):
        return F.struct(*_unit(aggregate, kind), *_sums_of_limbs(aggregate, kind), values)
    if isinstance(kind, T.DecimalType):
        return F.struct(*_sums_of_decimals(value, kind), values)
    # In halves, so that nothing wraps.
    high = F.sum(F.shiftright(value.cast("bigint"), 32))
    low = F.sum(value.cast("bigint").bitwiseAND(F.lit((1 << 32) - 1)))
    return F.struct(high.alias(HIGH), low.alias(LOW), values)


def _sums_of_decimals(value: Column, kind: T.DecimalType) -> list[Column]:
    """The sum, or where Spark's could overflow, those of what is below and above 64 bits."""
    of_kind = F.lit(None).cast(kind).alias(KIND)
    if kind.precision <= _MOST_DIGITS:
        return [F.sum(value).alias(TOTAL), of_kind]
    above, rest = divided(value, 1 << 64, kind.scale)
    multiples = F.sum(above.cast("decimal(19,0)"))
    return [F.sum(rest).alias(TOTAL), multiples.alias(MULTIPLES), of_kind]


def _unit(aggregate: Aggregate, kind: T.DataType) -> list[Column]:
    """What the whole numbers are multiples of: powers of two and of a tenth."""
    power = F.col(_power(aggregate.column)) if isinstance(kind, _DOUBLES) else F.lit(0)
    scale = kind.scale if isinstance(kind, T.DecimalType) else 0
    return [power.alias(POWER), F.lit(scale).alias(SCALE)]


def _sums_of_limbs(aggregate: Aggregate, kind: T.DataType) -> list[Column]:
    """Sums of whole numbers, and for variances of their squares, limb by limb."""
    value = F.col(aggregate.column)
    if isinstance(kind, _DOUBLES):
        limbs = limbs_of_scaled(value)
    elif _is_long(kind):
        limbs = limbs_of_wholes([F.col(name) for name in _wholes(aggregate.column)])
    elif isinstance(kind, T.DecimalType):
        limbs = limbs_of_integer((value * F.lit(Decimal(10**kind.scale))).cast("bigint"))
    else:
        limbs = limbs_of_integer(value.cast("bigint"))
    sums = [F.sum(limb).alias(f"{LIMB}{place}") for place, limb in enumerate(limbs)]
    if aggregate.function in VARIANCES:
        squares = enumerate(square_of(limbs))
        sums += [F.sum(limb).alias(f"{SQUARE_LIMB}{place}") for place, limb in squares]
    return sums
