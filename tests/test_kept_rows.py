"""Rows of a micro-batch are the same, whether the driver fetched them or Spark keeps them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from engine_runs import texts
from streams import HOPS, SLIDING, as_json, declared_pipeline
from windows_pipeline.settings import Settings
from windows_pipeline.small_frame import small_frame
from windows_pipeline.streaming import BatchResult, run_stream
from windows_pipeline.streaming.kept_rows import kept_rows
from windows_pipeline.tables.catalog import all_tables
from windows_pipeline.tables.delta import Table

ROWS = [("a", True, 2), ("b", False, None), (None, None, 3), ("c", True, None)]
MICRO_BATCHES = 2
STRICT = {
    **SLIDING,
    "time_difference": "6 ms",
    "grace": "4 ms",
    "alerts": {"many": {"when": "record_count >= 3", "severity": "total"}},
}


@contextmanager
def handed_over_at_most(spark: SparkSession, size: str) -> Iterator[None]:
    """Spark hands over no larger results."""
    conf: Any = spark.sparkContext._jsc.sc().conf()  # noqa: SLF001
    before = conf.get("spark.driver.maxResultSize", "1g")
    conf.set("spark.driver.maxResultSize", size)
    try:
        yield
    finally:
        conf.set("spark.driver.maxResultSize", before)


@pytest.mark.parametrize("way", ["fetched", "kept", "too large to fetch"])
def test_rows_are_the_same_either_way(spark: SparkSession, way: str) -> None:
    every = [row for row in ROWS for _ in range(100)]
    rows = small_frame(spark, every, "name string, is_one boolean, n int").repartition(2)
    with handed_over_at_most(spark, "1k") if way == "too large to fetch" else nullcontext():
        kept = kept_rows(rows, may_fetch=way != "kept")
    assert isinstance(kept.rows, pa.Table if way == "fetched" else DataFrame)
    assert kept.columns == ["name", "is_one", "n"]
    assert kept.totals(["name", "n"], ["is_one", "n"]) == [300, 200, 200, 500]
    assert kept.frame.schema == rows.schema
    ones = kept.where("is_one")
    assert texts(map(tuple, ones.frame.collect())) == texts(every[:100] + every[300:])
    known = kept.known("n")
    assert texts(map(tuple, known.frame.collect())) == texts(every[:100] + every[200:300])
    assert known.where("is_one").known("n").totals(["n"], ["n"]) == [100, 200]
    none = kept_rows(rows.where("n > 3"), may_fetch=way == "fetched")
    assert none.where("is_one").known("n").totals(["n"], ["is_one"]) == [0, 0]


def land(folder: Path, number: int) -> None:
    """Lands a micro-batch: records in any order, some of them late."""
    draw = Random(number)
    lines = [
        as_json(draw.choice("ab"), 20 * number + draw.randrange(-18, 20), draw.randrange(9))
        for _ in range(40)
    ]
    file = folder / "data" / "2026-11-01" / f"{number}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")
    os.utime(file, (number, number))  # what was written first is read first


def streamed(spark: SparkSession, settings: Settings, folder: Path) -> dict[str, list[str]]:
    """The rows of all tables of a pipeline, but for the stream's own name."""
    folder.mkdir()
    source = {"format": "jsonl", "path": "data", "stream": True, "max_per_batch": 1}
    kept = ("kind", "size", "advance", "grace", "aggregates")
    hops = {"partial_results": False, **{name: HOPS[name] for name in kept}}
    pipeline, own = declared_pipeline(folder, settings, source, STRICT, hops=hops)
    told: list[BatchResult] = []
    for number in range(MICRO_BATCHES):
        land(folder, number)
    run_stream(spark, pipeline, own, on_batch=told.append)
    assert [one.batch for one in told] == list(range(MICRO_BATCHES))
    tables = all_tables(pipeline, own.warehouse)
    return {one.name: texts(one.read(spark).drop("stream").collect()) for one in tables}


def test_a_stream_is_the_same_whoever_takes_its_rows(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    """Rules E1, E5, H1: what the driver can't take, or can't write, is Spark's."""
    wanted = streamed(spark, settings, tmp_path / "driver")
    filled = {name for name, rows in wanted.items() if rows}
    empty = {"numbers/rejected_records", "numbers/sums/corrections", "numbers/hops/corrections"}
    empty.add("numbers/hops/alerts")
    assert filled == set(wanted) - empty
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Table, "takes", lambda *_: False)
        assert streamed(spark, settings, tmp_path / "spark") == wanted
