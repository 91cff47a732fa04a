"""Everything that writes files, once and small, in a folder: run it with a umask of your choice.

The umask is the process's and its JVM's, so that this runs as a program of its own. Settings and a
topic refer to the environment variable CANARY_VARIABLE, which stands for a secret.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

import dagster as dg
import yaml
from py4j.protocol import Py4JJavaError
from pyspark.sql import functions as F

from definitions import build_definitions
from tests.support.pipelines import ROOT, Project, day
from tests.support.streams import SLIDING, as_json, declared_pipeline
from windows_pipeline.compat.kafka_admin import NoConnectorError
from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.settings import SETTINGS_VARIABLE, Settings, load_settings
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.streaming import run_stream

CANARY_VARIABLE = "WINDOWS_PIPELINE_CANARY"
REFERENCE = f"${{env:{CANARY_VARIABLE}}}"
SECRET_KEY = "spark.hadoop.fs.s3a.secret.key"  # noqa: S105  a name, no secret

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
    os.environ["PYTHONPATH"] += ":"  # an empty entry is the working directory
    settings = settings_with_a_secret(folder)
    with no_command_line_has(os.environ[CANARY_VARIABLE]):
        days_by_dagster(folder, settings)
        spark = start_session(settings)
        assert spark.sparkContext.getConf().get(SECRET_KEY) == os.environ[CANARY_VARIABLE]
        stream_of_files(folder / "stream", settings)
        stream_of_a_topic(folder / "topic", settings)
    spark.stop()
    by_workers_of_spark(settings)


def by_workers_of_spark(settings: Settings) -> None:
    """What Spark runs in Python, with its own daemon: functions, and a look for data sources."""
    own = {**settings.spark, "spark.python.daemon.module": "pyspark.daemon"}
    spark = start_session(settings.model_copy(update={"spark": own}))
    plus_1 = F.udf(lambda number: number + 1, "long")
    rows = spark.range(1).mapInArrow(lambda batches: batches, "id long").select(plus_1("id"))
    assert rows.collect() == [(1,)]
    with suppress(Py4JJavaError):
        spark.read.format("no_such_format").load()
    spark.stop()


def settings_with_a_secret(folder: Path) -> Settings:
    """The project's settings on few cores, as a file that refers to a variable."""
    os.environ.pop(SETTINGS_VARIABLE, None)
    data = load_settings(ROOT).model_dump(mode="json")
    data["spark"] |= {"spark.master": "local[2]", "spark.driver.memory": "1g"}
    data["spark"] |= {SECRET_KEY: REFERENCE}
    (folder / "settings.yaml").write_text(yaml.safe_dump(data))
    return load_settings(folder)


@contextmanager
def no_command_line_has(secret: str) -> Iterator[None]:
    """Requires that no process shows a secret in its command line, all the time."""
    ended = Event()
    found: set[bytes] = set()

    def look() -> None:
        while not ended.wait(0.05):
            for file in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    line = file.read_bytes()
                except OSError:
                    continue  # the process has ended
                if secret.encode() in line:
                    found.add(line)

    looking = Thread(target=look)
    looking.start()
    try:
        yield
    finally:
        ended.set()
        looking.join()
    assert not found, "a command line has the secret"


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
    shutil.copyfile(ROOT / "windows_pipeline" / "dagster" / "dagster.yaml", home / "dagster.yaml")
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
    run_stream(start_session(settings), tables_of(pipeline, settings.warehouse), settings)


def stream_of_a_topic(folder: Path, settings: Settings) -> None:
    """A stream that fails, as Spark has no connector; its error goes to standard error."""
    folder.mkdir()
    options = {"sasl.jaas.config": f'x password="{REFERENCE}";', "security.protocol": REFERENCE}
    topic = {"servers": f"{REFERENCE}:1", "topic": "numbers", "options": options}
    source = {"format": "kafka", "kafka": topic}
    pipeline, settings = declared_pipeline(folder, settings, source, SLIDING)
    try:
        run_stream(start_session(settings), tables_of(pipeline, settings.warehouse), settings)
    except NoConnectorError:
        traceback.print_exc()
    else:
        raise AssertionError("Spark has a connector for Kafka")


if __name__ == "__main__":
    run(Path(sys.argv[1]))
