"""Everything that writes files, once and small, in a folder: run it with a umask of your choice.

The umask is the process's and its JVM's, so that this runs as a program of its own.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import dagster as dg

from definitions import build_definitions
from tests.support.pipelines import ROOT, Project, day
from tests.support.streams import SLIDING, as_json, declared_pipeline
from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.settings import Settings, load_settings
from windows_pipeline.streaming import run_stream

_READABLE = {
    "origin": "EWR",
    "departed_at": "2013-01-01T05:00:00Z",
    "landed_at": "2013-01-01T06:00:00Z",
    "dep_delay": 3.0,
}
_DAY = "2026-11-01"
_MS = 1_793_491_200_000


def run(folder: Path) -> None:
    """Days by Dagster with an instance of its own, then a stream."""
    loaded = load_settings(ROOT)
    fewer = {"spark.master": "local[2]", "spark.driver.memory": "1g"}
    settings = loaded.model_copy(update={"spark": {**loaded.spark, **fewer}})
    days_by_dagster(folder, settings)
    stream_of_files(folder / "stream", settings)
    start_session(settings).stop()


def days_by_dagster(folder: Path, settings: Settings) -> None:
    """A day with a record that is read, and one that is rejected."""
    project = Project(folder, settings)
    project.declare()
    landed = folder / "data" / "flights" / str(day(1))
    landed.mkdir(parents=True)
    records = [_READABLE, {**_READABLE, "landed_at": None}]
    (landed / "flights.jsonl").write_text("\n".join(map(json.dumps, records)))
    home = folder / ".dagster_home"
    home.mkdir()
    shutil.copyfile(ROOT / "resources" / "dagster.yaml", home / "dagster.yaml")
    defs = build_definitions(project.settings)
    with dg.DagsterInstance.from_config(str(home)) as instance:
        job = defs.resolve_job_def("flights_all")
        assert job.execute_in_process(instance=instance, partition_key=str(day(1))).success


def stream_of_files(folder: Path, settings: Settings) -> None:
    """A stream with a micro-batch and its checkpoint."""
    landed = folder / "landed" / _DAY
    landed.mkdir(parents=True)
    (landed / "numbers.jsonl").write_text(as_json("a", _MS, 1))
    source = {"path": "landed", "format": "jsonl", "stream": True}
    pipeline, settings = declared_pipeline(folder, settings, source, SLIDING)
    run_stream(start_session(settings), pipeline, settings)


if __name__ == "__main__":
    run(Path(sys.argv[1]))
