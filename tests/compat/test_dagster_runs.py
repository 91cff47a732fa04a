"""A run of Dagster that begins and ends with a command, on Dagster's names that are not public."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import dagster as dg
import pytest

from windows_pipeline.compat.dagster_runs import instance_of
from windows_pipeline.dagster.assets.command_run import COMMAND, DID, CommandRun, Ended, fail_killed

ROOT = Path(__file__).parents[2]
TEXT = "windows-pipeline run p"
KILLED = f"""
import time
from windows_pipeline.compat.dagster_runs import instance_of
from windows_pipeline.dagster.assets.command_run import CommandRun
run = CommandRun(instance_of("."), "p", {TEXT!r})
time.sleep(600)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    shutil.copy(ROOT / "windows_pipeline" / "dagster" / "dagster.yaml", tmp_path)
    return tmp_path


def started(instance: dg.DagsterInstance) -> dg.DagsterRun:
    """The run that is at work, once there is one."""
    filters = dg.RunsFilter(job_name="p_in_shell", statuses=[dg.DagsterRunStatus.STARTED])
    for _ in range(600):
        if runs := instance.get_runs(filters):
            return runs[0]
        time.sleep(0.1)
    raise AssertionError


def test_a_command_shows_while_it_is_at_work(home: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its run begins with it, and leaves what the command prints alone."""
    instance = instance_of(str(home))
    run = CommandRun(instance, "p", TEXT)
    at_work = started(instance)
    sys.stdout.write("a line of the command\n")
    fail_killed(instance, "p")  # another command begins
    assert started(instance).run_id == at_work.run_id
    before = time.time()
    made = dg.AssetMaterialization("table", partition="2026-11-01")
    run.end(Ended(["table: published"], [made], None))
    record = instance.get_run_record_by_id(at_work.run_id)
    assert record is not None
    assert record.dagster_run.is_success
    assert record.dagster_run.tags.items() >= {COMMAND: TEXT, DID: "table: published"}.items()
    assert (record.start_time or before) <= before <= (record.end_time or 0)
    assert instance.get_materialized_partitions(dg.AssetKey("table")) == {"2026-11-01"}
    assert capfd.readouterr().out == "a line of the command\n"
    assert list((home / "commands").iterdir()) == []


def test_a_command_that_failed_fails_its_run(home: Path) -> None:
    instance = instance_of(str(home))
    run = CommandRun(instance, "p", TEXT)
    run.end(Ended([], [], dg.Failure("a rule fails", metadata={"rows": 3})))
    (found,) = instance.get_runs()
    assert (found.is_failure, found.tags[DID]) == (True, "a rule fails")
    (failure,) = instance.all_logs(found.run_id, dg.DagsterEventType.STEP_FAILURE)
    assert "a rule fails" in str(failure.dagster_event)


def test_the_run_of_a_killed_command_does_not_stay_started(home: Path) -> None:
    """The next command, or tick of a sensor, ends it; Dagster does not run it again."""
    command = subprocess.Popen([sys.executable, "-c", KILLED], cwd=home)
    instance = instance_of(str(home))
    at_work = started(instance)
    fail_killed(instance, "p")
    assert started(instance).run_id == at_work.run_id
    os.kill(command.pid, signal.SIGKILL)
    command.wait()
    fail_killed(instance, "other")
    assert started(instance).run_id == at_work.run_id
    fail_killed(instance, "p")
    (run,) = instance.get_runs()
    assert run.is_failure
    assert run.tags.get("dagster/will_retry") != "true"
    (failed,) = instance.all_logs(run.run_id, dg.DagsterEventType.RUN_FAILURE)
    assert f"{TEXT} was killed" in str(failed.dagster_event)
