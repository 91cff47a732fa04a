"""Faults as users meet them: a few lines, an exit status, and a command that helps."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import dagster as dg
from pyspark.sql import SparkSession

from tests.support.small_project import HEADER, SmallProject
from windows_pipeline.dagster import build_definitions


def said_of(project: SmallProject, *args: str, status: int) -> str:
    """What a command prints of a fault; it must end with the status, and print no trace."""
    ended, said = project.call(*args)
    assert ended == status, said
    assert "Traceback" not in said
    assert "\tat " not in said
    return said


def test_a_warehouse_that_is_a_file(project: SmallProject) -> None:
    project.declare()
    project.land(1, f"{HEADER}a,0,1\n")
    (project.folder / "warehouse").touch()
    said = said_of(project, "run", "p", status=2)
    assert "a folder must be there" in said


Damage = Callable[[Path], object]


def emptied(file: Path) -> None:
    file.write_bytes(b"")
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


def gone(*files: Path) -> None:
    for file in files:
        file.unlink()
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)


DAMAGED: dict[str, tuple[Damage, str]] = {
    "empty offsets": (lambda at: emptied(at / "offsets" / "1"), "Failed to read log file"),
    "empty list of files": (
        lambda at: emptied(at / "sources" / "0" / "1"),
        "checkpoint must be whole",
    ),
    "empty metadata": (lambda at: emptied(at / "metadata"), "checkpoint must be whole"),
    "no metadata": (lambda at: gone(at / "metadata"), "/metadata is missing"),
    "no lists of files": (lambda at: shutil.rmtree(at / "sources"), "checkpoint must be whole"),
    "no newest offsets and commits": (
        lambda at: gone(at / "offsets" / "1", at / "commits" / "1"),
        "its tables end with micro-batch 1, which its checkpoint must have: ",
    ),
    "no checkpoint": (shutil.rmtree, "/p/_stream holds no checkpoint of that stream"),
}


def test_a_checkpoint_or_table_that_is_damaged_or_lost(project: SmallProject) -> None:
    """H1: a stream does not go on from a damaged checkpoint, and names the file.

    It goes on once that is mended, and the tables take no row twice.
    """
    project.declare(stream=True, max_per_batch=1)
    for turn in (0, 1):
        project.land(1, f"{HEADER}a,{10 * turn},1\n", f"{turn}.csv", turn)
    assert project.ingest("stream")[0] == 0
    before = project.all_rows()
    checkpoint = project.folder / "warehouse" / "p" / "_stream"
    # The file that the message names is taken away: the micro-batch is computed again.
    commit = checkpoint / "commits" / "1"
    commit.write_bytes(b"")
    assert str(commit) in said_of(project, "stream", "p", status=2)
    gone(commit)
    assert project.ingest("stream")[0] == 0
    assert project.all_rows() == before
    project.land(1, f"{HEADER}a,20,1\n", "2.csv")
    kept = project.folder / "kept"
    shutil.copytree(checkpoint, kept)
    for damage, words in DAMAGED.values():
        damage(checkpoint)
        said = said_of(project, "stream", "p", status=2)
        assert words in said
        assert "put the checkpoint back" in said
        assert project.all_rows() == before
        shutil.rmtree(checkpoint, ignore_errors=True)
        shutil.copytree(kept, checkpoint)
    status, said = project.ingest("stream")
    assert (status, "micro-batch 2" in said) == (0, True), said
    assert len(project.raw("event_time")) == 3
    # A stream makes all tables at once, so one that is not there is gone.
    shutil.rmtree(checkpoint.with_name("w") / "alerts")
    said = said_of(project, "check", "p", status=2)
    assert "p/w/alerts: the table was filled" in said
    assert "windows-pipeline rebuild p --from alerts" in said


def test_a_followed_table_whose_column_was_renamed(
    project: SmallProject, spark: SparkSession
) -> None:
    project.declare(stream=True, format="delta", path="src")
    source = project.folder / "src"
    said = said_of(project, "stream", "p", status=2)
    assert "must be a Delta table" in said
    rows = spark.createDataFrame([("a", 0, 1.0)], "k string, t bigint, v double")
    (
        rows.write.format("delta")
        .option("delta.columnMapping.mode", "name")
        .option("delta.minReaderVersion", 2)
        .option("delta.minWriterVersion", 5)
        .save(str(source))
    )
    assert project.ingest("stream")[0] == 0
    spark.sql(f"ALTER TABLE delta.`{source}` RENAME COLUMN v TO w")
    said = said_of(project, "stream", "p", status=2)
    assert "must be a Delta table that keeps its columns" in said


def test_dagster_shows_the_same_words(project: SmallProject) -> None:
    project.declare(stream=True)
    project.land(1, f"{HEADER}a,0,1\n")
    assert project.ingest("stream")[0] == 0
    emptied(project.folder / "warehouse" / "p" / "_stream" / "offsets" / "0")
    job = build_definitions([project.pipeline], project.settings).resolve_job_def("p_stream")
    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance, raise_on_error=False)
    (failed,) = [event for event in result.all_events if event.is_step_failure]
    data = failed.step_failure_data
    assert data.user_failure_data is not None
    assert "checkpoint must be whole" in str(data.user_failure_data.description)
    assert data.error is not None
    assert data.error.cause is None
    assert "StreamingQueryException" not in data.error.to_string()
