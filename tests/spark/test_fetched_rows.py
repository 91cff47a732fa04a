"""Rows of a micro-batch are the same, whether the driver fetched them or Spark keeps them."""

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
from windows_pipeline.storage.catalog import all_tables, window_tables
from windows_pipeline.storage.fetched_rows import kept_rows
from windows_pipeline.storage.table import Table
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
def test_rows_are_the_same_either_way(spark: SparkSession, *, fetched: bool) -> None:
    kept = kept_rows(rows_of(spark), may_fetch=fetched)
    assert isinstance(kept.rows, pa.Table if fetched else DataFrame)
    assert kept.columns == ["name", "is_one", "n"]
    assert kept.totals(["name", "n"], ["is_one", "n"]) == TOTALS
    assert kept.frame.schema == rows_of(spark).schema
    ones = kept.where("is_one")
    assert texts(map(tuple, ones.frame.collect())) == texts(EVERY[:100] + EVERY[300:])
    known = kept.known("n")
    assert texts(map(tuple, known.frame.collect())) == texts(EVERY[:100] + EVERY[200:300])
    assert known.where("is_one").known("n").totals(["n"], ["n"]) == [100, 200]
    none = kept_rows(rows_of(spark).where("n > 3"), may_fetch=fetched)
    assert none.where("is_one").known("n").totals(["n"], ["is_one"]) == [0, 0]


def keep_too_many() -> None:
    """Keeps rows in a session that hands over no more than some kilobytes."""
    base = load_settings(ROOT)
    limited = {**base.spark, "spark.driver.maxResultSize": "32k"}
    spark = start_session(base.model_copy(update={"spark": limited}))
    many = rows_of(spark).withColumn("time", F.explode(F.sequence(F.lit(1), F.lit(1_000))))
    kept = kept_rows(many, may_fetch=True)
    assert isinstance(kept.rows, DataFrame)
    assert kept.totals(["name", "n"], ["is_one", "n"]) == [1_000 * total for total in TOTALS]


@pytest.mark.long
def test_what_spark_does_not_hand_over_stays_there() -> None:
    """In a process of its own: the limit is the whole JVM's."""
    code = "from tests.spark.test_fetched_rows import keep_too_many; keep_too_many()"
    tests = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    ended = subprocess.run([sys.executable, "-c", code], env=tests, check=False)
    assert ended.returncode == 0


def land(folder: Path, number: int) -> None:
    """Lands a micro-batch: records in any order, some of them late."""
    draw = Random(number)
    # The one of 131 ms is late for the window that ends with it, and none begins with it.
    lines = [as_json("c", ms, 1) for ms in ([140], [131, 150])[number]]
    lines += [
        as_json(draw.choice("ab"), 10 * number + draw.randrange(100, 138), draw.randrange(9))
        for _ in range(40)
    ]
    file = folder / "data" / "2026-11-01" / f"{number}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n")
    os.utime(file, (number, number))  # what was written first is read first


def streamed(
    spark: SparkSession, settings: Settings, folder: Path
) -> tuple[dict[str, list[str]], str]:
    """The rows of all tables of a pipeline, less the stream's own name; and who wrote windows."""
    folder.mkdir()
    source = {"format": "jsonl", "path": "data", "stream": True, "max_per_batch": 1}
    hops = {**HOPS, "partial_results": False}
    pipeline, own = declared_pipeline(folder, settings, source, STRICT, hops=hops)
    told: list[BatchResult] = []
    for number in range(MICRO_BATCHES):
        land(folder, number)
    run_stream(spark, pipeline, own, on_batch=told.append)
    assert [one.batch for one in told] == list(range(MICRO_BATCHES))
    tables = all_tables(pipeline, own.warehouse)
    rows = {one.name: texts(stored_rows(one, "stream")) for one in tables}
    keyed = window_tables(pipeline, "sums", own.warehouse).keyed_windows
    return rows, writer_of(keyed, MICRO_BATCHES)


@pytest.mark.long
def test_a_stream_is_the_same_whoever_takes_its_rows(
    spark: SparkSession,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rules E1, E2, E5, H1: what the driver can't take is Spark's; files are read in pieces."""
    # However large another pipeline's days are.
    asked = settings.model_copy(update={"arrival_ranges": 7})
    with noted_ranges() as ranges:
        wanted, writer = streamed(spark, asked, tmp_path / "driver")
    assert "delta-rs" in writer
    assert not ranges
    filled = {name for name, rows in wanted.items() if rows}
    empty = {"numbers/rejected_records", "numbers/sums/corrections", "numbers/hops/corrections"}
    assert filled == set(wanted) - empty
    assert any("partly_late" in row for row in wanted["numbers/sums/late_records"])

    monkeypatch.setattr(Table, "takes", lambda *_: False)
    with configured(spark, {"spark.sql.files.maxPartitionBytes": "400"}):
        found, writer = streamed(spark, settings, tmp_path / "spark")
    assert "Spark" in writer
    assert found == wanted
