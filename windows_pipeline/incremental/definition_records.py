"""The records of a source as a window definition sees them: by its key, and through its filter."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.alerts.rule_sql import columns_read
from windows_pipeline.config import Source, Windows
from windows_pipeline.sources.validation import key_of

PASSES = "_passes"
"""The column that says whether a record passes the definition's filter."""


def definition_records(raw_events: DataFrame, windows: Windows, source: Source) -> DataFrame:
    """Returns all records of a source by the definition's key, marked by its filter.

    Records that do not pass are in no window, but they advance stream time as all others do, so
    firings need them; `passing` leaves them out.

    Args:
        raw_events: Rows of the table raw_events, with any further columns.
        windows: The definition.
        source: The pipeline's source.

    Returns:
        The same rows, with the definition's `key`; columns that are not in this key are values.
        If the definition has a filter, also `_passes` (boolean, never null).
    """
    marked = _marked(raw_events, windows, source)
    own = windows.keyed(source)
    if own.key == source.key:
        return marked
    of_source = _parts(source)
    parts = [of_source.get(name, F.col(f"`{name}`")).alias(name) for name in own.key_columns]
    others = [name for name in marked.columns if name not in ("key", *own.key_columns)]
    values = [column.alias(name) for name, column in of_source.items() if name in own.values]
    return marked.select(key_of(parts).alias("key"), *others, *values)


def passing(records: DataFrame) -> DataFrame:
    """Returns the records that pass the filter of `definition_records`; all without a filter."""
    return records.where(PASSES).drop(PASSES) if PASSES in records.columns else records


def _marked(raw_events: DataFrame, windows: Windows, source: Source) -> DataFrame:
    where = windows.where_sql(source)
    if where is None:
        return raw_events
    known = {name.lower() for name in raw_events.columns}
    by_own_name = {**_parts(source), source.event_time: F.col("event_time")}
    if source.source_partition is not None:
        by_own_name[source.source_partition] = F.col("source_partition")
    added = {
        name: column
        for name, column in by_own_name.items()
        if name in columns_read(str(windows.where)) and name.lower() not in known
    }
    passes = F.coalesce(F.expr(where), F.lit(False))
    return raw_events.withColumns(added).withColumn(PASSES, passes).drop(*added)


def _parts(source: Source) -> dict[str, Column]:
    """The columns of the source's key in raw_events, by their own names."""
    key = F.col("key")
    if isinstance(source.key, str):
        return {source.key: key}
    return {name: key[name] for name in source.key}
