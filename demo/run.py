"""Materializes the flights and their hourly windows in a Dagster run, and shows progress."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import dagster as dg
from rich.console import Console
from rich.text import Text

from benchmarks.process_tree import processor_s
from definitions import defs
from windows_pipeline.cli.terminal.console import coloured
from windows_pipeline.cli.terminal.progress import Status
from windows_pipeline.dagster import range_tags
from windows_pipeline.text.counts import counted

_JOB = "flights_all"
_WINDOWS = "hourly"
_POLL_SECONDS = 0.5
_TAG = "windows_pipeline/demo"


def materialize_year(console: Console) -> bool:
    """Runs the demo's assets over all days; returns whether the run succeeded.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed. The run is canceled, but a thread of this process
            still works on its step: the caller must end the process.
    """
    job = defs.resolve_job_def(_JOB)
    partitions = job.partitions_def
    if partitions is None:
        raise RuntimeError(f"{_JOB} has no partitions; its assets must share one definition")
    first = str(partitions.get_first_partition_key())
    last = str(partitions.get_last_partition_key())
    run_id = str(uuid.uuid4())
    with dg.DagsterInstance.get() as instance:
        _end_killed_runs(instance)
        progress = _Progress(console, instance, run_id)
        progress.start()
        # In the main thread Dagster would hold Ctrl-C back until a step ends.
        # As the whole job, which plans no checks; steps evaluate theirs in any case.
        of_demo = job.get_subset(
            asset_selection=set(assets_of_demo(job)), asset_check_selection=set()
        )
        running = ThreadPoolExecutor(1).submit(
            of_demo.execute_in_process,
            instance=instance,
            run_id=run_id,
            tags={**range_tags(first, last), _TAG: "true"},
            raise_on_error=False,
        )
        try:
            return running.result().success
        except KeyboardInterrupt:
            if (run := instance.get_run_by_id(run_id)) is not None:
                instance.report_run_canceled(run, "the demo was stopped")
            raise
        finally:
            progress.stop()


def assets_of_demo(job: dg.JobDefinition) -> list[dg.AssetKey]:
    """The assets of the source and the hourly windows; users may try the others."""
    keys = job.asset_layer.executable_asset_keys
    return [key for key in keys if len(key.path) == 2 or key.path[1] == _WINDOWS]


def _end_killed_runs(instance: dg.DagsterInstance) -> None:
    """Ends the runs of killed demos, which would stay started and block all other runs."""
    of_demo = dg.RunsFilter(tags={_TAG: "true"}, statuses=[dg.DagsterRunStatus.STARTED])
    for run in instance.get_runs(of_demo):
        instance.report_run_failed(run, "the demo was stopped")


def _cause(event: dg.DagsterEvent) -> str:
    """The message of the first error in the chain of errors that stopped a step."""
    error = event.step_failure_data.error
    while error is not None and error.cause is not None:
        error = error.cause
    return "see its log" if error is None else error.message.strip()


class _Progress:
    """Shows a run's events: the current step, materialized tables and check results."""

    def __init__(self, console: Console, instance: dg.DagsterInstance, run_id: str) -> None:
        self._console = console
        self._instance = instance
        self._run_id = run_id
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._cursor: str | None = None
        self._shown = set[dg.AssetKey]()
        self._failed_days: Counter[tuple[dg.AssetCheckKey, dg.AssetCheckSeverity]] = Counter()
        # Dagster records first what the run will do on each of its days.
        self._status = Status(console, "planning a run of 366 arrival days ...", lines=console)
        self._since, self._spent_s = time.monotonic(), processor_s(os.getpid())

    def start(self) -> None:
        self._status.start()
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()
        self._show_new()
        self._status.stop()

    def _follow(self) -> None:
        while not self._done.wait(_POLL_SECONDS):
            self._show_new()

    def _show_new(self) -> None:
        connection = self._instance.get_records_for_run(self._run_id, cursor=self._cursor)
        self._cursor = connection.cursor
        for record in connection.records:
            event = record.event_log_entry.dagster_event
            if event is not None:
                self._show(event)

    def _show(self, event: dg.DagsterEvent) -> None:
        if event.is_step_start:
            self._since, self._spent_s = time.monotonic(), processor_s(os.getpid())
            name = (event.step_key or "").replace("__", "/")
            self._status.update(f"{name} ... (a run of 366 arrival days)")
        elif event.is_step_failure:
            self._console.print(coloured("  FAILED", "red", f": {_cause(event)}"), soft_wrap=True)
        elif event.is_step_success:
            seconds, spent_s = time.monotonic() - self._since, processor_s(os.getpid())
            self._console.print(f"  {seconds:.0f} s, {spent_s - self._spent_s:.0f} processor s")
        elif event.is_step_materialization:
            materialization = event.step_materialization_data.materialization
            rows, key = materialization.metadata.get("rows_of_run"), materialization.asset_key
            if rows is None or key in self._shown:
                return
            self._shown.add(key)
            text = f" {key.to_user_string()}: {rows.value:,} rows"
            self._console.print(coloured("materialized", "green", text))
        elif event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            self._show_check(event.asset_check_evaluation_data)

    def _show_check(self, evaluation: dg.AssetCheckEvaluation) -> None:
        """Counts the days on which a check does not pass, and shows them with the last day."""
        check = evaluation.asset_check_key
        if evaluation.partition is not None:
            self._failed_days[check, evaluation.severity] += not evaluation.passed
            return
        failed = self._failed_days[check, dg.AssetCheckSeverity.ERROR]
        warned = self._failed_days[check, dg.AssetCheckSeverity.WARN]
        if failed:
            mark = (f"FAILED on {counted(failed, 'day')}", "red")
        elif warned:
            mark = (f"a warning on {counted(warned, 'day')}", "yellow")
        else:
            mark = ("passed on every day", "green")
        self._console.print(Text.assemble(f"  check {evaluation.check_name}: ", mark))
