"""A process of `benchmarks.chain`: the chain by its commands, or its floor by plain Spark."""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import SparkSession

from benchmarks.process_tree import processor_s
from tests.support.costs import call
from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.config import load_pipeline
from windows_pipeline.settings import SETTINGS_VARIABLE, load_settings

OURS = "chain"
HELD = "held"
"""The folder of days that land just before their micro-batch."""
_FLOOR = "floor"
_DAY = "arrival_unit"


class Step(NamedTuple):
    """Arrival days that a command computes.

    Attributes:
        name: What the processor time is shown as.
        pipeline: The pipeline's name.
        days: The days; one for a micro-batch.
        stream: The command is `stream`, which takes one micro-batch.
    """

    name: str
    pipeline: str
    days: Sequence[str]
    stream: bool = False


def compute(folder: Path, step: Step) -> None:
    """Runs the command of a step; for a stream, a day lands just before it."""
    if step.stream:
        (folder / HELD / step.days[0]).rename(folder / step.pipeline / step.days[0])
        call("stream", step.pipeline)
    else:
        call("run", step.pipeline, "--from", step.days[0], "--to", step.days[-1])


def copy(spark: SparkSession, folder: Path, step: Step) -> None:
    """Reads the landed files of a step, and writes the rows that its tables have of the days."""
    pipeline = load_pipeline(folder / "pipelines" / f"{step.pipeline}.yaml")
    landing = folder / str(pipeline.source.path)
    days = [str(landing / day) for day in step.days if (landing / day).is_dir()]
    reader = spark.read
    if pipeline.source.format != "parquet":
        reader = reader.schema(", ".join(f"`{name}` string" for name in pipeline.source.columns))
    source = reader.format(pipeline.source.format.replace("jsonl", "json"))
    source.load(days).write.format("noop").mode("overwrite").save()
    for log in sorted((folder / "warehouse").glob("**/_delta_log")):
        rows = spark.read.format("delta").load(str(log.parent))
        if _DAY not in rows.columns:
            continue
        of_days = rows.where(rows[_DAY].cast("string").isin(*step.days))
        target = folder / _FLOOR / log.parent.relative_to(folder / "warehouse")
        partitioned = [_DAY] if any(log.parent.glob(f"{_DAY}=*")) else []
        writer = of_days.write.format("delta").partitionBy(*partitioned)
        writer.mode("append").save(str(target))


def main(engine: str, folder: Path, steps: Sequence[Step]) -> None:
    """Does the steps, and writes the processor seconds of each by its name."""
    os.environ[SETTINGS_VARIABLE] = str(folder / "settings.yaml")
    taken, spent_s = defaultdict[str, list[float]](list), 0.0
    for step in steps:
        if engine == OURS:
            compute(folder, step)
        else:
            copy(start_session(load_settings(folder)), folder, step)
        before, spent_s = spent_s, processor_s(os.getpid())
        taken[step.name].append(spent_s - before)
    (folder / "taken.json").write_text(json.dumps(taken))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), [Step(*one.values()) for one in json.loads(sys.argv[3])])
