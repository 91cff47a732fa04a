"""Names a pipeline's tables in a session's catalog, for people of SQL.

A name is a view of the table in its location: SQL reads it, and cannot write results by mistake.
It is a module of query/ beside `trace.py`, the other one that reads with Spark.
"""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from windows_pipeline.config import Pipeline, Windows
from windows_pipeline.query.declared import declared_pipeline
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import tables_of

_AGE = "arrival_unit DESC, batch DESC NULLS LAST"
"""Newest first: a row without a micro-batch is older than those of micro-batches."""


def register(spark: SparkSession, pipeline: str, *, project: str | Path = ".") -> tuple[str, ...]:
    """Names the tables of a pipeline in the session's catalog; returns the names.

    The schema has the pipeline's name. In it stand the source's tables by their names, those of a
    window definition with the definition's name before theirs, as in `flights.hourly_alerts`, and
    three views: `hourly_current_windows`, every window as it stands now (rule E4);
    `hourly_standing_alerts`, without those that a correction retracted (rule E1);
    `hourly_open_warnings`, early warnings whose windows are not closed (rule E5). Tables that do
    not exist yet are left out. A name that stands for another view is replaced.

    Args:
        spark: The session.
        pipeline: The pipeline's name.
        project: The folder with settings.yaml.

    Raises:
        SettingsError: settings.yaml is not as it must be.
        ValueError: There is no such pipeline.
    """
    found, warehouse = declared_pipeline(pipeline, project)
    return register_tables(spark, found, warehouse)


def register_tables(spark: SparkSession, pipeline: Pipeline, warehouse: str) -> tuple[str, ...]:
    """Names the tables of a pipeline, whose warehouse is known; see `register`."""
    spark.sql(f"CREATE SCHEMA IF NOT EXISTS {quoted(pipeline.name)}")
    names = []

    def name(table_name: str, table: Table, select: str = "SELECT * FROM {table}") -> None:
        if not table.exists(spark):
            return
        query = select.format(table=table.sql_path)
        spark.sql(
            f"CREATE OR REPLACE VIEW {quoted(pipeline.name)}.{quoted(table_name)} "
            f"COMMENT {_text(table.description)} AS {query}"
        )
        names.append(f"{pipeline.name}.{table_name}")

    of_pipeline = tables_of(pipeline, warehouse)
    for table in of_pipeline.of_source:
        name(table.short_name, table)
    for of, windows in pipeline.windows.items():
        tables = of_pipeline.of(of)
        for table in (*tables.of_every_definition, *tables.of_firings):
            name(f"{of}_{table.short_name}", table)
        name(f"{of}_current_windows", tables.keyed_windows, _current(windows))
        name(f"{of}_standing_alerts", tables.alerts, _STANDING)
        if tables.early_warnings.is_written:
            name(f"{of}_open_warnings", tables.early_warnings, _OPEN)
    return tuple(names)


def quoted(name: str) -> str:
    """A name quoted for SQL; it may hold any characters."""
    escaped = name.replace("`", "``")
    return f"`{escaped}`"


def _text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


_STANDS = (
    "closed OR NOT EXISTS (SELECT 1 FROM newest AS new WHERE new.key <=> old.key "
    "AND new.window_start <= old.window_start AND new.window_end >= old.window_end "
    "AND (new.arrival_unit > old.arrival_unit OR (new.arrival_unit = old.arrival_unit "
    "AND coalesce(new.batch, -1) > coalesce(old.batch, -1))))"
)
"""The condition for current sessions: closed, or not contained in a newer session of the key."""
_STANDING = "SELECT * FROM {table} WHERE retracted_by IS NULL"
_OPEN = (
    "SELECT * FROM {table} AS raised WHERE state = 'open' AND NOT EXISTS ("
    "SELECT 1 FROM {table} AS ended WHERE ended.state <> 'open' AND ended.rule = raised.rule "
    "AND ended.key <=> raised.key AND ended.window_start = raised.window_start "
    "AND ended.window_end = raised.window_end)"
)


def _current(windows: Windows) -> str:
    """SQL of the current windows; `query/current.py` has the same rule for Arrow."""
    key = ", ".join(map(quoted, windows.window_key))
    age = f"row_number() OVER (PARTITION BY {key} ORDER BY {_AGE}) AS _age"
    aged = f"SELECT *, {age} FROM {{table}}"  # noqa: S608  quoted
    newest = f"SELECT * EXCEPT (_age) FROM ({aged}) WHERE _age = 1"  # noqa: S608  quoted
    if windows.spec.keeps_bounds:
        return newest
    return f"WITH newest AS ({newest}) SELECT * FROM newest AS old WHERE {_STANDS}"  # noqa: S608
