"""Aggregates records before the shuffle, into one row for each key and slice (rule C2).

A slice is a piece of time that no bound of a hopping window cuts: the same windows contain all its
records, except for those that were closed when a record came. It is gcd(size, advance) long, or
longer where fewer bounds fall. `combine` computes windows from slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.preaggregation.partial_result import (
    FIRST_MS,
    LAST_MS,
    RECORDS,
    ShortResult,
)
from windows_pipeline.engine.preaggregation.partial_results import partial_result_of
from windows_pipeline.engine.preaggregation.partial_sums import (
    DOUBLES,
    power_column,
    with_multiples,
    with_wholes,
)
from windows_pipeline.windows import TimeWindows
from windows_pipeline.windows.arguments import MAX_INSTANT_MS

_ENTRY_MS, _EXIT_MS = "_entry_ms", "_exit_ms"


def can_pre_aggregate(aggregates: Sequence[Aggregate]) -> bool:
    """Whether all of these aggregates can be computed from slices, exactly (rule G2)."""
    return all(partial_result_of(each) is not None for each in aggregates)


def has_short_states(aggregates: Sequence[Aggregate]) -> bool:
    """Whether a slice's partial results are of one length, however many records it has."""
    return all(isinstance(partial_result_of(each), ShortResult) for each in aggregates)


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
    exit_ms = windows.last_start(in_range)
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
    partial = {each.column: partial_result_of(each) for each in aggregates}
    short = {name: each for name, each in partial.items() if isinstance(each, ShortResult)}
    values = [name for name in partial if name not in short]
    kinds = {name: records.schema[name].dataType for name in short}
    states = {name: each.state(name, kinds[name]) for name, each in short.items()}
    doubles = [
        name
        for name, each in short.items()
        if each.adds_numbers and isinstance(kinds[name], DOUBLES)
    ]
    squared = [name for name, each in short.items() if each.adds_squares]
    prepared = with_wholes(with_multiples(records, doubles), squared)
    groups = prepared.groupBy(*by, *map(power_column, doubles), *values)
    found = groups.agg(*also, *(state.alias(name) for name, state in states.items()))
    return found.drop(*map(power_column, doubles))


def _next_end(windows: TimeWindows, instant_ms: Column) -> Column:
    """The first window end after an instant, less a constant."""
    return windows.last_start(instant_ms - F.lit(windows.size_ms))
