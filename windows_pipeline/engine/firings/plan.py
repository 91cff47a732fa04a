"""Firings of records in Spark: one shuffle, one sort, one pass (rules E2, E4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from pyspark.sql import DataFrame
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.firings.kernel import AFTER, FiringKernel, FiringTarget
from windows_pipeline.engine.firings.watermark_steps import collect_rises
from windows_pipeline.windows import TimeWindows, WindowSpec


def fire(
    records: DataFrame,
    targets: Mapping[int, FiringTarget],
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
    arrival: Sequence[str],
    *,
    input_ends: bool = False,
    with_earlier: bool = False,
) -> DataFrame:
    """The firings that come with each target unit (rule E4).

    A Spark job finds where stream time rose at once; the rest runs when the result does.

    Args:
        records: One row a record and target: `_computed_day` (int, a key of `targets`), the key
            columns, `_event_time_ms` and `_stream_time_ms` (bigint: the record's own and the one
            it met on arrival, rule A2), the columns of `arrival`, and those that the aggregates
            take. Of a unit it needs the records, of all keys and of this and earlier units, of
            windows that were not closed before it. With `_is_new` (boolean) only the firings
            after records that have it are given; without, all are. Of several source
            partitions, only records at or before the slowest one's place, and new are those
            behind its place before the unit: what the merge holds for good.
        targets: The windows that are wanted and when they fire: what `Trigger.fitted` takes.
        keys: The columns whose values make a group (nulls are a value); any types that sort.
        aggregates: What to compute of each pane.
        arrival: The columns that order arrival among records that met one stream time.
        input_ends: Whether stream time passes everything after the last record.
        with_earlier: With `_is_new`, whether to give earlier firings, too, of windows that have
            new ones, or close, and maybe of others.

    Returns:
        `_computed_day`, the keys, `_window_start_ms`, `_window_end_ms` (of sessions the last
        record),
        `firing_id`, `reason`, `cause` (RECORD or STREAM_TIME), `_stream_time_ms` (null at the
        end of the input), the columns of `arrival` with `after_` before their names,
        `is_final`, `_first_event_time_ms`, `_last_event_time_ms`, `record_count` and the
        aggregates, the last four of the pane. In no order.

    Raises:
        ArithmeticError: When it runs: a sum does not fit its type (rule G2).
        ValueError: When it runs: an event time is null or out of range.
    """
    rises = collect_rises(records, arrival, _grid_ms(targets), input_ends=input_ends)
    kernel = FiringKernel(targets, rises, keys, arrival, aggregates, with_earlier=with_earlier)
    group = ["_computed_day", *keys]
    others = ["_is_new"] if "_is_new" in records.columns else []
    columns = [one.column for one in aggregates]
    wanted = [*group, "_event_time_ms", "_stream_time_ms", *arrival, *others, *columns]
    in_order = (
        records.select(*dict.fromkeys(wanted))
        .repartition(*group)
        .sortWithinPartitions(*group, "_stream_time_ms", *arrival)
    )
    schema = _result_schema(records.schema, keys, aggregates, arrival)
    return in_order.mapInArrow(kernel, schema)


def _grid_ms(targets: Mapping[int, FiringTarget]) -> int:
    """What all times that something happens at are multiples of, 1 where there is no such."""
    grid_ms = 0
    for windows, trigger in targets.values():
        if not isinstance(windows, TimeWindows) or trigger.as_in_flink:
            return 1
        lengths = (windows.size_ms, windows.advance_ms, windows.grace_ms)
        early_ms = trigger.early_every_ms or 0
        grid_ms = gcd(grid_ms, *lengths, trigger.out_of_orderness_ms, early_ms)
    return max(grid_ms, 1)  # without a target there is nothing to ask


def closing_grid_ms(windows: WindowSpec) -> int:
    """The same, of where windows close."""
    if not isinstance(windows, TimeWindows):
        return 1
    return gcd(windows.size_ms, windows.advance_ms, windows.grace_ms)


def _result_schema(
    records: T.StructType,
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
    arrival: Sequence[str],
) -> T.StructType:
    schema = T.StructType([T.StructField("_computed_day", T.IntegerType())])
    for name in keys:
        schema.add(name, records[name].dataType)
    for name in ("_window_start_ms", "_window_end_ms", "firing_id"):
        schema.add(name, T.LongType())
    schema.add("reason", T.StringType()).add("cause", T.StringType())
    schema.add("_stream_time_ms", T.LongType())
    for name in arrival:
        schema.add(AFTER + name, records[name].dataType)
    schema.add("is_final", T.BooleanType())
    for name in ("_first_event_time_ms", "_last_event_time_ms", "record_count"):
        schema.add(name, T.LongType())
    for one in aggregates:
        result = one.result_type(records[one.column].dataType.simpleString())
        schema.add(one.name, T.DataType.fromDDL(result))
    return schema
