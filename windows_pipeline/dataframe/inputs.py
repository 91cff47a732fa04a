"""Turns a user's DataFrame into the engine's records: keys, times in ms, values, arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate, Aggregation
from windows_pipeline.aggregates.aggregation import ColumnOrName
from windows_pipeline.dataframe.arguments import (
    NO_KEYS,
    column_of,
    require_aggregates,
    require_bounded,
    require_column,
    require_computable,
    require_names,
    require_orderable,
)
from windows_pipeline.dataframe.names import unquoted
from windows_pipeline.windows.arguments import require_positive
from windows_pipeline.windows.durations import Duration, duration_ms

_NULLABLE_TIME_MS = "_nullable_time_ms"
"""The column of event times for broadcasts. `_event_time_ms` raises an error for null, which Spark
would report as an exception of a Java thread there."""
_NO_OFFSETS = (*NO_KEYS, T.StringType, T.BinaryType, T.BooleanType)


@dataclass(frozen=True, slots=True)
class ArrivalOrder:
    """The order of arrival, which determines stream time and lateness (rules A1 to A4).

    Attributes:
        columns: The columns that order arrival within a source partition: numbers, dates,
            timestamps, or structs of these. Each combination of values must be unique.
        partition: The column of the source partition; None for a single source partition.
        idle_after: How far a source partition's stream time may lie behind the furthest one
            and still hold windows open; None for any distance (rule A4).
    """

    columns: tuple[str, ...]
    partition: str | None = None
    idle_after: Duration | None = None

    def __post_init__(self) -> None:
        """Checks the arguments."""
        require_names("arrival", self.columns)
        if not self.columns:
            raise ValueError(
                "arrival: must name at least one column, but names none; add one, as in "
                ".arrival('offset')"
            )
        if self.partition is not None and not isinstance(self.partition, str):
            raise ValueError(
                f"arrival: partition: must be a column's name, not {self.partition!r}; pass its "
                "name as text"
            )
        _ = self.idle_after_ms

    @property
    def idle_after_ms(self) -> int | None:
        """`idle_after` in milliseconds.

        Raises:
            ValueError: `idle_after` is not a duration above zero.
        """
        if self.idle_after is None:
            return None
        ms = duration_ms(self.idle_after, "idle_after")
        require_positive("idle_after", ms)
        return ms

    @property
    def offset(self) -> Column:
        """The column that orders arrival, or a struct of several columns."""
        columns = [F.col(name) for name in self.columns]
        return columns[0] if len(columns) == 1 else F.struct(*columns)


@dataclass(frozen=True)
class Input:
    """One input of windows, checked: turns its records into those that the engine takes.

    Attributes:
        events: The records.
        by: The key's columns.
        event_time: The event time's column: a timestamp, or a bigint of milliseconds; None
            if only the order of arrival matters.
        aggregates: The aggregates to compute, as the user named them.
        arrival: The order of arrival; None if all records are on time.
        source: The index of the stream; each stream has separate source partitions and values.
    """

    events: DataFrame
    by: Sequence[str]
    event_time: str | None
    aggregates: Sequence[Aggregation] = field(default=())
    arrival: ArrivalOrder | None = None
    source: int = 0

    def __post_init__(self) -> None:
        """Checks that the DataFrame is a batch, the arguments, and the types of key and time."""
        require_bounded(self.events)
        self._require_arguments()
        for name, key_type in zip(self.by, self.key_types, strict=True):
            require_orderable(name, key_type)
        kind = self.time_type
        if not isinstance(kind, (T.TimestampType, T.LongType, T.IntegerType)):
            raise ValueError(
                f"event_time: {self.event_time!r} is of type {kind.simpleString()}; cast it to "
                "timestamp, or to bigint milliseconds"
            )

    def _require_arguments(self) -> None:
        """Checks the columns, the aggregates and the order of arrival."""
        for name in self.by:
            require_column(self.events, "by", name)
        if self.event_time is not None:
            require_column(self.events, "event_time", self.event_time)
        require_aggregates(self.aggregates)
        for aggregation in self.aggregates:
            require_computable(self.events, aggregation)
        values = self.events.select(*self._value_columns).schema
        for aggregate in self.engine_aggregates:
            aggregate.result_type(values[aggregate.column].dataType.simpleString())
        if self.arrival is not None:
            self._require_arrival(self.arrival)

    def _require_arrival(self, arrival: ArrivalOrder) -> None:
        if arrival.partition is not None:
            require_column(self.events, "arrival: partition", arrival.partition)
        for name in arrival.columns:
            kind = require_column(self.events, "arrival: offset", name)
            # Without an event time, any type with an order will do; group windows check theirs.
            if self.event_time is not None and isinstance(kind, _NO_OFFSETS):
                raise ValueError(
                    f"arrival: offset {name!r} is of type {kind.simpleString()}, but must be "
                    "of numbers, dates or timestamps; cast it, as to bigint"
                )

    @property
    def idle_after(self) -> Duration | None:
        """How far a source partition may lag before it is idle; None for any distance."""
        return None if self.arrival is None else self.arrival.idle_after

    @cached_property
    def key_types(self) -> list[T.DataType]:
        """The types of the key's columns."""
        return [field.dataType for field in self.events.select(*self.by).schema]

    @cached_property
    def time_type(self) -> T.DataType:
        """The type of the event time."""
        if self.event_time is None:
            return T.LongType()
        return self.events.select(self.event_time).schema[0].dataType

    @property
    def keys(self) -> list[str]:
        """The key's columns as `records` names them."""
        return [f"_key_{index}" for index in range(len(self.by))]

    @property
    def key_names(self) -> list[str]:
        """The key's columns as results name them."""
        return [unquoted(name) for name in self.by]

    @property
    def _values(self) -> list[str]:
        """The value column of each aggregate; aggregates of equal columns share a value column."""
        inputs = [
            tuple(map(_identity, (each.column, each.by, each.condition)))
            for each in self.aggregates
        ]
        return [f"_value_{self.source}_{inputs.index(each)}" for each in inputs]

    @property
    def _value_columns(self) -> list[Column]:
        """The values to aggregate; null, so not counted, where a condition is not true."""
        columns = {}
        for each, name in zip(self.aggregates, self._values, strict=True):
            value = F.lit(1) if each.column is None else column_of(self.events, each.column)
            if each.by is not None:
                by = column_of(self.events, each.by)
                value = F.when(by.isNotNull(), F.struct(value.alias("value"), by.alias("by")))
            if each.condition is not None:
                value = F.when(column_of(self.events, each.condition), value)
            columns[name] = value.alias(name)
        return list(columns.values())

    @property
    def engine_aggregates(self) -> list[Aggregate]:
        """The aggregates as the engine takes them: over the value columns of `records`.

        Their results have names of the engine, so that a user's name cannot be that of another
        column before the last select.
        """
        return [
            Aggregate(
                each.result_name,
                each.function,
                value,
                each.percentage,
                each.written,
                computed_as=f"_result_{self.source}_{index}",
                by=each.written_by,
            )
            for index, (each, value) in enumerate(zip(self.aggregates, self._values, strict=True))
        ]

    def records(self, *extra: Column) -> DataFrame:
        """The records with the columns that the engine needs.

        Args:
            extra: Further columns to keep.

        Returns:
            `_computed_day` (0), `_key_0` and so on, `_event_time_ms` (raises an error where the
            event time is null), `_nullable_time_ms`, the values, `source` (int),
            `source_partition` and `offset` (null without `arrival`), and the extra columns.
        """
        keys = zip(self.by, self.key_types, self.keys, strict=True)
        partition = offset = F.lit(None).cast("bigint")
        if self.arrival is not None:
            offset = self.arrival.offset
        if self.arrival is not None and self.arrival.partition is not None:
            partition = F.col(self.arrival.partition)
        return self.events.select(
            F.lit(0).alias("_computed_day"),
            *(_normal(F.col(name), key_type).alias(key) for name, key_type, key in keys),
            self._known_time_ms().alias("_event_time_ms"),
            self._time_ms().alias(_NULLABLE_TIME_MS),
            *self._value_columns,
            F.lit(self.source).alias("source"),
            partition.cast("string").alias("source_partition"),
            offset.alias("offset"),
            *extra,
        )

    def _time_ms(self) -> Column:
        if self.event_time is None:
            return F.lit(None).cast("bigint")
        time = F.col(self.event_time)
        is_timestamp = isinstance(self.time_type, T.TimestampType)
        return F.unix_millis(time) if is_timestamp else time.cast("bigint")

    def _known_time_ms(self) -> Column:
        """The event time in milliseconds; a null event time raises an error (rule A6)."""
        if self.event_time is None:
            return self._time_ms()
        missing = (
            f"event_time: {self.event_time!r} is null in a record, but every record needs "
            f"an event time; leave such records out, as with "
            f"events.where('{self.event_time} IS NOT NULL')"
        )
        return F.coalesce(self._time_ms(), F.raise_error(F.lit(missing)).cast("bigint"))

    def instant(self, name: str, plus_ms: int = 0) -> Column:
        """A column of milliseconds plus `plus_ms`, converted to the event time's type."""
        milliseconds = F.col(name) + F.lit(plus_ms) if plus_ms else F.col(name)
        if isinstance(self.time_type, T.TimestampType):
            return F.timestamp_millis(milliseconds)
        if isinstance(self.time_type, T.LongType):
            return milliseconds
        # A window's bound must not wrap, whatever Spark's ANSI setting for casts.
        beyond = F.lit(f"event_time: {self.event_time!r} is an int, and {name} fits none; cast it ")
        refused = F.raise_error(F.concat(beyond, F.lit("to bigint milliseconds"))).cast("int")
        known = F.coalesce(milliseconds.try_cast("int"), refused)
        return F.when(milliseconds.isNotNull(), known)


