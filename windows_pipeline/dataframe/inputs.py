"""A user's DataFrame as the engine takes it: keys, times in milliseconds, values, arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregate, Aggregation
from windows_pipeline.aggregates.functions import ColumnOrName
from windows_pipeline.dataframe.checks import (
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

_NULLABLE_TIME_MS = "nullable_time_ms"
"""For what is broadcast: an error would come out of there as one of Java's threads."""
_NO_OFFSETS = (*NO_KEYS, T.StringType, T.BinaryType, T.BooleanType)


@dataclass(frozen=True, slots=True)
class Arrival:
    """How records came: what stream time, and so lateness, follows from (rules A1 to A4).

    Attributes:
        columns: The columns that order arrival within a source partition, each combination of
            values once: of numbers, dates, timestamps, or structs of these.
        partition: The column of the source partition; None for a single one.
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
            raise ValueError("arrival: no column is named; name it, as in .arrival('offset')")
        if self.partition is not None and not isinstance(self.partition, str):
            raise ValueError(
                f"arrival: partition: {self.partition!r} is no name of a column; pass its name as "
                "text"
            )
        _ = self.idle_after_ms

    @property
    def idle_after_ms(self) -> int | None:
        """The same in milliseconds.

        Raises:
            ValueError: No duration, or one not above zero.
        """
        if self.idle_after is None:
            return None
        ms = duration_ms(self.idle_after, "idle_after")
        require_positive("idle_after", ms)
        return ms

    @property
    def offset(self) -> Column:
        """What orders arrival: the column, or a struct of several."""
        columns = [F.col(name) for name in self.columns]
        return columns[0] if len(columns) == 1 else F.struct(*columns)


@dataclass(frozen=True)
class Input:
    """One input: its records, and what is asked of them.

    Attributes:
        events: The records.
        by: The key's columns.
        event_time: The event time's column: a timestamp, or a bigint of milliseconds; None
            where only the order of arrival counts.
        of: What is computed of the values.
        arrival: How the records came; None where all are on time.
        source: The stream's number: of two, each has source partitions and values of its own.
    """

    events: DataFrame
    by: Sequence[str]
    event_time: str | None
    of: Sequence[Aggregation] = field(default=())
    arrival: Arrival | None = None
    source: int = 0

    def __post_init__(self) -> None:
        """Checks that it ends, what is asked, and the key's and the event time's types."""
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
        """Refuses what is no column, no aggregate or no arrival."""
        for name in self.by:
            require_column(self.events, "by", name)
        if self.event_time is not None:
            require_column(self.events, "event_time", self.event_time)
        require_aggregates(self.of)
        for one in self.of:
            require_computable(self.events, one)
        values = self.events.select(*self._value_columns).schema
        for aggregate in self.aggregates:
            aggregate.result_type(values[aggregate.column].dataType.simpleString())
        if self.arrival is not None:
            self._require_arrival(self.arrival)

    def _require_arrival(self, arrival: Arrival) -> None:
        if arrival.partition is not None:
            require_column(self.events, "arrival: partition", arrival.partition)
        for name in arrival.columns:
            kind = require_column(self.events, "arrival: offset", name)
            # Where there are no times any order will do; group windows judge it themselves.
            if self.event_time is not None and isinstance(kind, _NO_OFFSETS):
                raise ValueError(
                    f"arrival: offset {name!r} is of type {kind.simpleString()}, whose order is "
                    "not that of numbers or times; cast it, as to bigint"
                )

    @property
    def idle_after(self) -> Duration | None:
        """How far a source partition may lie behind."""
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
        return [f"_key_{place}" for place in range(len(self.by))]

    @property
    def key_names(self) -> list[str]:
        """The key's columns as results name them."""
        return [unquoted(name) for name in self.by]

    @property
    def _values(self) -> list[str]:
        """The column of each aggregate; several of one column share it."""
        asked = [(_identity(one.column), _identity(one.condition)) for one in self.of]
        return [f"_value_{self.source}_{asked.index(one)}" for one in asked]

    @property
    def _value_columns(self) -> list[Column]:
        """What is aggregated: null where a condition is not true, so that it does not count."""
        columns = {}
        for one, name in zip(self.of, self._values, strict=True):
            value = F.lit(1) if one.column is None else column_of(self.events, one.column)
            if one.condition is not None:
                value = F.when(column_of(self.events, one.condition), value)
            columns[name] = value.alias(name)
        return list(columns.values())

    @property
    def aggregates(self) -> list[Aggregate]:
        """What the engine computes, of the columns that `records` makes."""
        return [
            Aggregate(one.result_name, one.function, value, one.percentage, one.written)
            for one, value in zip(self.of, self._values, strict=True)
        ]

    def records(self, *extra: Column) -> DataFrame:
        """The columns that the engine takes.

        Args:
            extra: Columns to keep.

        Returns:
            `_computed_day` (0), `_key_0` and so on, `_event_time_ms` (an error where there is
            none) and `nullable_time_ms`, the values, `source` (int), `source_partition` and
            `offset` (null without `arrival`), and the extra columns.
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
        """The event time, an error where it is null (rule A6)."""
        if self.event_time is None:
            return self._time_ms()
        missing = (
            f"event_time: {self.event_time!r} is null in a record, which so has no place in time; "
            f"leave such records out, as with events.where('{self.event_time} IS NOT NULL')"
        )
        return F.coalesce(self._time_ms(), F.raise_error(F.lit(missing)).cast("bigint"))

    def instant(self, name: str, plus_ms: int = 0) -> Column:
        """A column of milliseconds, and some more, as the event time's type."""
        milliseconds = F.col(name) + F.lit(plus_ms) if plus_ms else F.col(name)
        if isinstance(self.time_type, T.TimestampType):
            return F.timestamp_millis(milliseconds)
        if isinstance(self.time_type, T.LongType):
            return milliseconds
        # Whatever Spark is told of casts: a bound of a window must not wrap.
        beyond = F.lit(f"event_time: {self.event_time!r} is an int, and {name} fits none; cast it ")
        refused = F.raise_error(F.concat(beyond, F.lit("to bigint milliseconds"))).cast("int")
        known = F.coalesce(milliseconds.try_cast("int"), refused)
        return F.when(milliseconds.isNotNull(), known)


