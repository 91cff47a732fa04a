"""The events of jobs' results, which commands and jobs report to the Dagster instance."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from types import MappingProxyType

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.checks.next_steps import once_blocked, once_published, run_again
from windows_pipeline.checks.run import CheckResult
from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.assets.alerts import plot_and_warnings
from windows_pipeline.dagster.assets.catalogue import column_lineage
from windows_pipeline.dagster.assets.checks import rules_evaluations
from windows_pipeline.dagster.assets.correction_metadata import correction_metadata
from windows_pipeline.dagster.assets.episodes import EpisodeChecks
from windows_pipeline.dagster.assets.event_order import Event, in_order
from windows_pipeline.dagster.assets.metadata import (
    Metadata,
    batch_metadata,
    day_metadata,
    run_metadata,
)
from windows_pipeline.dagster.assets.plots import lateness_plots, size_plots
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.jobs import JobResult
from windows_pipeline.jobs.correction.run import CorrectionResult
from windows_pipeline.settings import Settings
from windows_pipeline.storage.arrival_units import days_text
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import all_tables, source_tables, window_tables
from windows_pipeline.streaming import BatchResult
from windows_pipeline.text.counts import counted

_COMMAND, _DID = "windows-pipeline/command", "windows-pipeline/did"
"""The tags of a run that a command reports: the command, and what it did."""
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}


class ResultEvents:
    """The events of jobs' results, as runs of the assets store them."""

    def __init__(self, pipeline: Pipeline, settings: Settings, spark: SparkSession) -> None:
        """Takes what the jobs are of.

        Args:
            pipeline: The pipeline.
            settings: Where its tables lie.
            spark: The session, to read alerts.
        """
        self._spark = spark
        self._pipeline = pipeline
        self._warehouse = settings.warehouse
        self._tables = {table.name: table for table in all_tables(pipeline, settings.warehouse)}
        raw_events = source_tables(pipeline, settings.warehouse).raw_events
        self._plots = {raw_events.name: lateness_plots(pipeline, settings)}
        self._episodes: dict[str, EpisodeChecks] = {}
        for name in pipeline.windows:
            tables = window_tables(pipeline, name, settings.warehouse)
            self._plots[tables.final_windows.name] = size_plots(pipeline, name, settings)
            self._plots[tables.alerts.name] = plot_and_warnings(pipeline, name, settings)
            self._episodes[tables.alerts.name] = EpisodeChecks(pipeline, name, settings)

    def of_job(self, name: str, result: JobResult) -> Iterator[Event]:
        """A job's checks and, if it published, a materialization of each table and day.

        Args:
            name: The name of the job's first table, whose asset has the job's checks.
            result: The job's result.
        """
        again = f"windows-pipeline rebuild {self._pipeline.name}"
        if self._pipeline.source.by_days:
            again = f"{run_again(self._pipeline, result.days)}; of a rebuild: {again}"
        yield from self._checks(name, result, again)
        for table_name in result.versions:
            table = self._tables.get(table_name)
            if table is not None:
                yield from self._materializations(table, result)

    def of_correction(
        self, windows_name: str, result: CorrectionResult, cause: str
    ) -> Iterator[Event]:
        """The checks of a correction's jobs, and a materialization of each table and day.

        Days of corrections are those that the correction changed. Of other tables they are all that
        it computed again, so that a day is green once it is found right.
        """
        tables = window_tables(self._pipeline, windows_name, self._warehouse)
        counted = {table.name for table in (tables.final_windows, tables.alerts)}
        counts = correction_metadata(result, cause)
        again = "the same correction again"
        for name, of_job in result.results:
            yield from self._checks(name, of_job, again, corrected=True)
            for table_name in of_job.versions:
                table = self._tables.get(table_name)
                if table is None:
                    continue
                if table == tables.corrections:
                    yield from self._materializations(table, of_job, counts, list(counts))
                else:
                    more = counts if table_name in counted else {}
                    yield from self._materializations(table, of_job, more)

    def of_batch(self, batch: BatchResult) -> Iterator[dg.AssetMaterialization]:
        """A materialization of each table and day that a micro-batch changed.

        It has no plots and counts, which take too long after each micro-batch.
        """
        for table in self._tables.values():
            yield from self._of_batches([batch], table, {}, {})

    def of_stream(self, batches: Sequence[BatchResult]) -> Iterator[dg.AssetMaterialization]:
        """A materialization of each table and day that the micro-batches of a whole run changed."""
        days = sorted({day for batch in batches for day in batch.arrival_units})
        for table in self._tables.values() if days else ():
            counts: Metadata = {
                "dagster/row_count": dg.MetadataValue.int(table.count(self._spark)),
                "delta_version": dg.MetadataValue.int(table.version(self._spark)),
            }
            yield from self._of_batches(batches, table, self._plotted(table, days), counts)

    def of_checked(
        self, checked: Iterable[tuple[str, Sequence[CheckResult]]], days: Sequence[date]
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """The checks of published days of all jobs, each by the name of its first table."""
        for name, results in checked:
            yield from self.of_published(name, results, days)

    def of_published(
        self, name: str, results: Sequence[CheckResult], days: Sequence[date]
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """The checks of published days of the table of a name, and the episodes of its alerts."""
        yield from self.of_checks(name, results, days)
        yield from self._of_episodes(name, days)

    def of_all_episodes(self, name: str) -> Iterator[dg.AssetCheckEvaluation]:
        """The episodes of all computed days, if the table of the name is that of alerts."""
        if name in self._episodes:
            yield from self._of_episodes(name, self._episodes[name].all_days(self._spark))

    def of_checks(
        self, name: str, results: Sequence[CheckResult], days: Sequence[date]
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """The checks of published days of the table of a name."""
        asset = asset_key(self._tables[name])
        yield from rules_evaluations(asset, results, days, once_published(self._pipeline))

    def _of_batches(
        self,
        batches: Sequence[BatchResult],
        table: Table,
        by_day: Mapping[date, Metadata],
        counts: Metadata,
    ) -> Iterator[dg.AssetMaterialization]:
        """A materialization of each day of a table that micro-batches changed.

        Args:
            batches: The micro-batches.
            table: The table.
            by_day: Metadata of single days.
            counts: Metadata of the whole table.
        """
        metadata = {
            **batch_metadata(batches),
            **column_lineage(self._pipeline, table, self._warehouse),
            **counts,
        }
        for day in sorted({day for batch in batches for day in batch.arrival_units}):
            yield dg.AssetMaterialization(
                asset_key(table),
                partition=day.isoformat(),
                metadata={**by_day.get(day, {}), **metadata},
            )

    def _checks(
        self, name: str, result: JobResult, again: str, *, corrected: bool = False
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """A job's checks and, if it published alerts, the days' episodes.

        Args:
            name: The name of the job's first table.
            result: The job's result.
            again: What to do again if it published nothing.
            corrected: Whether the job belongs to a correction.
        """
        days = sorted(result.days)
        then = (
            once_published(self._pipeline)
            if result.published
            else once_blocked(self._pipeline, again, result.checks)
        )
        yield from rules_evaluations(asset_key(self._tables[name]), result.checks, days, then)
        if result.published:
            yield from self._of_episodes(name, days, corrected=corrected)

    def _of_episodes(
        self, name: str, days: Sequence[date], *, corrected: bool = False
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """The episodes of days, if the table of the name is that of alerts."""
        if name in self._episodes:
            checks = self._episodes[name]
            names = [spec.name for spec in checks.specs]
            yield from checks.evaluations(self._spark, days, names, corrected=corrected)

    def _materializations(
        self,
        table: Table,
        result: JobResult,
        more: Mapping[date, Metadata] = MappingProxyType({}),
        only: Collection[date] | None = None,
    ) -> Iterator[dg.AssetMaterialization]:
        """One materialization per day; the last one also has the whole table's metadata.

        Args:
            table: The table.
            result: The job's result.
            more: Further metadata by day.
            only: The days to report; None to report all days of the result.
        """
        days = sorted(result.facts if only is None else set(only).intersection(result.facts))
        drawn = self._plotted(table, days)
        for day in days:
            metadata: Metadata = dict(drawn.get(day, {}))
            if day == days[-1]:
                metadata |= run_metadata(table, result)
                metadata |= column_lineage(self._pipeline, table, self._warehouse)
            metadata |= {**day_metadata(table, result, day), **more.get(day, {})}
            yield dg.AssetMaterialization(
                asset_key(table), metadata=metadata, partition=day.isoformat()
            )

    def _plotted(self, table: Table, days: Sequence[date]) -> Mapping[date, Metadata]:
        """The plots of a table's days; none of a table that is not plotted."""
        plots = self._plots.get(table.name)
        return {} if plots is None or not days else plots(self._spark, days)


class InstanceReport:
    """Reports the results of a pipeline's jobs to the Dagster instance.

    Checks are reported in a run, when the command ends: of the evaluations that belong to no run,
    Dagster stores one a check and day, and refuses the next.
    """

    def __init__(self, home: Path, pipeline: Pipeline, events: ResultEvents, command: str) -> None:
        """Opens the instance of a folder, which has a `dagster.yaml`.

        Args:
            home: The folder.
            pipeline: The pipeline.
            events: Makes the events of results.
            command: The command whose results are reported, as users may repeat it.
        """
        # `DagsterInstance.get` takes the folder from nowhere else.
        os.environ["DAGSTER_HOME"] = str(home.resolve())
        self._instance = dg.DagsterInstance.get()
        self._pipeline = pipeline
        self._events = events
        self._command = command
        self._did: list[str] = []
        self._of_jobs: list[Event] = []
        self._failure: str | None = None

    def job(self, name: str, result: JobResult) -> None:
        """Takes the result of the job whose first table has the name; `end` reports it."""
        self._of_jobs += self._events.of_job(name, result)
        outcome = "published" if result.published else "NOT published"
        self._did.append(f"{name}: {outcome}, {days_text(sorted(result.days))}")

    def failed(self, reason: str) -> None:
        """Takes why the command did not do all that it was to do; the run of `end` fails by it."""
        self._failure = reason

    def end(self) -> None:
        """Reports the results of all jobs, in a run of the job `NAME_in_shell`."""
        events, self._of_jobs = self._of_jobs, []
        failure, self._failure = self._failure, None
        did, self._did = self._did, []
        if not events and failure is None:
            return

        @dg.op(name="show", out={})
        def show() -> Iterator[Event]:
            dg.OpExecutionContext.get().log.info("\n".join([self._command, *did]))
            yield from in_order(self._instance, events)
            if failure is not None:
                raise dg.Failure(failure)

        @dg.job(
            name=f"{self._pipeline.name}_in_shell",
            description=f"What a command did with {self._pipeline.name}.",
        )
        def in_shell() -> None:
            show()

        # A blocking check that failed fails this run, as it failed the command.
        stored = in_shell.execute_in_process(
            instance=self._instance,
            run_config=_QUIET,
            raise_on_error=False,
            tags={_COMMAND: self._command, _DID: "; ".join(did) or failure or "nothing"},
        )
        if not stored.success and failure is None and not any(map(_blocks, events)):
            raise RuntimeError(
                f"run {stored.run_id} of Dagster must end, but failed; the tables are as the "
                "command left them. The run's log in the UI has the cause"
            )

    def correction(self, windows_name: str, result: CorrectionResult, cause: str) -> None:
        """Takes the result of a correction; `end` reports it."""
        self._of_jobs += self._events.of_correction(windows_name, result, cause)
        outcome = "nothing differs from the published results"
        if not result.published:
            outcome = "the correction is NOT published"
        elif result.number is not None:
            outcome = f"correction {result.number} is published, {days_text(sorted(result.by_day))}"
        self._did.append(f"{windows_name}: {outcome}")

    def batch(self, batch: BatchResult) -> None:
        """Reports at once what a micro-batch wrote."""
        for event in self._events.of_batch(batch):
            self._instance.report_runless_asset_event(event)

    def stream(
        self,
        batches: Sequence[BatchResult],
        checked: Iterable[tuple[str, Sequence[CheckResult]]],
    ) -> None:
        """Takes the results of a run of the stream; `end` reports them."""
        days = sorted({day for batch in batches for day in batch.arrival_units})
        self._of_jobs += self._events.of_stream(batches)
        self._of_jobs += self._events.of_checked(checked, days)
        micro_batches = counted(len(batches), "micro-batch", "micro-batches")
        self._did.append(f"{micro_batches}, {days_text(days)}" if days else micro_batches)


def _blocks(event: Event) -> bool:
    if not isinstance(event, dg.AssetCheckEvaluation) or event.passed:
        return False
    return bool(event.blocking) and event.severity == dg.AssetCheckSeverity.ERROR


def open_report(
    pipeline: Pipeline, settings: Settings, spark: SparkSession, command: str
) -> InstanceReport | None:
    """Opens the Dagster instance of DAGSTER_HOME or, without it, of the settings.

    Returns:
        The report; None if there is no such instance.
    """
    named = os.environ.get("DAGSTER_HOME") or settings.dagster_home
    if named is None or not (Path(named) / "dagster.yaml").is_file():
        return None
    return InstanceReport(Path(named), pipeline, ResultEvents(pipeline, settings, spark), command)
