"""DuckDB in memory, with temporary files where it needs them."""

from __future__ import annotations

import time
from pathlib import Path

import duckdb

from benchmarks.answers import CHECKSUMS, Answer
from benchmarks.data import CACHE
from benchmarks.engine import Engine
from benchmarks.workload import MAX_RECORDS_IN_MEMORY, Kind, Workload

_ROWS_PER_BATCH = 1_000_000


class DuckDBEngine(Engine):
    """DuckDB's window functions, with a thread for each core."""

    def __init__(self, cores: int, memory_gib: int) -> None:
        self._connection = duckdb.connect(
            config={
                "threads": cores,
                "memory_limit": f"{memory_gib}GiB",
                "temp_directory": str(CACHE / "duckdb"),
                "preserve_insertion_order": False,
            }
        )
        self._do("SET enable_progress_bar = false")
        self._query: dict[str, str] = {}

    def load(self, folder: Path, workload: Workload) -> None:
        """Fills a table, or names the files."""
        columns = ", ".join(workload.columns)
        source = f"read_parquet('{folder}/*.parquet')"
        if workload.dataset.records <= MAX_RECORDS_IN_MEMORY:
            self._connection.execute(
                f"CREATE OR REPLACE TABLE held AS SELECT {columns} FROM {source}"
            )
            source = "held"
        self._do(f"CREATE OR REPLACE VIEW records AS FROM {source}")
        self._query = _queries(workload)

    def run(self, way: str) -> float:
        """Fetches the result in batches and drops them."""
        began = time.perf_counter()
        for _ in self._connection.sql(self._query[way]).to_arrow_reader(_ROWS_PER_BATCH):
            pass
        return time.perf_counter() - began

    def answer(self, way: str, *, left_only: bool) -> Answer:
        """Sums up distinct windows."""
        query = self._query[way]
        sums = f"SELECT {', '.join(CHECKSUMS)} FROM (SELECT DISTINCT * FROM ({query}))"
        (row,) = self._do(sums)
        return Answer(*(int(value) for value in row))

    def close(self) -> None:
        """Ends DuckDB."""
        self._connection.close()

    def _do(self, query: str) -> list[tuple[int, ...]]:
        rows: list[tuple[int, ...]] = self._connection.execute(query).fetchall()
        return rows


def _queries(work: Workload) -> dict[str, str]:
    """Every sliding window, by change points: a record's time, and when it has just left."""
    if work.kind is not Kind.SLIDING:
        return {}
    length_ms = work.length_ms
    return {
        "duckdb": f"""
            WITH points AS (
                SELECT key AS k, time_ms AS window_end_ms, 1 AS entered, value FROM records
                UNION ALL
                SELECT key, time_ms + {length_ms + 1}, 0, NULL FROM records
            )
            SELECT k, window_end_ms, sum(entered) OVER w AS n,
                sum(value) OVER w AS s, max(value) OVER w AS m
            FROM points
            WINDOW w AS (
                PARTITION BY k ORDER BY window_end_ms
                RANGE BETWEEN {length_ms} PRECEDING AND CURRENT ROW
            )
            QUALIFY n > 0
            """
    }