ARRIVAL_COLUMNS = ("source", "source_partition", "offset")
"""The columns that order arrival among records with equal close times (rule A1)."""


def with_close_times(records: DataFrame, delay_ms: int, arrival: ArrivalOrder | None) -> DataFrame:
    """Adds the close time at each record's arrival, and the close time after all records.

    Args:
        records: The result of `Input.records`.
        delay_ms: The distance from stream time back to the close time (rule A3).
        arrival: The order of arrival; None if all records are on time.

    Returns:
        The records with `_close_after_ms` and, if `arrival` is given, `_close_time_ms` (bigint).
    """
    if arrival is not None:
        records = records.withColumn("_close_time_ms", _stream_time_ms() - F.lit(delay_ms))
    return records.crossJoin(F.broadcast(close_after(records, delay_ms, arrival)))


def with_order_of_pairs(
    records: DataFrame, aggregates: Sequence[Aggregate], order: Sequence[str]
) -> DataFrame:
    """Lets the order of arrival decide among equal values of what `min_by` goes by (rule G1).

    Args:
        records: The columns that the aggregates take, and those of `order`.
        aggregates: The aggregates.
        order: The columns that order arrival; none where it is unknown.
    """
    pairs = {each.column: F.col(each.column) for each in aggregates if each.by is not None}
    if not pairs or not order:
        return records
    return records.withColumns(
        {
            name: F.when(
                pair.isNotNull(),
                F.struct(pair["value"], F.struct(pair["by"], *order).alias("by")),
            )
            for name, pair in pairs.items()
        }
    )


