"""How much a stream of landed files takes in, and how soon: `python -m benchmarks.live`."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from benchmarks.landed import OUT_OF_ORDER_MS, WINDOW_MS, declared, land
from benchmarks.live_peer import start_peer
from benchmarks.process_tree import processor_s, resident_bytes
from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.config import Pipeline
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.streaming.micro_batch import BatchResult
from windows_pipeline.streaming.query import run_stream

app = typer.Typer(add_completion=False, rich_markup_mode=None)
_console = Console()


@dataclass
class Taken:
    """What a stream has taken in: when each micro-batch was in all tables."""

    records: list[int] = field(default_factory=list)
    done_at: list[float] = field(default_factory=list)

    def take(self, result: BatchResult) -> None:
        """Notes a micro-batch."""
        self.records.append(result.accepted)
        self.done_at.append(time.time())
        seconds = self.done_at[-1] - (self.done_at[-2] if len(self.done_at) > 1 else self._began)
        _console.print(f"  {result.accepted:,} records in {seconds:.1f} s")

    def __post_init__(self) -> None:
        self._began = time.time()


@app.command()
def throughput(
    batches: Annotated[int, typer.Option(help="How many micro-batches.", min=2)] = 8,
    files: Annotated[int, typer.Option(help="Files of each.", min=1)] = 8,
    records: Annotated[int, typer.Option(help="Records of a file.", min=1)] = 250_000,
    *,
    peer: Annotated[bool, typer.Option(help="Run transformWithStateInPandas, too.")] = True,
) -> None:
    """Records a second of what has landed; the first micro-batch, which warms up, aside.

    The peer comes after ours, in the same session: what both need is compiled by then.
    """

    def measure(spark: SparkSession, pipeline: Pipeline, settings: Settings, landing: Path) -> None:
        for number in range(batches * files):
            land(landing, number, records)
        taken = Taken()
        run_stream(spark, tables_of(pipeline, settings.warehouse), settings, on_batch=taken.take)
        seconds = taken.done_at[-1] - taken.done_at[0]
        _console.print(f"{sum(taken.records[1:]) / seconds:,.0f} records/s")
        if peer:
            final = tables_of(pipeline, settings.warehouse).of("sliding").final_windows
            _measure_peer(landing, files, final.read(spark))

    _with_stream("throughput", files, measure)


@app.command()
def delay(
    seconds: Annotated[int, typer.Option(help="How long records come.", min=10)] = 300,
    rate: Annotated[int, typer.Option(help="Records a second, a file each.", min=1)] = 10_000,
    warm_up: Annotated[int, typer.Option(help="The first seconds, not counted.", min=1)] = 180,
) -> None:
    """How long after its landing a record's results are in all tables."""

    def measure(spark: SparkSession, pipeline: Pipeline, settings: Settings, landing: Path) -> None:
        taken, landed_at = Taken(), list[float]()
        land = threading.Thread(
            target=_land_each_second, args=(spark, landing, rate, seconds, landed_at, taken)
        )
        land.start()
        run_stream(
            spark,
            tables_of(pipeline, settings.warehouse),
            settings,
            every="0 seconds",
            on_batch=taken.take,
        )
        land.join()
        of_batch = np.repeat(taken.done_at, np.array(taken.records) // rate)
        delays = (of_batch - np.array(landed_at))[warm_up:]
        middle, most = np.percentile(delays, (50, 95))
        _console.print(f"delay at {rate:,} records/s: median {middle:.1f} s, 95th {most:.1f} s")

    _with_stream("delay", 1_000_000, measure)


@app.command()
def history(
    records: Annotated[int, typer.Option(help="Records of the history.", min=1)] = 1_000_000,
    batch: Annotated[int, typer.Option(help="Records of a micro-batch.", min=1)] = 10_000,
    runs: Annotated[int, typer.Option(help="Micro-batches measured.", min=1)] = 5,
) -> None:
    """What a micro-batch takes after a history; run it for several lengths."""

    def measure(spark: SparkSession, pipeline: Pipeline, settings: Settings, landing: Path) -> None:
        most = 1_000_000
        for number, first in enumerate(range(0, records, most)):
            land(landing, number, min(most, records - first), first)
        for number in range(runs + 1):
            land(landing, 1_000 + number, batch, records + number * batch)
        taken = Taken()
        run_stream(spark, tables_of(pipeline, settings.warehouse), settings, on_batch=taken.take)
        spent = np.diff(taken.done_at)[-runs:]
        _console.print(f"after {records:,} records: median {np.median(spent):.1f} s a micro-batch")

    _with_stream("history", 1, measure)


@app.command()
def soak(
    batches: Annotated[int, typer.Option(help="How many micro-batches.", min=2)] = 1_000,
    records: Annotated[int, typer.Option(help="Records of a micro-batch.", min=1)] = 1_000,
    step: Annotated[int, typer.Option(help="How many micro-batches a line sums up.", min=1)] = 100,
) -> None:
    """What a micro-batch costs as their number grows: time, memory, files, logs."""

    def measure(spark: SparkSession, pipeline: Pipeline, settings: Settings, landing: Path) -> None:
        for number in range(batches):
            land(landing, number, records)
        spent, began = processor_s(os.getpid()), time.time()
        done = 0

        def take(_: BatchResult) -> None:
            nonlocal done, spent, began
            done += 1
            if done % step:
                return
            now, ended = processor_s(os.getpid()), time.time()
            files = [file for file in landing.parents[1].rglob("*") if file.is_file()]
            logs = [file.stat().st_size for file in files if "_delta_log" in file.parts]
            _console.print(
                f"{done:,}: {(now - spent) / step:.2f} processor s and "
                f"{(ended - began) / step:.2f} s each; {resident_bytes(os.getpid()) >> 20:,} MiB; "
                f"{len(files) - batches:,} files, logs of {sum(logs) / 1e6:.1f} MB"
            )
            spent, began = processor_s(os.getpid()), time.time()

        run_stream(spark, tables_of(pipeline, settings.warehouse), settings, on_batch=take)

    _with_stream("soak", 1, measure)


def _measure_peer(landing: Path, files: int, ours: DataFrame) -> None:
    """Runs the peer on what has landed, and holds its windows against ours."""
    peer_folder = landing.parent / "peer"
    query = start_peer(ours.sparkSession, landing, peer_folder, WINDOW_MS, OUT_OF_ORDER_MS, files)
    query.awaitTermination()
    # The first one warms up; those without records only close windows.
    batches = [one for one in query.recentProgress if one.numInputRows][1:]
    seconds = sum(one.batchDuration for one in batches) / 1_000
    rows = sum(one.numInputRows for one in batches)
    theirs = ours.sparkSession.read.format("delta").load(str(peer_folder / "windows"))
    ended = F.unix_millis("window_end").alias("window_end")
    same = ours.select("key", ended, "record_count", "total", "most")
    different = same.exceptAll(theirs).count() + theirs.exceptAll(same).count()
    if different:
        raise RuntimeError(f"transformWithStateInPandas: {different:,} windows are not the same")
    _console.print(f"transformWithStateInPandas: {rows / seconds:,.0f} records/s, the same windows")


Measure = Callable[[SparkSession, Pipeline, Settings, Path], None]


def _with_stream(name: str, files: int, measure: Measure) -> None:
    with tempfile.TemporaryDirectory() as folder:
        settings, pipeline, landing = declared(Path(folder), name, max_per_batch=files)
        spark = start_session(settings)
        spark.sparkContext.setLogLevel("ERROR")
        measure(spark, pipeline, settings, landing)
        spark.stop()


def _land_each_second(
    spark: SparkSession,
    landing: Path,
    rate: int,
    seconds: int,
    landed_at: list[float],
    taken: Taken,
) -> None:
    """Lands a file a second, then ends the stream when all of them are in."""
    began = time.time()
    for number in range(seconds):
        time.sleep(max(0.0, began + number - time.time()))
        land(landing, number, rate)
        landed_at.append(time.time())
    while sum(taken.records) < rate * seconds:
        time.sleep(0.5)
    for query in spark.streams.active:
        query.stop()


if __name__ == "__main__":
    app()
