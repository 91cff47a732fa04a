"""Windows of records in Spark: one shuffle, one sort, one pass, whatever the kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.engine.preaggregation.slices import LAST_MS, RECORDS
from windows_pipeline.engine.radix_sort import in_radix_order
from windows_pipeline.engine.time_shards import SLICE, in_slices
from windows_pipeline.engine.window_kernel import RUN, LateKernel, WindowKernel
from windows_pipeline.kernels.windows.chunk import Target
from windows_pipeline.windows import WindowSpec

UNCOUNTED = ("_partly_late_time_ms", "_partly_late_close_ms")
"""The columns that tell of records that no window counts."""
_OPTIONAL = ("_close_time_ms", "_is_new", "_close_after_ms")


def evaluate(
    records: DataFrame,
    targets: Mapping[int, Target],
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
    arrival: Sequence[str] = (),
    *,
    tells_uncounted: bool = False,
    of_panes: T.StructType | None = None,
    slice_ms: int | None = None,
    only_closed: bool = False,
) -> DataFrame:
    """Computes the windows that each target unit changed or closed, as it left them.

    Args:
        records: One row a record and target: `_computed_day` (int, a key of `targets`), the key
            columns, `_event_time_ms` (bigint), and the columns that the aggregates take. And
            where there are any: `_close_time_ms` (bigint: the close time met on arrival, null
            for none), `_is_new` (boolean: came with the target unit), `_close_after_ms`
            (bigint, one for a target: the close time after it, in place of the target's own).
        targets: The windows that are wanted and the close times around them.
        keys: The columns whose values make a group (nulls are a value); any types that sort.
        aggregates: What to compute.
        arrival: The columns that order arrival among records that met one close time. Only
            sessions ask for them (rule D2).
        tells_uncounted: Whether to tell of records that no sliding window counts.
        of_panes: The schema of the records that were summed up, where the rows are panes of
            theirs (`panes.in_panes`); None where they are records.
        slice_ms: How long the slices are that each key's time is cut into, where all targets
            have the same windows: what `slices.slice_length_ms` gives. None for none.
        only_closed: Whether windows that are open are left out, before they are filled.

    Returns:
        `_computed_day`, the keys, `_window_start_ms`, `_window_end_ms`, `_first_event_time_ms`,
        `_last_event_time_ms` (null in an empty window), `record_count`, the aggregates, and
        `closed`, in no order. If it tells of uncounted records also, with all those but target
        and keys null, a row for each distinct `_partly_late_time_ms` and `_partly_late_close_ms` of
        partly late records of sliding windows that settled with the target and that no window
        counts (rule A5); these two columns are null in windows.

    Raises:
        ArithmeticError: When it runs: a sum does not fit its type (rule G2).
        ValueError: When it runs: an event time is null or out of range.
    """
    columns = [aggregate.column for aggregate in aggregates]
    if slice_ms is not None:
        records = in_slices(records, _windows_of(targets), slice_ms, settling=tells_uncounted)
    kernel = WindowKernel(
        targets,
        keys,
        arrival,
        aggregates,
        tells_uncounted=tells_uncounted,
        of_panes=of_panes is not None,
        slice_ms=slice_ms,
        only_closed=only_closed,
    )
    wanted = [*kernel.group, "_event_time_ms", *_optional(records), *arrival, *columns]
    if of_panes is not None:
        wanted += [RECORDS, LAST_MS]
    in_order = in_radix_order(records.select(*dict.fromkeys(wanted)), kernel.group)
    groups = [records.schema[name] for name in kernel.told]
    schema = _found_schema(groups, of_panes or records.schema, aggregates, kernel)
    found = in_order.mapInArrow(kernel, schema)
    whole = _whole(found, targets, kernel)
    return _each_window(whole) if kernel.tells_runs else whole


def late(
    records: DataFrame,
    targets: Mapping[int, Target],
    keys: Sequence[str],
    arrival: Sequence[str] = (),
    *,
    slice_ms: int | None = None,
) -> DataFrame:
    """The records that no window counts, with `reason`: late, uncovered or uncounted (rule A5).

    Args:
        records: As `evaluate` takes them, with any other columns.
        targets: See `evaluate`.
        keys: See `evaluate`.
        arrival: See `evaluate`.
        slice_ms: See `evaluate`.

    Returns:
        Their rows, in no order. What a window that is open may still count is not among them.
        A record that is given to several targets is judged for each.
    """
    if slice_ms is not None:
        records = in_slices(records, _windows_of(targets), slice_ms, settling=True)
    schema = T.StructType([*records.schema.fields, T.StructField("reason", T.StringType())])
    kernel = LateKernel(targets, keys, arrival, slice_ms=slice_ms)
    found = in_radix_order(records, kernel.group).mapInArrow(kernel, schema)
    return found.drop(SLICE)


def _windows_of(targets: Mapping[int, Target]) -> WindowSpec:
    """The windows of all targets."""
    return next(iter(targets.values())).windows


def _each_window(runs: DataFrame) -> DataFrame:
    """Every window of the runs that hold the same records."""
    ends = F.sequence("_window_end_ms", "_last_window_end_ms", "_advance_ms")
    # Outer, as uncounted records have no ends, and as the plan else makes each sequence twice.
    each = runs.select("*", F.explode_outer(ends).alias("_end_ms"))
    later_ms = F.col("_end_ms") - F.col("_window_end_ms")
    start_ms = F.col("_window_start_ms") + later_ms
    moved = each.withColumns({"_window_start_ms": start_ms, "_window_end_ms": F.col("_end_ms")})
    return moved.drop("_end_ms", *RUN)


def _optional(records: DataFrame) -> Iterable[str]:
    return (name for name in _OPTIONAL if name in records.columns)


def _found_schema(
    groups: Sequence[T.StructField],
    values: T.StructType,
    aggregates: Sequence[Aggregate],
    kernel: WindowKernel,
) -> T.StructType:
    """What the kernel gives."""
    schema = T.StructType(list(groups))
    starts = ("_window_start_ms",) if kernel.tells_starts else ()
    times = ("_window_end_ms", "_first_event_time_ms", "_last_event_time_ms")
    for name in (*starts, *times, "record_count"):
        schema.add(name, T.LongType())
    for aggregate in aggregates:
        result = aggregate.result_type(values[aggregate.column].dataType.simpleString())
        schema.add(aggregate.name, T.DataType.fromDDL(result))
    schema.add("closed", T.BooleanType())
    uncounted = UNCOUNTED if kernel.tells_uncounted else ()
    for name in (*uncounted, *(RUN if kernel.tells_runs else ())):
        schema.add(name, T.LongType())
    return schema


def _whole(found: DataFrame, targets: Mapping[int, Target], kernel: WindowKernel) -> DataFrame:
    """What the kernel gives, and what need not be moved: the only target, and windows' starts."""
    columns = [F.col(f"`{name}`") for name in found.columns]
    if "_computed_day" not in kernel.told:
        columns.append(F.lit(next(iter(targets))).cast("int").alias("_computed_day"))
    if not kernel.tells_starts:
        length_ms = kernel.length_ms
        start_ms = F.col("_first_event_time_ms")
        if length_ms is not None:
            start_ms = F.col("_window_end_ms") - F.lit(length_ms)
        columns.append(start_ms.alias("_window_start_ms"))
    return found.select(*columns)
