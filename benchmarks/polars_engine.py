"""Polars, in memory."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl

from benchmarks.answers import Answer
from benchmarks.engine import Engine
from benchmarks.workload import MAX_RECORDS_IN_MEMORY, Workload

_AGGREGATES = [
    pl.len().cast(pl.Int64).alias("n"),
    pl.col("value").sum().alias("s"),
    pl.col("value").max().alias("m"),
]


class PolarsEngine(Engine):
    """Polars' rolling groups, on as many threads as POLARS_MAX_THREADS says."""

    def __init__(self) -> None:
        self._records = pl.LazyFrame()
        self._length_ms = 0

    def load(self, folder: Path, workload: Workload) -> None:
        """Reads the records, or names the files."""
        scanned = pl.scan_parquet(folder / "*.parquet").select(workload.columns)
        fits = workload.dataset.records <= MAX_RECORDS_IN_MEMORY
        self._records = scanned.collect().lazy() if fits else scanned
        self._length_ms = workload.length_ms

    def run(self, way: str) -> float:
        """Collects the result and drops it."""
        began = time.perf_counter()
        self._windows().collect()
        return time.perf_counter() - began

    def answer(self, way: str, *, left_only: bool) -> Answer:
        """Sums up distinct windows."""
        weight = (pl.col("window_end_ms") + 31 * pl.col("key")) % 1009
        names = ["n", "s", "m"]
        sums = (
            self._windows()
            .unique()
            .select(
                pl.len().cast(pl.Int64).alias("windows"),
                *(pl.col(name).sum() for name in names),
                weight.sum().alias("weights"),
                *((weight * pl.col(name)).sum().alias(f"weighted_{name}") for name in names),
            )
        )
        return Answer(*sums.collect().row(0))

    def close(self) -> None:
        """Nothing is left to end."""

    def _windows(self) -> pl.LazyFrame:
        """A window back from each record, and one forward from after it."""
        in_order = self._records.sort("key", "time_ms")
        period = f"{self._length_ms}i"
        frames = [
            in_order.rolling(
                "time_ms", period=period, offset=offset, closed="both", group_by="key"
            ).agg(_AGGREGATES)
            for offset in (f"-{period}", "1i")
        ]
        left = frames[0].rename({"time_ms": "window_end_ms"})
        end_ms = (pl.col("time_ms") + self._length_ms + 1).alias("window_end_ms")
        right = frames[1].filter(pl.col("n") > 0).select("key", end_ms, "n", "s", "m")
        return pl.concat([left, right])
