"""Ours and Spark's own ways, in one Spark session."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import WindowSpec as WindowFrame
from pyspark.sql import functions as F

from benchmarks.answers import CHECKSUMS, Answer
from benchmarks.engine import Engine
from benchmarks.workload import MAX_RECORDS_IN_MEMORY, Workload
from windows_pipeline import windowed
from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.settings import Settings, load_settings

_ROOT = Path(__file__).parent.parent
_RECORDS_PER_PARTITION = 1_250_000
_MIN_PARTITIONS = 4
_SEGMENT_TREE = "spark.sql.window.segmentTree.enabled"


def ours(records: DataFrame, work: Workload) -> DataFrame:
    """Every window by this library's public interface."""
    windows = windowed(records, work.windows()).by("key").event_time("time_ms")
    return windows.agg(*work.of())


def floor(records: DataFrame, _work: Workload) -> DataFrame:
    """What any way must do at least: one shuffle by key and one sort, no windows."""
    return records.repartition("key").sortWithinPartitions("key", "time_ms")


def range_frames(records: DataFrame, work: Workload) -> DataFrame:
    """Every sliding window: a frame back from each record, and one forward from after it."""
    length_ms = work.length_ms
    framed = records.select(
        F.col("key").alias("k"),
        _window(F.col("time_ms"), _frame(-length_ms, 0)).alias("left"),
        _window(F.col("time_ms") + F.lit(length_ms + 1), _frame(1, length_ms + 1)).alias("right"),
    )
    windows = framed.select("k", F.explode(F.array("left", "right")).alias("window"))
    return windows.select("k", "window.*").where("n > 0")


def point_range_frame(records: DataFrame, work: Workload) -> DataFrame:
    """Every sliding window: one frame back from each record, and from when it has just left."""
    came = records.select("key", "time_ms", "value", F.lit(1).alias("entered"))
    left_ms = (F.col("time_ms") + F.lit(work.length_ms + 1)).alias("time_ms")
    nothing = (F.lit(None).cast("bigint").alias("value"), F.lit(0).alias("entered"))
    points = came.unionByName(records.select("key", left_ms, *nothing))
    frame = _range(-work.length_ms, 0)
    windows = points.select(
        F.col("key").alias("k"),
        F.col("time_ms").alias("window_end_ms"),
        F.sum("entered").over(frame).alias("n"),
        F.sum("value").over(frame).alias("s"),
        F.max("value").over(frame).alias("m"),
    )
    return windows.where("n > 0")


def left_range_frame(records: DataFrame, work: Workload) -> DataFrame:
    """Only the window that ends with each record."""
    key, end_ms = F.col("key").alias("k"), F.col("time_ms").alias("window_end_ms")
    return records.select(key, end_ms, *_frame(-work.length_ms, 0))


def time_window(records: DataFrame, work: Workload) -> DataFrame:
    """Hopping windows by window(), which copies each record into every window that holds it."""
    size, advance = (f"{length} milliseconds" for length in (work.length_ms, work.advance_ms))
    window = F.window(F.timestamp_millis("time_ms"), size, advance)
    return _grouped(records, window, F.unix_millis("window.end"))


def session_window(records: DataFrame, work: Workload) -> DataFrame:
    """Sessions; Spark's gap leaves out what is exactly a gap away, so it is one longer."""
    gap_ms = work.length_ms + 1
    window = F.session_window(F.timestamp_millis("time_ms"), f"{gap_ms} milliseconds")
    return _grouped(records, window, F.unix_millis("window.end") - F.lit(gap_ms))


WAYS: dict[str, Callable[[DataFrame, Workload], DataFrame]] = {
    "ours": ours,
    "spark-floor": floor,
    "spark-range": range_frames,
    "spark-range-tree": range_frames,
    "spark-range-points": point_range_frame,
    "spark-range-points-tree": point_range_frame,
    "spark-range-left": left_range_frame,
    "spark-window": time_window,
    "spark-session-window": session_window,
}


