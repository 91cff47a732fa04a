"""Windows of records in Spark: one shuffle, one sort, one pass, for every kind of window."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.compat.python_workers import in_workers
from windows_pipeline.engine.preaggregation.partial_result import LAST_MS, RECORDS
from windows_pipeline.engine.radix_sort import in_radix_order
from windows_pipeline.engine.time_shards import TIME_SHARD, in_time_shards
from windows_pipeline.engine.window_kernel import RUN, LateKernel, WindowKernel
from windows_pipeline.kernels.windows.chunk import ComputedDay
from windows_pipeline.windows import WindowSpec

PARTLY_LATE = ("_partly_late_time_ms", "_partly_late_close_ms")
"""The columns of a partly late record that no window counts: its event time and close time."""
_OPTIONAL = ("_close_time_ms", "_is_new", "_close_after_ms")


def evaluate_windows(
    records: DataFrame,
    computed_days: Mapping[int, ComputedDay],
    keys: Sequence[str],
    aggregates: Sequence[Aggregate],
    arrival: Sequence[str] = (),
    *,
    with_partly_late: bool = False,
    of_slices: T.StructType | None = None,
    shard_ms: int | None = None,
    only_closed: bool = False,
    with_failed: bool = False,
) -> DataFrame:
    """Computes the windows that each computed day changed or closed, as it left them.

    Args:
        records: One row a record and computed day: `_computed_day` (int, a key of
            `computed_days`), the key columns, `_event_time_ms` (bigint), and the columns that the
            aggregates take. Optionally `_close_time_ms` (bigint: the close time that the record
            met on arrival, null for none), `_is_new` (boolean: the record came with the computed
            day) and `_close_after_ms` (bigint, one value a computed day: the close time after it,
            which replaces that of `computed_days`). `_time_shard` of sessions that are cut by
            `in_record_shards`.
        computed_days: The windows to compute and the close times around them.
        keys: The columns whose values make a group (nulls are a value); any types that sort.
        aggregates: What to compute.
        arrival: The columns that order the arrival of records that met one close time. Only
            sessions need them (rule D2).
        with_partly_late: Whether to return partly late records that no sliding window counts.
        of_slices: Where the rows are slices (`in_slices`), the schema of the records that were
            aggregated into them; None where the rows are records.
        shard_ms: How long the time shards are into which each key's time is cut: the result of
            `shard_length_ms`. All computed days must then have the same windows. None for no
            time shards.
        only_closed: Whether to leave out open windows, before their aggregates are computed.
        with_failed: Whether an aggregate that can't be computed is null, and its name is in the
            column `failed`; otherwise it raises an error (rule G3).

    Returns:
        `_computed_day`, the keys, `_window_start_ms`, `_window_end_ms`, `_first_event_time_ms`,
        `_last_event_time_ms` (null in an empty window), `record_count`, the aggregates,
        with `with_failed` also `failed` (array of strings, never null in a window), and
        `closed`, in no order. With `with_partly_late` also `_partly_late_time_ms` and
        `_partly_late_close_ms`, which are null in windows, and a further row, null in everything
        but these, computed day and keys, for each distinct pair of event time and close time of
        the partly late records whose last window closed with the computed day and that no
        window counts (rule A5).

    Raises:
        ArithmeticError: When Spark runs it, without `with_failed`: a sum does not fit its type
            (rule G2).
        ValueError: When Spark runs it: an event time is null or out of range.
    """
    columns = [aggregate.column for aggregate in aggregates]
    if shard_ms is not None:
        windows = _windows_of(computed_days)
        records = in_time_shards(records, windows, shard_ms, with_partly_late=with_partly_late)
    kernel = WindowKernel(
        computed_days,
        keys,
        arrival,
        aggregates,
        with_partly_late=with_partly_late,
        of_slices=of_slices is not None,
        shard_ms=shard_ms,
        in_shards=TIME_SHARD in records.columns,
        only_closed=only_closed,
        with_failed=with_failed,
    )
    needed = [*kernel.group, "_event_time_ms", *_optional(records), *arrival, *columns]
    if of_slices is not None:
        needed += [RECORDS, LAST_MS]
    in_order = in_radix_order(records.select(*dict.fromkeys(needed)), kernel.group)
    groups = [records.schema[name] for name in kernel.result_keys]
    schema = _kernel_schema(groups, of_slices or records.schema, aggregates, kernel)
    found = in_workers(in_order, kernel, schema)
    whole = _with_derived_columns(found, computed_days, kernel)
    return _each_window(whole) if kernel.with_runs else whole


def late(
    records: DataFrame,
    computed_days: Mapping[int, ComputedDay],
    keys: Sequence[str],
    arrival: Sequence[str] = (),
    *,
    shard_ms: int | None = None,
) -> DataFrame:
    """Returns the records that no window counts, with the reason (rule A5).

    Args:
        records: As for `evaluate_windows`, with any other columns.
        computed_days: See `evaluate_windows`.
        keys: See `evaluate_windows`.
        arrival: See `evaluate_windows`.
        shard_ms: See `evaluate_windows`.

    Returns:
        Their rows with `reason` (late, outside_windows or partly_late), in no order. A record
        that an open window may still count is not among them. A record that several computed days
        read is judged for each.
    """
    if shard_ms is not None:
        windows = _windows_of(computed_days)
        records = in_time_shards(records, windows, shard_ms, with_partly_late=True)
    schema = T.StructType([*records.schema.fields, T.StructField("reason", T.StringType())])
    in_shards = TIME_SHARD in records.columns
    kernel = LateKernel(computed_days, keys, arrival, shard_ms=shard_ms, in_shards=in_shards)
    found = in_workers(in_radix_order(records, kernel.group), kernel, schema)
    return found.drop(TIME_SHARD)


def until_window_closes(keyed_windows: DataFrame) -> DataFrame:
    """Selects the final result of each closed window (rule E1).

    Args:
        keyed_windows: The state of each window after each arrival unit, with the boolean column
            `closed`.

    Returns:
        The rows of closed windows, without the column `closed`. Exactly one arrival unit closes
        a window, so each closed window has one row.

    Raises:
        ValueError: `keyed_windows` is no DataFrame, or has no boolean column `closed`.
    """
    is_frame = isinstance(keyed_windows, DataFrame)
    if not is_frame or dict(keyed_windows.dtypes).get("closed") != "boolean":
        raise ValueError(
            "keyed_windows: must be a DataFrame of windows, with a boolean column 'closed', not "
            f"{keyed_windows!r}; pass what windowed(events, windows).agg(...) returns"
        )
    return keyed_windows.where("closed").drop("closed")


def _windows_of(computed_days: Mapping[int, ComputedDay]) -> WindowSpec:
    """The windows that all computed days share."""
    return next(iter(computed_days.values())).windows


def _each_window(runs: DataFrame) -> DataFrame:
    """Unrolls runs of windows that contain the same records, into one row for each window."""
    ends = F.sequence("_window_end_ms", "_last_window_end_ms", "_advance_ms")
    # explode_outer keeps partly late records, which have no ends; Spark would also compute the
    # sequence twice for explode.
    each = runs.select("*", F.explode_outer(ends).alias("_end_ms"))
    later_ms = F.col("_end_ms") - F.col("_window_end_ms")
    start_ms = F.col("_window_start_ms") + later_ms
    moved = each.withColumns({"_window_start_ms": start_ms, "_window_end_ms": F.col("_end_ms")})
    return moved.drop("_end_ms", *RUN)


def _optional(records: DataFrame) -> Iterable[str]:
    return (name for name in _OPTIONAL if name in records.columns)


def _kernel_schema(
    groups: Sequence[T.StructField],
    values: T.StructType,
    aggregates: Sequence[Aggregate],
    kernel: WindowKernel,
) -> T.StructType:
    """The columns that the kernel returns."""
    schema = T.StructType(list(groups))
    starts = ("_window_start_ms",) if kernel.with_starts else ()
    times = ("_window_end_ms", "_first_event_time_ms", "_last_event_time_ms")
    for name in (*starts, *times, "record_count"):
        schema.add(name, T.LongType())
    for aggregate in aggregates:
        result = aggregate.result_type(values[aggregate.column].dataType.simpleString())
        schema.add(aggregate.result_column, T.DataType.fromDDL(result))
    if kernel.with_failed:
        schema.add("failed", T.ArrayType(T.StringType()))
    schema.add("closed", T.BooleanType())
    partly_late = PARTLY_LATE if kernel.with_partly_late else ()
    for name in (*partly_late, *(RUN if kernel.with_runs else ())):
        schema.add(name, T.LongType())
    return schema


def _with_derived_columns(
    found: DataFrame, computed_days: Mapping[int, ComputedDay], kernel: WindowKernel
) -> DataFrame:
    """Adds a single computed day, and window starts that follow from the ends."""
    columns = [F.col(f"`{name}`") for name in found.columns]
    if "_computed_day" not in kernel.result_keys:
        columns.append(F.lit(next(iter(computed_days))).cast("int").alias("_computed_day"))
    if not kernel.with_starts:
        length_ms = kernel.length_ms
        start_ms = F.col("_first_event_time_ms")
        if length_ms is not None:
            start_ms = F.col("_window_end_ms") - F.lit(length_ms)
        columns.append(start_ms.alias("_window_start_ms"))
    return found.select(*columns)
