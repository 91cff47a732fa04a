"""The order of lines in their files numbers records, however many tasks read them (A1, A2)."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.lines import in_line_order
from windows_pipeline.compat.spark_session import configured
from windows_pipeline.config.source import Source
from windows_pipeline.sources.landed_columns import BLOCK, LINE
from windows_pipeline.sources.landed_files import read_landed
from windows_pipeline.sources.landing import LandingFolder
from windows_pipeline.sources.validation import judged_records
from windows_pipeline.streaming.log_state import state_of
from windows_pipeline.streaming.order import FILE, in_stream_order

DAYS = [date(2026, 11, 1), date(2026, 11, 2)]
NAMES = ["a", "a-b", "a.b", "B", "c+d", "é"]
"""Sorted as text: B, a, a-b, a.b, c+d, é."""
SOURCE: dict[str, Any] = {
    "path": "data",
    "columns": {"k": "string", "t": "bigint", "p": "string", "n": "bigint"},
    "key": "k",
    "event_time": "t",
}
Line = tuple[date, str, dict[str, Any]]


def drawn(seed: int, lines: int) -> list[Line]:
    """Lines of several files and source partitions, some of which are rejected."""
    draw = Random(seed)
    found: list[Line] = []
    for n in range(lines):
        key = None if draw.random() < 0.1 else "k"
        record = {"k": key, "t": draw.randrange(10_000), "p": draw.choice("xyz"), "n": n}
        found.append((draw.choice(DAYS), draw.choice(NAMES), record))
    return found


def land(root: Path, kind: str, lines: list[Line]) -> None:
    for day in DAYS:
        (root / str(day)).mkdir(parents=True)
        for name in NAMES:
            records = [record for of, file, record in lines if (of, file) == (day, name)]
            file = root / str(day) / name
            if kind == "parquet":
                pd.DataFrame(records).to_parquet(file, row_group_size=7)
            elif kind == "csv":
                pd.DataFrame(records).to_csv(file, index=False)
            else:
                file.write_text("".join(json.dumps(record) + "\n" for record in records))


def in_one_pass(lines: list[Line], files: list[str] | None = None) -> dict[int, tuple[int, int]]:
    """Offset and running maximum by `n`, in one loop over the sorted lines."""
    rank = {name: at for at, name in enumerate(files or sorted(NAMES))}
    next_numbers: dict[tuple[date, str], tuple[int, int]] = {}
    found = {}
    for day, _, record in sorted(lines, key=lambda line: rank[line[1]]):
        if record["k"] is None:
            continue
        offset, largest = next_numbers.get((day, record["p"]), (0, -1))
        next_numbers[day, record["p"]] = offset + 1, max(largest, record["t"])
        found[record["n"]] = offset, max(largest, record["t"])
    return found


def landed_source(kind: str, **fields: str) -> Source:
    return Source.model_validate(SOURCE | {"format": kind, "source_partition": "p"} | fields)


def judged(spark: SparkSession, root: Path, source: Source) -> DataFrame:
    return judged_records(
        read_landed(spark, source, LandingFolder(str(root)), LandingFolder(str(root)).files(DAYS)),
        source,
        [BLOCK, LINE],
    )


def numbers(records: DataFrame) -> dict[int, tuple[int, int]]:
    rows = records.where("reason IS NULL").select("n", "offset", "_running_max_ms").collect()
    return {row.n: (row.offset, row["_running_max_ms"]) for row in rows}


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
@pytest.mark.parametrize("split_bytes", [100, 1 << 27])
def test_lines_are_numbered_in_the_order_of_files_and_lines(
    spark: SparkSession, tmp_path: Path, kind: str, split_bytes: int
) -> None:
    """Whether a task reads a few lines or several files."""
    lines = drawn(31, 300)
    land(tmp_path, kind, lines)
    conf = {"spark.sql.files.maxPartitionBytes": str(split_bytes)}
    with configured(spark, conf):
        ordered = in_line_order(judged(spark, tmp_path, landed_source(kind)))
        assert numbers(ordered.records) == in_one_pass(lines)
        assert ordered.records.count() == len(lines)
        names = {"_block", "_line", "_part"} & set(ordered.records.columns)
        assert not names
        ordered.cached.unpersist()


def test_numbers_continue_across_batches(spark: SparkSession, tmp_path: Path) -> None:
    """A part of a file that spans several Arrow batches is numbered as a whole."""
    lines = drawn(32, 200)
    land(tmp_path, "jsonl", lines)
    with configured(spark, {"spark.sql.execution.arrow.maxRecordsPerBatch": "3"}):
        ordered = in_line_order(judged(spark, tmp_path, landed_source("jsonl")))
        assert numbers(ordered.records) == in_one_pass(lines)
        ordered.cached.unpersist()


@pytest.mark.parametrize("split_bytes", [100, 1 << 27])
def test_a_stream_numbers_files_in_the_order_of_writing(
    spark: SparkSession, tmp_path: Path, split_bytes: int
) -> None:
    """Rule A1: a stream orders files by time of writing, not by name."""
    lines = drawn(33, 300)
    land(tmp_path, "jsonl", lines)
    written = ["c+d", "a", "é", "B", "a.b", "a-b"]
    source = landed_source("jsonl")
    with configured(spark, {"spark.sql.files.maxPartitionBytes": str(split_bytes)}):
        records = read_landed(
            spark, source, LandingFolder(str(tmp_path)), LandingFolder(str(tmp_path)).files(DAYS)
        ).withColumn(FILE, F.col("file"))
        found = in_stream_order(
            judged_records(records, source, [FILE, BLOCK, LINE]),
            None,
            state_of([], DAYS[0], None),
            by_line=True,
            in_files=lambda names: sorted(names, key=written.index),
        )
        assert numbers(found.records) == in_one_pass(lines, written)
        assert sum(found.rejected.values()) == sum(line[2]["k"] is None for line in lines)


def test_no_sort_and_no_shuffle_of_records(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    land(tmp_path, "jsonl", drawn(34, 20))
    ordered = in_line_order(judged(spark, tmp_path, landed_source("jsonl")))
    ordered.records.explain(extended=False)
    plan = capsys.readouterr().out
    ordered.cached.unpersist()
    assert "MapInArrow" in plan
    assert "Sort " not in plan
    assert "Exchange hashpartitioning" not in plan


def test_records_in_another_order_are_an_error(spark: SparkSession, tmp_path: Path) -> None:
    land(tmp_path, "jsonl", drawn(35, 50))
    records = judged(spark, tmp_path, landed_source("jsonl")).coalesce(1)
    turned = records.sortWithinPartitions(F.desc(LINE))
    with pytest.raises(Exception, match="_line must increase within a task"):
        in_line_order(turned)