def close_after(records: DataFrame, delay_ms: int, arrival: ArrivalOrder | None) -> DataFrame:
    """The close time after all records, as a single row: `_close_after_ms` (bigint).

    Args:
        records: See `with_close_times`.
        delay_ms: See `with_close_times`.
        arrival: See `with_close_times`.
    """
    partition = [] if arrival is None else ["source", "source_partition"]
    stream_times = records.groupBy(*partition).agg(F.max(_NULLABLE_TIME_MS).alias("_max_ms"))
    idle_after_ms = None if arrival is None else arrival.idle_after_ms
    slowest_ms = stream_times.agg(_slowest_active(idle_after_ms).alias("_slowest_ms"))
    return slowest_ms.select((F.col("_slowest_ms") - F.lit(delay_ms)).alias("_close_after_ms"))


def with_stream_times(
    records: DataFrame, arrival: ArrivalOrder, *, are_several: bool, input_ends: bool = False
) -> DataFrame:
    """Adds the stream time at each record's arrival, and drops undecided records (A1, A2).

    The slowest source partition that is not idle limits how far the merge of several source
    partitions is final; records beyond its position are dropped (rule A4).

    Args:
        records: The result of `Input.records`.
        arrival: The order of arrival.
        are_several: Whether the records are of several streams.
        input_ends: Whether no further records follow, so that the whole merge is final.

    Returns:
        The records with `_stream_time_ms` (bigint).
    """
    timed = records.withColumn("_stream_time_ms", _stream_time_ms())
    if input_ends or not (are_several or arrival.partition is not None):
        return timed
    ends = records.groupBy("source", "source_partition").agg(F.max(_NULLABLE_TIME_MS).alias("_ms"))
    every = F.collect_list(F.struct("_ms", "source", "source_partition"))
    if arrival.idle_after_ms is not None:
        idle_after_ms, all_ends = F.lit(arrival.idle_after_ms), every
        active_from_ms = F.array_max(all_ends)["_ms"] - idle_after_ms
        every = F.filter(all_ends, lambda end: end["_ms"] >= active_from_ms)
    reached = ends.agg(F.array_min(every).alias("_reached"))
    position = F.struct(F.col("_stream_time_ms").alias("_ms"), "source", "source_partition")
    return (
        timed.crossJoin(F.broadcast(reached)).where(position <= F.col("_reached")).drop("_reached")
    )


