"""A pipeline with sliding windows and its landed files: what a stream and a large day take in."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.settings import Settings, load_settings

_DAY = "2026-01-01"
WINDOW_MS = 10_000
OUT_OF_ORDER_MS = 2_000
_START_MS = 1_767_225_600_000  # that day
KEYS = 1_000
_RECORDS_A_WINDOW = 100
STEP_US = WINDOW_MS * 1_000 // (KEYS * _RECORDS_A_WINDOW)
"""Event time between two records of any key, in microseconds."""
FOR_LONG_WORK = {
    "spark.driver.memory": "4g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC "
    "-Darrow.enable_unsafe_memory_access=true -Darrow.enable_null_check_for_get=false",
    "spark.sql.execution.arrow.maxBytesPerBatch": "2147483647",
}
"""What settings.yaml advises for a stream that brings many small records."""
_PIPELINE = f"""
name: {{name}}
source:
  path: {{name}}
  format: parquet
  columns: {{{{key: string, at: bigint, value: bigint}}}}
  key: key
  event_time: at
  max_per_batch: {{files}}
partitions: {{{{start: {_DAY}}}}}
windows:
  sliding:
    kind: sliding
    time_difference: {WINDOW_MS} ms
    grace: {OUT_OF_ORDER_MS} ms
    partial_results: false
    aggregates: {{{{total: sum(value), most: max(value)}}}}
    alerts:
      busy: {{{{when: record_count >= {{busy}}, severity: record_count}}}}
"""


class LandedPipeline(NamedTuple):
    """The pipeline, its settings, and the folder of its one day."""

    settings: Settings
    pipeline: Pipeline
    landing: Path


def declared(
    folder: Path,
    name: str,
    max_per_batch: int,
    arrival_ranges: int | None = None,
    busy: int = 3 * _RECORDS_A_WINDOW // 2,
) -> LandedPipeline:
    """The pipeline, settings for it, and where its files land: everything is in the folder.

    Args:
        folder: Where files and tables shall lie.
        name: The pipeline's, and the folder's of its landed files.
        max_per_batch: How many files a micro-batch of a stream takes.
        arrival_ranges: How many tasks sort what a day's run ingests.
        busy: How many records of a window raise an alert.
    """
    file = folder / f"{name}.yaml"
    file.write_text(_PIPELINE.format(name=name, files=max_per_batch, busy=busy))
    base = load_settings(Path(__file__).parent.parent)
    own = {
        "warehouse": f"{folder}/warehouse",
        "landing": str(folder),
        "pipelines": folder,
        "arrival_ranges": arrival_ranges,
        "spark": {**base.spark, **FOR_LONG_WORK},
    }
    landing = folder / name / _DAY
    landing.mkdir(parents=True)
    return LandedPipeline(base.model_copy(update=own), load_pipeline(file), landing)


def land(
    landing: Path,
    number: int,
    records: int,
    first: int | None = None,
    keys: int = KEYS,
    step_us: int = STEP_US,
) -> None:
    """Writes the next records, up to two seconds out of order, and lands them at once."""
    draw = np.random.default_rng((450, number))
    indices = np.arange(records) + (number * records if first is None else first)
    behind = draw.integers(0, OUT_OF_ORDER_MS, records)
    table = pa.table(
        {
            "key": np.char.add("k", draw.integers(0, keys, records).astype(str)),
            "at": _START_MS + indices * step_us // 1_000 - behind,
            "value": draw.integers(0, 1_000, records),
        }
    )
    hidden = landing / f".{number:06}"
    pq.write_table(table, hidden)
    hidden.rename(landing / f"{number:06}.parquet")
