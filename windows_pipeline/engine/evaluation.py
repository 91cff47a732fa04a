"""Windows of records in Spark: one shuffle, one sort, one pass, whatever the kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.chunk import Target
from windows_pipeline.engine.kernel import RUN, LateKernel, WindowKernel
from windows_pipeline.engine.panes import LAST_MS, RECORDS

_OPTIONAL = ("close_time_ms", "is_new", "close_after_ms")


def evaluate(
    records: DataFrame,
    targets: Mapping[int, Target],
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
    arrival: Sequence[str] = (),
    *,
    tells_uncounted: bool = False,
    of_panes: T.StructType | None = None,
) -> DataFrame:
    """Computes the windows that each target unit changed or closed, as it left them.

    Args:
        records: One row a record and target: `target` (int, a key of `targets`), the key
            columns, `event_time_ms` (bigint), and the columns that the aggregates take. And
            where there are any: `close_time_ms` (bigint: the close time met on arrival, null
            for none), `is_new` (boolean: came with the target unit), `close_after_ms`
            (bigint, one for a target: the close time after it, in place of the target's own).
        targets: The windows that are wanted and the close times around them.
        keys: The columns whose values make a group (nulls are a value); any types that sort.
        aggregates: What to compute.
        arrival: The columns that order arrival among records that met one close time. Only
            sessions ask for them (rule D2).
        tells_uncounted: Whether to tell of records that no sliding window counts.
        of_panes: The schema of the records that were summed up, where the rows are panes of
            theirs (`panes.in_panes`); None where they are records.

    Returns:
        `target`, the keys, `window_start_ms`, `window_end_ms`, `first_event_time_ms`,
        `last_event_time_ms` (null in an empty window), `record_count`, the aggregates, and
        `closed`, in no order. If it tells of uncounted records also, with all those but target
        and keys null, a row for each distinct `uncounted_time_ms` and `uncounted_close_ms` of
        partly late records of sliding windows that settled with the target and that no window
        counts (rule A5); these two columns are null in windows.

    Raises:
        ArithmeticError: When it runs: a sum does not fit its type (rule G2).
        ValueError: When it runs: an event time is null or out of range.
    """
    columns = [aggregate.column for aggregate in aggregates]
    wanted = ["target", *keys, "event_time_ms", *_optional(records), *arrival, *columns]
    if of_panes is not None:
        wanted += [RECORDS, LAST_MS]
    kernel = WindowKernel(
        targets,
        keys,
        arrival,
        aggregates,
        tells_uncounted=tells_uncounted,
        of_panes=of_panes is not None,
    )
    schema = _result_schema(of_panes or records.schema, records.schema, keys, aggregates)
    if tells_uncounted:
        schema.add("uncounted_time_ms", T.LongType()).add("uncounted_close_ms", T.LongType())
    in_order = _in_order(records.select(*dict.fromkeys(wanted)), keys)
    if not kernel.tells_runs:
        return in_order.mapInArrow(kernel, schema)
    of_runs = T.StructType([*schema, *(T.StructField(name, T.LongType()) for name in RUN)])
    return _each_window(in_order.mapInArrow(kernel, of_runs))


def late(
    records: DataFrame,
    targets: Mapping[int, Target],
    keys: Sequence[str],
    arrival: Sequence[str] = (),
) -> DataFrame:
    """The records that no window counts, with `reason`: late, uncovered or uncounted (rule A5).

    Args:
        records: As `evaluate` takes them, with any other columns.
        targets: See `evaluate`.
        keys: See `evaluate`.
        arrival: See `evaluate`.

    Returns:
        Their rows, in no order. What a window that is open may still count is not among them.
        A record that is given to several targets is judged for each.
    """
    schema = T.StructType([*records.schema.fields, T.StructField("reason", T.StringType())])
    return _in_order(records, keys).mapInArrow(LateKernel(targets, keys, arrival), schema)


def _each_window(runs: DataFrame) -> DataFrame:
    """Every window of the runs that hold the same records."""
    ends = F.sequence("window_end_ms", "last_window_end_ms", "advance_ms")
    # Outer, as uncounted records have no ends, and as the plan else makes each sequence twice.
    each = runs.select("*", F.explode_outer(ends).alias("end_ms"))
    later_ms = F.col("end_ms") - F.col("window_end_ms")
    start_ms = F.col("window_start_ms") + later_ms
    moved = each.withColumns({"window_start_ms": start_ms, "window_end_ms": F.col("end_ms")})
    return moved.drop("end_ms", *RUN)


def _optional(records: DataFrame) -> Iterable[str]:
    return (name for name in _OPTIONAL if name in records.columns)


def _in_order(records: DataFrame, keys: Sequence[str]) -> DataFrame:
    group = ["target", *keys]
    return records.repartition(*group).sortWithinPartitions(*group, "event_time_ms")


def _result_schema(
    values: T.StructType, rows: T.StructType, keys: Sequence[str], aggregates: Sequence[Aggregate]
) -> T.StructType:
    times = ("window_start_ms", "window_end_ms", "first_event_time_ms", "last_event_time_ms")
    schema = T.StructType([T.StructField("target", T.IntegerType())])
    for name in keys:
        schema.add(name, rows[name].dataType)
    for name in (*times, "record_count"):
        schema.add(name, T.LongType())
    for aggregate in aggregates:
        result = aggregate.result_type(values[aggregate.column].dataType.simpleString())
        schema.add(aggregate.name, T.DataType.fromDDL(result))
    return schema.add("closed", T.BooleanType())