def _stream_time_ms() -> Column:
    """The largest event time in a source partition up to each record (rule A2)."""
    in_order = Window.partitionBy("source", "source_partition").orderBy("offset")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    offset = F.col("offset")
    partition = F.coalesce("source_partition", F.lit("of all records"))
    unknown = F.concat(F.lit("arrival: in source partition "), partition, F.lit(" "))
    missing = F.concat(
        unknown,
        F.lit("a record has no offset, so its order of arrival is unknown; fill the column"),
    )
    twice = F.concat(
        unknown, F.lit("offset "), offset.cast("string"),
        F.lit(" comes twice, so the order of arrival is unknown; make each value unique"),
    )  # fmt: skip
    refused = F.when(offset.isNull(), F.raise_error(missing).cast("bigint")).when(
        offset == F.lag("offset").over(in_order), F.raise_error(twice).cast("bigint")
    )
    return refused.otherwise(F.max("_event_time_ms").over(so_far))


def _slowest_active(idle_after_ms: int | None) -> Column:
    """The smallest stream time of the partitions that are not idle (rule A4)."""
    if idle_after_ms is None:
        return F.min("_max_ms")
    every = F.collect_list("_max_ms")
    active_from_ms = F.array_max(every) - F.lit(idle_after_ms)
    return F.array_min(F.filter(every, lambda time_ms: time_ms >= active_from_ms))


def _identity(expression: ColumnOrName | None) -> object:
    """A value that identifies a column or condition; `Column` objects compare by identity."""
    return expression if expression is None or isinstance(expression, str) else id(expression)


def _holds_doubles(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return any(_holds_doubles(part.dataType) for part in kind)
    return isinstance(kind, (T.DoubleType, T.FloatType))


def _normal(key: Column, kind: T.DataType) -> Column:
    """A key whose equal values have equal bits: a single NaN, and 0.0 for -0.0."""
    if isinstance(kind, T.StructType) and _holds_doubles(kind):
        parts = [_normal(key.getField(part.name), part.dataType).alias(part.name) for part in kind]
        return F.when(key.isNotNull(), F.struct(*parts))
    if not isinstance(kind, (T.DoubleType, T.FloatType)):
        return key
    return F.when(F.isnan(key), F.lit(float("nan")).cast(kind)).otherwise(key + F.lit(0).cast(kind))