def checksums(way: str, found: DataFrame, *, left_only: bool = False) -> Answer:
    """Sums up distinct windows: a frame gives one for each record, at equal times the same.

    Args:
        way: How they were computed.
        found: The windows.
        left_only: Of ours, take those that end with a record; the ways that find no others
            are as they are.
    """
    if way == "ours":
        found = found.where("window_end = last_event_time") if left_only else found
        found = found.withColumnsRenamed({"key": "k", "window_end": "window_end_ms"})
    else:
        found = found.distinct()
    return Answer(*found.selectExpr(*CHECKSUMS).collect()[0])


class SparkEngine(Engine):
    """A local Spark session with the settings for long work."""

    def __init__(self, cores: int, memory_gib: int) -> None:
        self._spark = start_session(long_work(load_settings(_ROOT), cores, memory_gib))
        self._spark.sparkContext.setLogLevel("ERROR")
        self._records: DataFrame | None = None
        self._work: Workload | None = None

    def load(self, folder: Path, workload: Workload) -> None:
        """Reads the records, and caches what fits."""
        if self._records is not None:
            self._records.unpersist(blocking=True)
        rows = workload.dataset.records
        partitions = max(_MIN_PARTITIONS, math.ceil(rows / _RECORDS_PER_PARTITION))
        self._spark.conf.set("spark.sql.shuffle.partitions", partitions)
        self._records = self._spark.read.parquet(str(folder)).select(*workload.columns)
        if rows <= MAX_RECORDS_IN_MEMORY:
            self._records.cache().count()
        self._work = workload

    def run(self, way: str) -> float:
        """Runs it into Spark's noop sink."""
        began = time.perf_counter()
        self._computed(way).write.format("noop").mode("overwrite").save()
        return time.perf_counter() - began

    def answer(self, way: str, *, left_only: bool) -> Answer:
        """Sums up distinct windows."""
        return checksums(way, self._computed(way), left_only=left_only)

    def close(self) -> None:
        """Stops the session."""
        self._spark.stop()

    def _computed(self, way: str) -> DataFrame:
        if self._records is None or self._work is None:
            raise RuntimeError("nothing is loaded; call load first")
        self._spark.conf.set(_SEGMENT_TREE, str(way.endswith("-tree")).lower())
        return WAYS[way](self._records, self._work)


def long_work(settings: Settings, cores: int, memory_gib: int) -> Settings:
    """The settings for long work with these cores, and this heap for the single JVM."""
    # These are the JVM's settings for a quick start.
    kept = {k: v for k, v in settings.spark.items() if k != "spark.driver.extraJavaOptions"}
    own = {"spark.master": f"local[{cores}]", "spark.driver.memory": f"{memory_gib}g"}
    return settings.model_copy(update={"spark": {**kept, **own}})


def _range(first_ms: int, last_ms: int) -> WindowFrame:
    return Window.partitionBy("key").orderBy("time_ms").rangeBetween(first_ms, last_ms)


def _frame(first_ms: int, last_ms: int) -> list[Column]:
    frame = _range(first_ms, last_ms)
    return [column.over(frame).alias(name) for name, column in _aggregates().items()]


def _aggregates() -> dict[str, Column]:
    return {"n": F.count("*"), "s": F.sum("value"), "m": F.max("value")}


def _window(end_ms: Column, aggregates: list[Column]) -> Column:
    return F.struct(end_ms.alias("window_end_ms"), *aggregates)


def _grouped(records: DataFrame, window: Column, end_ms: Column) -> DataFrame:
    aggregates = [column.alias(name) for name, column in _aggregates().items()]
    groups = records.groupBy(F.col("key").alias("k"), window.alias("window")).agg(*aggregates)
    return groups.select("k", end_ms.alias("window_end_ms"), *"nsm")
