"""What a query of a key and an hour costs: `python -m benchmarks.queries`.

The windows are tumbling ones of 1,000 keys over 30 arrival days. All days but the last are as
`maintain` leaves them: a file a day, sorted, in row groups of 32,768 rows. The last day is as a
stream leaves it: a file a micro-batch. `current` reads the last day of keyed_windows, in which each
window has two rows. DuckDB reads the same files through delta-rs, Spark as it reads any Delta
table; its processor time is that of this process alone, so only its elapsed time compares.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Annotated, Any
from uuid import uuid4

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import typer
from deltalake import DeltaTable, WriterProperties, write_deltalake
from deltalake.transaction import AddAction, RemoveAction
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table as Grid

from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.query import WindowStore
from windows_pipeline.settings import load_settings
from windows_pipeline.storage.catalog import TableSpec, specs_of

_FIRST = date(2026, 1, 1)
_DAY_MS = 86_400_000
_START_MS = 1_767_225_600_000
_KEYS = 1_000
_ROW_GROUP = 32_768
_HOUR = timedelta(hours=1)
_PIPELINE = """
name: p
source:
  path: data
  format: parquet
  columns: {{k: string, t: timestamp, v: double}}
  key: k
  event_time: t
partitions: {{start: 2026-01-01}}
windows:
  w:
    kind: tumbling
    size: {size_ms} ms
    grace: 0 ms
    aggregates: {{total: sum(v), largest: max(v)}}
"""

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def main(
    *,
    windows: Annotated[int, typer.Option(help="About how many windows.", min=100_000)] = 20_000_000,
    days: Annotated[int, typer.Option(help="Arrival days.", min=2)] = 30,
    batches: Annotated[int, typer.Option(help="Micro-batches of the last day.", min=1)] = 1_440,
    queries: Annotated[int, typer.Option(help="Queries of each way.", min=10)] = 200,
) -> None:
    """Writes the tables, then asks each way for a random key and hour, and prints the times."""
    size_ms = max(1_000, days * _DAY_MS * _KEYS // windows // 1_000 * 1_000)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "p.yaml"
        file.write_text(_PIPELINE.format(size_ms=size_ms))
        pipeline = load_pipeline(file)
        warehouse = f"{folder}/warehouse"
        began = time.perf_counter()
        row_count = _write(pipeline, warehouse, size_ms, days, batches)
        console = Console()
        console.print(
            f"{row_count:,} windows are written after {time.perf_counter() - began:.0f} s"
        )
        grid = Grid("windows of a key and an hour", "median, ms", "99 %, ms", "processor, ms")
        for name, ask in _ways(pipeline, warehouse, days):
            times = _times(ask, queries)
            grid.add_row(name, *(f"{each:.1f}" for each in times))
        console.print(grid)


def _ways(
    pipeline: Pipeline, warehouse: str, days: int
) -> Iterator[tuple[str, Callable[[Random], int]]]:
    """Each way: its name, and what asks for a random key and hour and returns the rows found."""
    spec = specs_of(pipeline, warehouse).of("w").final_windows
    final = WindowStore(pipeline, "w", warehouse)
    current = WindowStore(pipeline, "w", warehouse, "current")
    dataset = DeltaTable(spec.location).to_pyarrow_dataset()
    database = duckdb.connect()
    database.register("final_windows", dataset)
    query = (
        "SELECT * FROM final_windows WHERE key = ? AND window_start BETWEEN ? AND ? "
        "ORDER BY window_start"
    )

    def of(store: WindowStore, first: int, last: int) -> Callable[[Random], int]:
        def ask(random: Random) -> int:
            key, start = _key_and_hour(random, first, last)
            return len(list(store.fetch(key, start, start + _HOUR)))

        return ask

    def by_duckdb(first: int, last: int) -> Callable[[Random], int]:
        def ask(random: Random) -> int:
            key, start = _key_and_hour(random, first, last)
            return len(database.execute(query, [key, start, start + _HOUR]).fetchall())

        return ask

    yield "final, maintained days", of(final, 0, days - 1)
    yield "final, the day of micro-batches", of(final, days - 1, days)
    yield "current, the day of micro-batches", of(current, days - 1, days)
    spark = start_session(load_settings(Path(__file__).parent.parent))
    spark.sparkContext.setLogLevel("ERROR")

    def by_spark(first: int, last: int) -> Callable[[Random], int]:
        def ask(random: Random) -> int:
            key, start = _key_and_hour(random, first, last)
            rows = spark.read.format("delta").load(spec.location)
            of_hour = F.col("window_start").between(F.lit(start), F.lit(start + _HOUR))
            wanted = rows.where((F.col("key") == key) & of_hour)
            return len(wanted.orderBy("window_start").collect())

        return ask

    yield "DuckDB, maintained days", by_duckdb(0, days - 1)
    yield "DuckDB, the day of micro-batches", by_duckdb(days - 1, days)
    yield "Spark, maintained days", by_spark(0, days - 1)
    yield "Spark, the day of micro-batches", by_spark(days - 1, days)
    spark.stop()


def _key_and_hour(random: Random, first: int, last: int) -> tuple[str, datetime]:
    hours = random.randrange(first * 24, last * 24 - 1)
    start = datetime.fromtimestamp(_START_MS / 1_000, UTC) + hours * _HOUR
    return f"key-{random.randrange(_KEYS):04}", start


def _times(ask: Callable[[Random], int], queries: int) -> tuple[float, float, float]:
    """Median and 99th percentile of a warm process, and its median processor time, in ms.

    Raises:
        ValueError: A query found nothing.
    """
    random = Random(1)  # noqa: S311  a seeded choice, no secret
    found, worked = [], []
    for number in range(queries + 5):
        began, worked_before = time.perf_counter(), time.process_time()
        if not ask(random):
            raise ValueError("a query must find windows, and found none; correct the benchmark")
        if number >= 5:
            found.append((time.perf_counter() - began) * 1_000)
            worked.append((time.process_time() - worked_before) * 1_000)
    slowest = statistics.quantiles(found, n=100)[98]
    return statistics.median(found), slowest, statistics.median(worked)


def _write(pipeline: Pipeline, warehouse: str, size_ms: int, days: int, batches: int) -> int:
    """Writes final_windows, and the last day of keyed_windows; returns the windows of the first."""
    tables = specs_of(pipeline, warehouse).of("w")
    row_count = 0
    for number in range(days - 1):
        starts = np.arange(0, _DAY_MS, size_ms) + _START_MS + number * _DAY_MS
        rows = _windows(starts, size_ms, number)
        row_count += rows.num_rows
        _append(tables.final_windows, rows)
    starts = np.arange(0, _DAY_MS, size_ms) + _START_MS + (days - 1) * _DAY_MS
    final, keyed = [], []
    for batch, of_batch in enumerate(np.array_split(starts, batches)):
        if not len(of_batch):
            continue
        rows = _windows(of_batch, size_ms, days - 1)
        row_count += rows.num_rows
        final.append(rows)
        # Each window twice: open in one micro-batch, closed in the next.
        keyed += [_keyed(rows, batch + later, closed=bool(later)) for later in range(2)]
    _append(tables.keyed_windows, keyed[0].slice(0, 0))
    _append_files(tables.final_windows, final)
    _append_files(tables.keyed_windows, keyed)
    return row_count


def _keyed(rows: pa.Table, batch: int, *, closed: bool) -> pa.Table:
    count = rows.num_rows
    with_closed = rows.append_column("closed", pa.repeat(closed, count))
    return with_closed.append_column("batch", pa.repeat(batch, count))


def _append_files(spec: TableSpec, parts: Sequence[pa.Table]) -> None:
    """Appends a file for each part, in one commit: a commit for each would take minutes."""
    actions: list[AddAction | RemoveAction] = []
    for rows in parts:
        day = str(rows["arrival_unit"][0].as_py())
        path = f"arrival_unit={day}/{uuid4()}.parquet"
        file = Path(spec.location) / path
        file.parent.mkdir(exist_ok=True)
        pq.write_table(rows.drop(["arrival_unit"]), file)
        smallest, largest = (
            {name: _text(edge(rows[name]).as_py()) for name in spec.sorted_by}
            for edge in (pc.min, pc.max)
        )
        known = {
            "numRecords": rows.num_rows,
            "minValues": smallest,
            "maxValues": largest,
            "nullCount": dict.fromkeys(spec.sorted_by, 0),
        }
        actions.append(
            AddAction(path, file.stat().st_size, {"arrival_unit": day}, 0, True, json.dumps(known))
        )
    table = DeltaTable(spec.location)
    table.create_write_transaction(actions, "append", table.schema(), ["arrival_unit"])


def _text(value: object) -> str:
    """A value as Delta's statistics have it."""
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1_000:03}Z"
    return str(value)