ARRIVAL_COLUMNS = ("source", "source_partition", "offset")
"""What orders arrival among records that met one close time (rule A1)."""


def with_close_times(records: DataFrame, delay_ms: int, arrival: Arrival | None) -> DataFrame:
    """Adds the close time that each record met and the one that all of them leave.

    Args:
        records: What `Input.records` gives.
        delay_ms: How far the close time lies behind stream time (rule A3).
        arrival: How the records came; None where all are on time.

    Returns:
        With `_close_after_ms`, and where arrival is known `_close_time_ms` (bigint).
    """
    if arrival is not None:
        records = records.withColumn("_close_time_ms", _stream_time_ms() - F.lit(delay_ms))
    return records.crossJoin(F.broadcast(close_after(records, delay_ms, arrival)))


def close_after(records: DataFrame, delay_ms: int, arrival: Arrival | None) -> DataFrame:
    """The close time that all records leave, as a row: `_close_after_ms` (bigint).

    Args:
        records: See `with_close_times`.
        delay_ms: See `with_close_times`.
        arrival: See `with_close_times`.
    """
    partition = [] if arrival is None else ["source", "source_partition"]
    stream_times = records.groupBy(*partition).agg(F.max(_NULLABLE_TIME_MS).alias("max_ms"))
    idle_after_ms = None if arrival is None else arrival.idle_after_ms
    slowest_ms = stream_times.agg(_slowest_active(idle_after_ms).alias("slowest_ms"))
    return slowest_ms.select((F.col("slowest_ms") - F.lit(delay_ms)).alias("_close_after_ms"))


