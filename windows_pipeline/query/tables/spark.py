"""What stores need Spark for: tables at addresses that only it can open, and filters.

A table answers as `LocalTable` does: the same rows, with a Spark job or two for each question. The
module is in query/ beside `trace.py` and `registration.py`; nothing without Spark imports it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from functools import cached_property, reduce
from operator import and_

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.compat.local_frame import arrow_schema
from windows_pipeline.config import Source, Windows
from windows_pipeline.incremental.definition_records import PASSES, definition_records
from windows_pipeline.query.tables.keys import KEY, KeyColumn, KeyRange
from windows_pipeline.query.tables.local import NoTableError, UnreadableTableError
from windows_pipeline.query.tables.sql import DAY
from windows_pipeline.query.tables.wanted import Part, Wanted
from windows_pipeline.storage.catalog import TableSpec
from windows_pipeline.storage.instants import ms_to_timestamp, timestamp_to_ms, us_to_timestamp
from windows_pipeline.storage.table import Table

_END = "window_end"
_MS_US = 1_000


class SparkTables:
    """Opens tables with a session."""

    def __init__(self, spark: SparkSession) -> None:
        """Takes the session."""
        self._spark = spark

    def __call__(self, spec: TableSpec, version: int | None = None, /) -> SparkTable:
        """Opens a table.

        Raises:
            NoTableError: The table does not exist.
            UnreadableTableError: The table has no such version.
        """
        return SparkTable(self._spark, spec, version)

    def passing(self, rows: pa.Table, windows: Windows, source: Source) -> list[bool]:
        """Whether each row of raw_events passes a definition's filter (rule A9)."""
        frame = self._spark.createDataFrame(
            rows.append_column("_row", pa.array(range(rows.num_rows)))
        )
        marked = definition_records(frame, windows, source).select("_row", PASSES)
        return [passes for _, passes in sorted(map(tuple, marked.collect()))]


class SparkTable:
    """A table at one version."""

    def __init__(self, spark: SparkSession, spec: TableSpec, version: int | None) -> None:
        """Opens the table; see `SparkTables`."""
        stored = Table(**vars(spec))
        if not stored.exists(spark):
            raise NoTableError(spec)
        self._spec = spec
        self.version = stored.version(spark) if version is None else version
        try:
            self._frame = stored.read_version(spark, self.version)
            self.schema = arrow_schema(self._frame.schema)
        except PySparkException as error:
            raise UnreadableTableError(
                f"{spec.name}: must have version {self.version} in its log, but does not: "
                f"{str(error).splitlines()[0]}; open the newest version"
            ) from error

    @property
    def key(self) -> KeyColumn:
        """The table's key column."""
        comment = next((c.comment for c in self._spec.columns if c.name == KEY), "")
        return KeyColumn(self.schema.field(KEY).type, comment)

    @cached_property
    def days(self) -> set[date]:
        """The arrival days that have rows."""
        return {row[0] for row in self._frame.select(DAY).distinct().collect()}

    def parts(self, wanted: Wanted) -> list[Part]:
        """Each arrival day that has wanted rows, with their number and first end."""
        ends = F.min(_END) if _END in self.schema.names else F.lit(None).cast("timestamp")
        counted = (
            self._frame.where(_condition(wanted))
            .groupBy(DAY)
            .agg(F.count("*").alias("row_count"), timestamp_to_ms(ends).alias("first_end_ms"))
        )
        return [
            Part(day, row_count, None if end_ms is None else end_ms * _MS_US)
            for day, row_count, end_ms in counted.collect()
        ]

    def batches(self, wanted: Wanted, columns: Sequence[str] = ()) -> list[pa.RecordBatch]:
        """The wanted rows, read at once; see `read`."""
        found: list[pa.RecordBatch] = self.read(wanted, columns).to_batches()
        return found

    def read(self, wanted: Wanted, columns: Sequence[str] = ()) -> pa.Table:
        """The wanted rows, in no order.

        Args:
            wanted: Which rows.
            columns: The columns to return; all of the table's if empty.
        """
        names = list(columns) or self.schema.names
        frame: DataFrame = self._frame.where(_condition(wanted))
        found = frame.select(*[F.col(f"`{name}`") for name in names]).toArrow()
        schema = pa.schema([self.schema.field(name) for name in names])
        return pa.Table.from_arrays(
            [column.cast(field.type) for column, field in zip(found.columns, schema, strict=True)],
            schema=schema,
        )


def _condition(wanted: Wanted) -> Column:
    """The condition for wanted rows."""
    conditions = [F.lit(True), *_of_keys(wanted.keys)]
    for name, span in wanted.times.items():
        # Times in tables are whole milliseconds.
        time = F.col(f"`{name}`")
        if span.first_us is not None:
            conditions.append(time >= ms_to_timestamp(F.lit(-(-span.first_us // _MS_US))))
        if span.last_us is not None:
            conditions.append(time <= ms_to_timestamp(F.lit(span.last_us // _MS_US)))
    if wanted.days is not None:
        conditions.append(F.col(DAY).isin(sorted(wanted.days)))
    return reduce(and_, conditions)


def _of_keys(keys: KeyRange) -> list[Column]:
    parts = [_column(name) for name in keys.columns]
    if keys.first is not None and keys.is_one_key:
        return [
            part.eqNullSafe(_literal(value)) for part, value in zip(parts, keys.first, strict=True)
        ]
    found = []
    if keys.first is not None:
        found.append(_beyond(parts, list(map(_literal, keys.first)), is_after=True))
    if keys.last is not None:
        found.append(_beyond(parts, list(map(_literal, keys.last)), is_after=False))
    return found


def _column(name: str) -> Column:
    """A part of the key by its name in statistics."""
    plain = F.col(KEY)
    return plain if name == KEY else plain.getField(name.removeprefix(f"{KEY}."))


def _literal(value: pa.Scalar) -> Column:
    """A part of a key; Java would take dates and instants of Python for those of old calendars."""
    if not value.is_valid:
        return F.lit(None)
    if pa.types.is_date32(value.type):
        return F.date_from_unix_date(F.lit(value.cast(pa.int32()).as_py()))
    if pa.types.is_timestamp(value.type):
        return us_to_timestamp(F.lit(value.cast(pa.int64()).as_py()))
    return F.lit(value.as_py())


def _beyond(parts: Sequence[Column], bound: Sequence[Column], *, is_after: bool) -> Column:
    """The condition for keys at or beyond a bound; parts compare in order, null comes first."""
    part, value = parts[0], bound[0]
    low, high = (value, part) if is_after else (part, value)
    strictly = F.coalesce(low < high, F.lit(False)) | (low.isNull() & high.isNotNull())
    at_bound = part.eqNullSafe(value)
    if len(parts) > 1:
        at_bound = at_bound & _beyond(parts[1:], bound[1:], is_after=is_after)
    return strictly | at_bound
