"""A running stream, in a process of its own, is killed (rule H1)."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import dagster as dg
import pytest
from pyspark.sql import SparkSession

from definitions import build_definitions
from tests.support.command_line import call
from tests.support.pipelines import ROOT
from tests.support.spark_cases import texts
from tests.support.stored_rows import stored_rows
from tests.support.streams import SLIDING, as_json, declared_pipeline
from windows_pipeline.config import Pipeline
from windows_pipeline.settings import SETTINGS_VARIABLE, Settings
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.streaming import run_stream

ALERTS = {"busy": {"when": "record_count >= 2", "severity": "record_count"}}
SOURCE = {"format": "jsonl", "path": "data", "stream": True}
WINDOW = {**SLIDING, "alerts": ALERTS}
PATIENCE_S = 240


def land(folder: Path, *files: int) -> None:
    """Lands files of a day, each complete at once, one written after the other."""
    for number in files:
        path = folder / "data" / "2026-11-01" / f"{number}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        records = [as_json("ab"[ms % 2], ms, ms) for ms in range(40 * number, 40 * number + 40, 3)]
        path.with_name(".tmp").write_text("\n".join([*records, "broken"]))
        os.utime(path.with_name(".tmp"), (number + 1, number + 1))
        path.with_name(".tmp").rename(path)


@contextmanager
def following(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Runs the command line's stream, which looks for files every second; kills it at the end."""
    command = Path(sys.executable).with_name("windows-pipeline")
    environment = {name: value for name, value in os.environ.items() if name != SETTINGS_VARIABLE}
    with (folder / "output").open("w") as output:
        process = subprocess.Popen(
            [command, "stream", "numbers", "--every", "1 second"],
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def wait_until(is_so: Callable[[], bool], process: subprocess.Popen[str], output: Path) -> None:
    """Waits until a condition holds, as long as the process runs."""
    give_up_at = time.monotonic() + PATIENCE_S
    while not is_so():
        assert process.poll() is None, output.read_text()
        assert time.monotonic() < give_up_at, output.read_text()
        time.sleep(0.02)


def rows_of_all(pipeline: Pipeline, own: Settings) -> dict[str, list[str]]:
    """The rows of every table, without the stream's id."""
    return {
        table.name: texts(stored_rows(table, "stream"))
        for table in tables_of(pipeline, own.warehouse).written
    }


def run_in_dagster(own: Settings) -> None:
    """Runs the stream in Dagster, and interrupts it once it has materialized a micro-batch.

    Dagster terminates runs by an interrupt, too.
    """
    job = build_definitions(own).resolve_job_def("numbers_stream")
    key = dg.AssetKey(["numbers", "raw_events"])
    config = {"every": "0 seconds"}
    ended = Event()
    with dg.DagsterInstance.ephemeral() as instance:

        def terminate() -> None:
            while not ended.is_set():
                if instance.get_latest_materialization_event(key) is not None:
                    os.kill(os.getpid(), signal.SIGINT)
                    return
                time.sleep(0.05)

        terminating = Thread(target=terminate)
        terminating.start()
        try:
            result = job.execute_in_process(
                run_config=config, instance=instance, raise_on_error=False
            )
        finally:
            ended.set()
            terminating.join()
        (made,) = instance.fetch_materializations(key, limit=9).records
        materialization = made.asset_materialization
        assert materialization is not None
        assert materialization.metadata["accepted"].value == len(range(40, 80, 3))
        assert not result.success


@pytest.mark.long
@pytest.mark.smoke
def test_a_killed_process_has_its_records_once(
    spark: SparkSession,
    settings: Settings,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A1, E1: killed in the second micro-batch and run again, it equals a stream without a kill."""
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for folder in (killed, whole):
        folder.mkdir()
    pipeline, own = declared_pipeline(killed, settings, SOURCE, WINDOW)
    shutil.copy(ROOT / "settings.yaml", killed)
    land(killed, 0)
    raw_log = killed / "warehouse" / "numbers" / "raw_events" / "_delta_log"
    with following(killed) as process:
        output = killed / "output"
        wait_until(lambda: "micro-batch 0: 2026-11-01; 14" in output.read_text(), process, output)
        commits = len(list(raw_log.glob("*.json")))
        land(killed, 1)
        wait_until(lambda: len(list(raw_log.glob("*.json"))) > commits, process, output)
    assert "micro-batch 1" not in output.read_text()
    run_in_dagster(own)

    pipeline, own_of_whole = declared_pipeline(
        whole, settings, SOURCE, {**SLIDING, "alerts": ALERTS}
    )
    land(whole, 0)
    run_stream(spark, tables_of(pipeline, own_of_whole.warehouse), own_of_whole)
    land(whole, 1)
    shutil.copy(killed / "settings.yaml", whole)
    monkeypatch.chdir(whole)
    status, said = call(capfd, monkeypatch, "stream", "numbers")
    assert (status, "micro-batch 1: 2026-11-01; 14 records" in said) == (0, True), said
    found = rows_of_all(pipeline, own)
    assert found == rows_of_all(pipeline, own_of_whole)
    for table in ("rejected_records", "sums/final_windows", "sums/alerts"):
        assert found[f"numbers/{table}"], table
