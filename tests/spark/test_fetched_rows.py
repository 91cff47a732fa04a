"""A micro-batch's rows are the same whether the driver fetches them or Spark keeps them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.pipelines import ROOT
from tests.support.small_ranges import noted_ranges
from tests.support.spark_cases import texts
from tests.support.stored_rows import stored_rows
from tests.support.streams import HOPS, SLIDING, as_json, declared_pipeline, writer_of
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.compat.spark_session import configured, start_session
from windows_pipeline.settings import Settings, load_settings
from windows_pipeline.storage.fetched_rows import fetched_rows
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.streaming import BatchResult, run_stream

ROWS = [("a", True, 2), ("b", False, None), (None, None, 3), ("c", True, None)]
MICRO_BATCHES = 2
STRICT = {
    **SLIDING,
    "time_difference": "6 ms",
    "grace": "4 ms",
    "alerts": {"many": {"when": "record_count >= 3", "severity": "total"}},
}


EVERY = [row for row in ROWS for _ in range(100)]
TOTALS = [300, 200, 200, 500]


def rows_of(spark: SparkSession) -> DataFrame:
    """Rows in two tasks."""
    return small_frame(spark, EVERY, "name string, is_one boolean, n int").repartition(2)


@pytest.mark.parametrize("fetched", [True, False])
def test_fetched_rows_equal_those_in_spark(spark: SparkSession, *, fetched: bool) -> None:
    found = fetched_rows(rows_of(spark), may_fetch=fetched)
    assert isinstance(found.rows, pa.Table if fetched else DataFrame)
    assert found.columns == ["name", "is_one", "n"]
    assert found.totals(["name", "n"], ["is_one", "n"]) == TOTALS
    assert found.frame.schema == rows_of(spark).schema
    ones = found.where("is_one")
    assert texts(map(tuple, ones.frame.collect())) == texts(EVERY[:100] + EVERY[300:])
    known = found.known("n")
    assert texts(map(tuple, known.frame.collect())) == texts(EVERY[:100] + EVERY[200:300])
    assert known.where("is_one").known("n").totals(["n"], ["n"]) == [100, 200]
    none = fetched_rows(rows_of(spark).where("n > 3"), may_fetch=fetched)
    assert none.where("is_one").known("n").totals(["n"], ["is_one"]) == [0, 0]


def fetch_too_many() -> None:
    """Tries to fetch rows in a session whose limit of results is some kilobytes."""
    base = load_settings(ROOT)
    limited = {**base.spark, "spark.driver.maxResultSize": "32k"}
    spark = start_session(base.model_copy(update={"spark": limited}))
    too_many = rows_of(spark).withColumn("time", F.explode(F.sequence(F.lit(1), F.lit(1_000))))
    found = fetched_rows(too_many, may_fetch=True)
    assert isinstance(found.rows, DataFrame)
    assert found.totals(["name", "n"], ["is_one", "n"]) == [1_000 * total for total in TOTALS]


@pytest.mark.long
def test_rows_beyond_the_limit_of_results_stay_in_spark() -> None:
    """In a process of its own, because the limit belongs to the whole JVM."""
    code = "from tests.spark.test_fetched_rows import fetch_too_many; fetch_too_many()"
    tests = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run([sys.executable, "-c", code], env=tests, check=False)
    assert ended.returncode == 0


def land(folder: Path, number: int) -> None:
    """Lands a micro-batch of records in random order, some of them late."""
    draw = Random(number)
    # The record at 131 ms is partly late, and no window counts it.
    lines = [as_json("c", ms, 1) for ms in ([140], [131, 150])[number]]
    lines += [
        as_json(draw.choice("ab"), 10 * number + draw.randrange(100, 138), draw.randrange(9))
        for _ in range(40)
    ]
    file = folder / "data" / "2026-11-01" / f"{number}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")
    os.utime(file, (number, number))  # the stream reads files in the order of writing


def streamed(
    spark: SparkSession, settings: Settings, folder: Path, *, by_driver: bool
) -> tuple[dict[str, list[str]], str]:
    """All tables' rows, without the stream's id, and the writer of the last micro-batch."""
    folder.mkdir()
    source = {"format": "jsonl", "path": "data", "stream": True, "max_per_batch": 1}
    hops = {**HOPS, "partial_results": False}
    pipeline, local = declared_pipeline(folder, settings, source, STRICT, hops=hops)
    own = local if by_driver else local.model_copy(update={"warehouse": f"file:{local.warehouse}"})
    results: list[BatchResult] = []
    for number in range(MICRO_BATCHES):
        land(folder, number)
    run_stream(spark, tables_of(pipeline, own.warehouse), own, on_batch=results.append)
    assert [result.batch for result in results] == list(range(MICRO_BATCHES))
    tables = tables_of(pipeline, local.warehouse).written
    rows = {table.name: texts(stored_rows(table, "stream")) for table in tables}
    keyed = tables_of(pipeline, local.warehouse).of("sums").keyed_windows
    return rows, writer_of(keyed, MICRO_BATCHES)


@pytest.mark.long
def test_a_stream_is_the_same_with_delta_rs_and_with_spark(
    spark: SparkSession,
    settings: Settings,
    tmp_path: Path,
) -> None:
    """Rules E1, E2, E5, H1: Spark alone writes to a warehouse that is a URI, and splits files."""
    # `arrival_ranges` suits larger days of other pipelines; this stream is numbered by line.
    asked = settings.model_copy(update={"arrival_ranges": 7})
    with noted_ranges() as ranges:
        wanted, writer = streamed(spark, asked, tmp_path / "driver", by_driver=True)
    assert "delta-rs" in writer
    assert not ranges
    filled = {name for name, rows in wanted.items() if rows}
    empty = {"numbers/rejected_records"} | {
        f"numbers/{name}/{table}"
        for name in ("sums", "hops")
        for table in ("corrections", "failed_windows")
    }
    assert filled == set(wanted) - empty
    assert any("partly_late" in row for row in wanted["numbers/sums/late_records"])

    with configured(spark, {"spark.sql.files.maxPartitionBytes": "400"}):
        found, writer = streamed(spark, settings, tmp_path / "spark", by_driver=False)
    assert "Spark" in writer
    assert found == wanted
