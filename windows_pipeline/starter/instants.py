"""Reads columns of text as instants by DuckDB: ISO 8601 times, and numbers since 1970."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.epochs import EPOCHS

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
YEAR_US = 31_556_952 * SECOND_US
"""The mean length of a year."""
_FIRST_US, _END_US = -62_135_596_800 * SECOND_US, 253_402_300_800 * SECOND_US
"""The years 1 to 9999."""
_OFFSET = r":\d\d(\.\d+)?\s*(Z|[+-]\d\d(:?\d\d)?)\s*$"


class Instants(NamedTuple):
    """A column's times.

    Attributes:
        us: Microseconds since 1970; 0 where `is_time` is false.
        is_time: Whether the value is a time.
    """

    us: np.ndarray
    is_time: np.ndarray


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
    """Evaluates expressions of DuckDB for each text, which they call `v`."""
    columns = ", ".join(f"{sql} AS {name}" for name, sql in expressions.items())
    with connected() as database:
        database.register("texts", pa.table({"v": pa.array(texts, pa.string())}))
        return database.sql(f"SELECT {columns} FROM texts").to_arrow_table()  # noqa: S608


def micros_of(kind: str, text: str = "v") -> str:
    """The expression of DuckDB for a time's microseconds since 1970; null if it is no time.

    Args:
        kind: The type: `timestamp`, `date`, or a number since 1970.
        text: The column of texts.
    """
    if kind in EPOCHS:
        per_second = EPOCHS[kind].per_second
        number = f"try_cast({text} AS DECIMAL(28, 9))"
        scaled = f"floor({number} * {max(SECOND_US // per_second, 1)})"
        us = f"try_cast({scaled} AS HUGEINT) // {max(per_second // SECOND_US, 1)}"
        return f"try_cast({us} AS BIGINT)"
    is_iso = rf"regexp_matches({text}, '^\s*\d{{4}}-\d')"
    return f"CASE WHEN {is_iso} THEN epoch_us(try_cast({text} AS TIMESTAMPTZ)) END"


def instants(texts: pa.StringArray, kind: str, zone: str | None = None) -> Instants:
    """Reads a column of a time's type: `timestamp`, `date`, or a number since 1970.

    Args:
        texts: The values.
        kind: The type.
        zone: The zone of the timestamps that name no offset; None for UTC.
    """
    times = as_instants(evaluated(texts, us=micros_of(kind)).column("us"))
    return times if kind != "timestamp" or zone is None else _in_zone(times, texts, zone)


def as_instants(us: pa.ChunkedArray) -> Instants:
    """Returns the instants of microseconds since 1970, null for none, of the years 1 to 9999."""
    found = np.asarray(pc.fill_null(us, 0))
    is_time = np.asarray(pc.is_valid(us)) & (found >= _FIRST_US) & (found < _END_US)
    return Instants(np.where(is_time, found, 0), is_time)


def is_local(texts: pa.StringArray) -> np.ndarray:
    """Which values name no offset."""
    named = pc.match_substring_regex(texts, _OFFSET)
    return ~np.asarray(pc.fill_null(named, fill_value=True))


def _in_zone(times: Instants, texts: pa.StringArray, zone: str) -> Instants:
    """Reads local times in a zone as a run does: the first of two; none that does not occur."""
    local = pa.array(times.us, pa.timestamp("us"))
    found = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest")
    occurs = np.asarray(pc.equal(pc.local_timestamp(found), local))
    moves = is_local(texts)
    is_time = times.is_time & (occurs | ~moves)
    us = np.where(moves, np.asarray(pc.cast(found, pa.int64())), times.us)
    return Instants(np.where(is_time, us, 0), is_time)