def _windows(starts: np.ndarray, size_ms: int, day: int) -> pa.Table:
    """A window of each key at each start, by end and key."""
    times = pa.array(np.repeat(starts, _KEYS) * 1_000, pa.timestamp("us", "UTC"))
    ends = pa.array(np.repeat(starts + size_ms, _KEYS) * 1_000, pa.timestamp("us", "UTC"))
    names = pa.array([f"key-{number:04}" for number in range(_KEYS)])
    keys = names.take(pa.array(np.tile(np.arange(_KEYS), len(starts))))
    count = len(keys)
    values: dict[str, Any] = {
        "arrival_unit": pa.repeat(pa.scalar(_FIRST + timedelta(days=day)), count),
        "key": keys,
        "window_start": times,
        "window_end": ends,
        "first_event_time": times,
        "last_event_time": times,
        "record_count": pa.repeat(3, count),
        "total": pa.array(np.random.default_rng(day).random(count)),
        "largest": pa.array(np.random.default_rng(day + 1).random(count)),
        "failed": pa.array([[]], pa.list_(pa.string())).take(pa.array(np.zeros(count, np.int64))),
    }
    return pa.table(values)


def _append(spec: TableSpec, rows: pa.Table) -> None:
    write_deltalake(
        spec.location,
        rows,
        mode="append",
        partition_by=["arrival_unit"],
        configuration={"delta.dataSkippingStatsColumns": ",".join(spec.sorted_by)},
        writer_properties=WriterProperties(
            max_row_group_size=_ROW_GROUP, compression="GZIP", compression_level=1
        ),
    )


if __name__ == "__main__":
    app()
