"""Reads columns of text as instants by DuckDB: times in ISO 8601, and numbers since 1970."""

from __future__ import annotations

import re
from functools import cache

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.epochs import EPOCHS
from windows_pipeline.text.forms import TextForm

_SECOND_US = 1_000_000
_FIRST, _END = np.datetime64("0001-01-01", "us"), np.datetime64("9999-12-31T23:59:59.999999", "us")
_OFFSET = r":\d\d(\.\d+)?\s*(Z|[+-]\d\d(:?\d\d)?)\s*$"


@cache
def _database() -> duckdb.DuckDBPyConnection:
    """A database in memory, which fetches no extension; to open one takes a tenth of a second."""
    return duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )


def connected(zone: str = "UTC") -> duckdb.DuckDBPyConnection:
    """Connects to DuckDB, which reads times without an offset in the zone."""
    connection = _database().cursor()
    connection.execute(f"SET TimeZone = '{zone}'")
    return connection


def evaluated(texts: pa.StringArray, **expressions: str) -> pa.Table:
    """Evaluates expressions of DuckDB over texts, which they call `v`."""
    columns = ", ".join(f"{sql} AS {name}" for name, sql in expressions.items())
    with connected() as database:
        database.register("texts", pa.table({"v": pa.array(texts, pa.string())}))
        return database.sql(f"SELECT {columns} FROM texts").to_arrow_table()  # noqa: S608


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def written(form: TextForm, text: str = "v") -> str:
    """The expression of DuckDB for a text of a form, as types read it; null for other texts.

    Args:
        form: The form.
        text: The column of texts.
    """
    sql = text
    for found, by in form.replaced:
        groups = re.sub(r"\$(\d)", r"\\\1", by)
        sql = f"regexp_replace({sql}, {literal(found)}, {literal(groups)}, 'g')"
    return f"CASE WHEN regexp_matches({text}, {literal(form.pattern)}) THEN {sql} END"


def micros_of(kind: str, text: str = "v") -> str:
    """The expression of DuckDB for a time's microseconds since 1970; null if it is no time.

    Args:
        kind: The type: `timestamp`, `date`, or a number since 1970.
        text: The column of texts.
    """
    if kind in EPOCHS:
        per_second = EPOCHS[kind].per_second
        number = f"try_cast({text} AS DECIMAL(28, 9))"
        scaled = f"floor({number} * {max(_SECOND_US // per_second, 1)})"
        us = f"try_cast({scaled} AS HUGEINT) // {max(per_second // _SECOND_US, 1)}"
        return f"try_cast({us} AS BIGINT)"
    is_iso = rf"regexp_matches({text}, '^\s*\d{{4}}-\d')"
    return f"CASE WHEN {is_iso} THEN epoch_us(try_cast({text} AS TIMESTAMPTZ)) END"


def instants(texts: pa.StringArray, kind: str, zone: str | None = None) -> np.ndarray:
    """Reads a column of a time's type: `timestamp`, `date`, or a number since 1970.

    Args:
        texts: The values.
        kind: The type.
        zone: The zone of the timestamps that name no offset; None for UTC.

    Returns:
        Instants as `datetime64[us]`; NaT where a value is no time of the years 1 to 9999.
    """
    us = evaluated(texts, us=micros_of(kind)).column("us").cast(pa.timestamp("us"))
    times = np.asarray(us).astype("datetime64[us]")
    times = np.where((times >= _FIRST) & (times <= _END), times, np.datetime64("NaT"))
    return times if kind != "timestamp" or zone is None else _in_zone(times, texts, zone)


def is_local(texts: pa.StringArray) -> np.ndarray:
    """Which values name no offset."""
    named = pc.match_substring_regex(texts, _OFFSET)
    return ~np.asarray(pc.fill_null(named, fill_value=True))


def _in_zone(times: np.ndarray, texts: pa.StringArray, zone: str) -> np.ndarray:
    """Reads local times in a zone as a run does: the first of two; none that does not occur."""
    local = pa.array(times)
    found = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest")
    occurs = pc.fill_null(pc.equal(pc.local_timestamp(found), local), fill_value=False)
    moved = np.asarray(found.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us")))
    return np.where(
        is_local(texts), np.where(np.asarray(occurs), moved, np.datetime64("NaT")), times
    )
