"""What CSV records cost, against Spark's lines and from_csv: `python -m benchmarks.csv_files`.

Both ways read the same files and do what a day's run does: check each record, number the records by
line, and count them once more. Spark's way takes each line for a record, so a field can't hold a
line break.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import date
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table as Grid

from benchmarks.landed import declared
from benchmarks.process_tree import PeakMemory, processor_s
from windows_pipeline.arrival.lines import in_line_order
from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.config.source import Source
from windows_pipeline.sources.landed_columns import BLOCK, LINE
from windows_pipeline.sources.landed_files import landed_files, read_landed
from windows_pipeline.sources.validation import judged_records

_DAY = date(2026, 1, 1)
_COLUMNS = {"key": "string", "at": "bigint", "value": "bigint", "note": "string"}
_START_MS = 1_767_225_600_000

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def main(
    *,
    files: Annotated[int, typer.Option(help="How many files land.", min=1)] = 10,
    records: Annotated[int, typer.Option(help="Records of a file.", min=1)] = 1_000_000,
    runs: Annotated[int, typer.Option(help="Runs of each way, in turns.", min=1)] = 3,
    quoted: Annotated[bool, typer.Option(help="Whether each text is in quotes.")] = False,
) -> None:
    """Reads, checks and numbers the records of one day of CSV files."""
    fields = {"format": "csv", "columns": _COLUMNS, "key": "key", "event_time": "at"}
    source = Source.model_validate(fields | {"path": "data"})
    with tempfile.TemporaryDirectory() as folder:
        settings = declared(Path(folder), "other", 1).settings
        for number in range(files):
            _land(Path(folder) / str(_DAY) / f"{number:03}.csv", number, records, quoted=quoted)
        spark = start_session(settings)
        spark.sparkContext.setLogLevel("ERROR")
        ways: dict[str, Callable[[], DataFrame]] = {
            "records": partial(read_landed, spark, source, folder, landed_files(folder, [_DAY])),
            "lines": partial(_spark_lines, spark, Path(folder)),
        }
        steps: dict[str, Callable[[DataFrame], int]] = {
            "numbered": partial(_numbered, source),
            "counted": _counted,
        }
        spent: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
        for run in range(runs + 1):
            for (step, count), (way, read) in product(steps.items(), ways.items()):
                began, spent_s = time.monotonic(), processor_s(os.getpid())
                with PeakMemory(os.getpid(), sys.maxsize, lambda: None) as memory:
                    _require(count(read()), files * records)
                of_run = (time.monotonic() - began, processor_s(os.getpid()) - spent_s)
                if run:  # the first run of each way compiles
                    spent[step, way].append((*of_run, memory.peak_bytes / 1e9))
        spark.stop()
    grid = Grid("step", "way", "seconds", "processor s", "most GB", "all seconds")
    for names, of_way in spent.items():
        medians = (f"{statistics.median(column):.1f}" for column in zip(*of_way, strict=True))
        grid.add_row(*names, *medians, " ".join(f"{run[0]:.1f}" for run in of_way))
    Console().print(grid)


def _land(file: Path, number: int, records: int, *, quoted: bool) -> None:
    draw = np.random.default_rng((450, number))
    table = pa.table(
        {
            "key": np.char.add("k", draw.integers(0, 1_000, records).astype(str)),
            "at": _START_MS + np.arange(number * records, (number + 1) * records),
            "value": draw.integers(0, 1_000, records),
            "note": np.char.add("text ", draw.integers(0, 100_000, records).astype(str)),
        }
    )
    file.parent.mkdir(exist_ok=True)
    style = "all_valid" if quoted else "none"
    pacsv.write_csv(table, file, pacsv.WriteOptions(quoting_style=style, quoting_header="none"))


def _numbered(source: Source, landed: DataFrame) -> int:
    """Checks and numbers the records; returns how many are accepted."""
    ordered = in_line_order(judged_records(landed, source, [BLOCK, LINE]))
    try:
        return ordered.records.where(F.col("reason").isNull()).count()
    finally:
        ordered.cached.unpersist(blocking=True)


def _counted(landed: DataFrame) -> int:
    """Counts the records of each day, as the check of landed records does."""
    return int(landed.groupBy("arrival_unit").count().collect()[0]["count"])


def _require(found: int, expected: int) -> None:
    if found != expected:
        raise RuntimeError(f"{expected:,} records must be accepted, and {found:,} are")


def _spark_lines(spark: SparkSession, folder: Path) -> DataFrame:
    """The columns of `read_landed`, a record for each line."""
    lines = spark.read.text(str(folder / str(_DAY))).select(
        "value",
        F.lit(_DAY).alias("arrival_unit"),
        F.col("_metadata.file_name").alias("file"),
        F.col("_metadata.file_block_start").alias(BLOCK),
        F.monotonically_increasing_id().alias(LINE),
    )
    record = ", ".join(f"_{index} string" for index in range(len(_COLUMNS)))
    options = {"columnNameOfCorruptRecord": "_wrong", "escape": '"'}
    parsed = (
        lines.where(F.col("value").rlike(r"\S") & (F.col("value") != ",".join(_COLUMNS)))
        .withColumn("parsed", F.from_csv("value", f"{record}, _wrong string", options))
        .withColumn("wrong", F.col("parsed")["_wrong"].isNotNull())
    )
    quotes = F.length("value") - F.length(F.translate("value", '"', ""))
    is_valid = F.is_valid_utf8("value")
    return parsed.select(
        "arrival_unit",
        "file",
        F.when(is_valid, F.col("value")).otherwise(F.make_valid_utf8("value")).alias("original"),
        (F.col("wrong") | (quotes % 2 == 1) | ~is_valid).alias("malformed"),
        BLOCK,
        LINE,
        *[F.col("parsed")[f"_{index}"].alias(name) for index, name in enumerate(_COLUMNS)],
    )


if __name__ == "__main__":
    app()