def with_stream_times(
    records: DataFrame, arrival: Arrival, *, input_ends: bool = False
) -> DataFrame:
    """Adds the stream time that each record met; keeps what the merge holds for good (A1, A2).

    Of several source partitions the slowest that is not idle tells how far their merge has
    come; what lies behind its place is left out (rule A4).

    Args:
        records: What `Input.records` gives.
        arrival: How the records came.
        input_ends: Whether no source partition brings more, so that all of the merge is there.

    Returns:
        With `_stream_time_ms` (bigint).
    """
    timed = records.withColumn("_stream_time_ms", _stream_time_ms())
    if arrival.partition is None or input_ends:
        return timed
    ends = records.groupBy("source", "source_partition").agg(F.max(_NULLABLE_TIME_MS).alias("ms"))
    every = F.collect_list(F.struct("ms", "source", "source_partition"))
    if arrival.idle_after_ms is not None:
        idle_after_ms, all_ends = F.lit(arrival.idle_after_ms), every
        active_from_ms = F.array_max(all_ends)["ms"] - idle_after_ms
        every = F.filter(all_ends, lambda end: end["ms"] >= active_from_ms)
    reached = ends.agg(F.array_min(every).alias("reached"))
    place = F.struct(F.col("_stream_time_ms").alias("ms"), "source", "source_partition")
    return timed.crossJoin(F.broadcast(reached)).where(place <= F.col("reached")).drop("reached")


def _stream_time_ms() -> Column:
    """The largest event time of a source partition up to each record (rule A2)."""
    in_order = Window.partitionBy("source", "source_partition").orderBy("offset")
    so_far = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    offset = F.col("offset")
    partition = F.coalesce("source_partition", F.lit("of all records"))
    unknown = F.concat(F.lit("arrival: in source partition "), partition, F.lit(" "))
    missing = F.concat(unknown, F.lit("a record has no offset, so its place is not known"))
    twice = F.concat(
        unknown, F.lit("offset "), offset.cast("string"),
        F.lit(" comes twice, so the order of arrival is not known; each value must be there once"),
    )  # fmt: skip
    refused = F.when(offset.isNull(), F.raise_error(missing).cast("bigint")).when(
        offset == F.lag("offset").over(in_order), F.raise_error(twice).cast("bigint")
    )
    return refused.otherwise(F.max("_event_time_ms").over(so_far))


def _slowest_active(idle_after_ms: int | None) -> Column:
    """The smallest stream time of the partitions that are not idle (rule A4)."""
    if idle_after_ms is None:
        return F.min("max_ms")
    every = F.collect_list("max_ms")
    active_from_ms = F.array_max(every) - F.lit(idle_after_ms)
    return F.array_min(F.filter(every, lambda time_ms: time_ms >= active_from_ms))


def _identity(asked: ColumnOrName | None) -> object:
    """What tells one column or condition from another; expressions that look alike are two."""
    return asked if asked is None or isinstance(asked, str) else id(asked)


def _holds_doubles(kind: T.DataType) -> bool:
    if isinstance(kind, T.StructType):
        return any(_holds_doubles(part.dataType) for part in kind)
    return isinstance(kind, (T.DoubleType, T.FloatType))


def _normal(key: Column, kind: T.DataType) -> Column:
    """A key whose equal values are equal to the bit: one NaN, no -0.0."""
    if isinstance(kind, T.StructType) and _holds_doubles(kind):
        parts = [_normal(key.getField(part.name), part.dataType).alias(part.name) for part in kind]
        return F.when(key.isNotNull(), F.struct(*parts))
    if not isinstance(kind, (T.DoubleType, T.FloatType)):
        return key
    return F.when(F.isnan(key), F.lit(float("nan")).cast(kind)).otherwise(key + F.lit(0).cast(kind))
