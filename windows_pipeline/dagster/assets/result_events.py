"""The Dagster events of jobs' results, of which commands and jobs of Dagster store runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from types import MappingProxyType

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.checks.next_steps import once_blocked, once_published, run_again
from windows_pipeline.checks.run import CheckResult
from windows_pipeline.dagster.assets.alerts import plot_and_warnings
from windows_pipeline.dagster.assets.catalogue import column_lineage
from windows_pipeline.dagster.assets.checks import rules_evaluations
from windows_pipeline.dagster.assets.episodes import EpisodeChecks, episodes_by_day
from windows_pipeline.dagster.assets.event_order import Event
from windows_pipeline.dagster.assets.metadata import (
    Metadata,
    batch_metadata,
    correction_metadata,
    day_metadata,
    main_metadata,
    run_metadata,
)
from windows_pipeline.dagster.assets.plots import lateness_plots, size_plots
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.jobs import JobResult
from windows_pipeline.jobs.correction.run import CorrectionResult
from windows_pipeline.jobs.days.chain import all_jobs
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables
from windows_pipeline.streaming import BatchResult


class ResultEvents:
    """The events of jobs' results, as runs of the assets store them."""

    def __init__(
        self,
        tables: PipelineTables,
        settings: Settings,
        spark: SparkSession,
        instance: dg.DagsterInstance,
    ) -> None:
        """Takes what the jobs are of.

        Args:
            tables: The tables of the pipeline.
            settings: How its jobs run.
            spark: The session, to read alerts.
            instance: The instance, which knows the days of earlier runs.
        """
        self._spark = spark
        self._instance = instance
        self._pipeline = tables.pipeline
        self._of_pipeline = tables
        self._tables = {table.name: table for table in tables.written}
        self._mains = {job.tables[0].name for job in all_jobs(tables, settings)}
        self._plots = {tables.raw_events.name: lateness_plots(tables)}
        self._episodes: dict[str, EpisodeChecks] = {}
        for name in self._pipeline.windows:
            of_windows = tables.of(name)
            self._plots[of_windows.final_windows.name] = size_plots(of_windows)
            self._plots[of_windows.alerts.name] = plot_and_warnings(tables, name)
            self._episodes[of_windows.alerts.name] = EpisodeChecks(tables, name, settings)

    def of_job(self, name: str, result: JobResult, again: str | None = None) -> Iterator[Event]:
        """A job's checks and, if it published, a materialization of each table and day.

        Tables beside the first one have materializations of days with rows only.

        Args:
            name: The name of the job's first table, whose asset has the job's checks.
            result: The job's result.
            again: What to do again if it published nothing; by default the command.
        """
        if again is None:
            again = f"windows-pipeline rebuild {self._pipeline.name}"
            if self._pipeline.source.by_days:
                again = f"{run_again(self._pipeline, result.days)}; of a rebuild: {again}"
        checks = [*self._checks(name, result, again)]
        yield from checks
        for table_name in result.versions:
            table = self._tables.get(table_name)
            if table is not None:
                is_main = table_name == name
                first = episodes_by_day(checks) if is_main else {}
                yield from self._materializations(table, result, first, is_main=is_main)

    def of_correction(
        self, windows_name: str, result: CorrectionResult, cause: str
    ) -> Iterator[Event]:
        """The checks of a correction's jobs, and a materialization of each table and day.

        Days of corrections are those that the correction changed. Of other tables they are all that
        it computed again, so that a day is green once it is found right.
        """
        tables = self._of_pipeline.of(windows_name)
        counted = {table.name for table in (tables.final_windows, tables.alerts)}
        counts = correction_metadata(result, cause)
        again = "the same correction again"
        for name, of_job in result.results:
            yield from self._checks(name, of_job, again)
            for table_name in of_job.versions:
                table = self._tables.get(table_name)
                if table is None:
                    continue
                is_main, more = table_name == name, counts if table_name in counted else {}
                if table == tables.corrections:
                    yield from self._materializations(table, of_job, counts, list(counts))
                else:
                    yield from self._materializations(table, of_job, more, is_main=is_main)

    def of_batch(self, batch: BatchResult) -> Iterator[dg.AssetMaterialization]:
        """A materialization of each table and day that a micro-batch changed.

        It has no plots and counts, which take too long after each micro-batch.
        """
        for table in self._tables.values():
            yield from self._of_batches([batch], table, batch.arrival_units, {}, {})

    def of_stream(
        self, batches: Sequence[BatchResult], checked: Sequence[dg.AssetCheckEvaluation]
    ) -> Iterator[dg.AssetMaterialization]:
        """A materialization of each table and day that the micro-batches of a whole run changed.

        Args:
            batches: The micro-batches.
            checked: The checks of these days, whose episodes the alerts show.
        """
        days = sorted({day for batch in batches for day in batch.arrival_units})
        for table in self._tables.values() if days else ():
            counts: Metadata = {
                "dagster/row_count": dg.MetadataValue.int(table.count(self._spark)),
                "delta_version": dg.MetadataValue.int(table.version(self._spark)),
            }
            plots = self._plotted(table, days)
            first = episodes_by_day(one for one in checked if one.asset_key == asset_key(table))
            by_day = {day: {**first.get(day, {}), **plots.get(day, {})} for day in days}
            yield from self._of_batches(batches, table, days, by_day, counts)

    def of_checked(
        self, checked: Iterable[tuple[str, Sequence[CheckResult]]], days: Sequence[date]
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """The checks of published days of all jobs, each by the name of its first table."""
        for name, results in checked:
            yield from self.of_checks(name, results, days)
            yield from self.of_episodes(name, days)

    def of_episodes(
        self,
        name: str,
        days: Sequence[date] | None = None,
        names: Collection[str] | None = None,
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """The checks of episodes, if the table of the name is that of alerts.

        Args:
            name: The name of the table.
            days: The days; by default all computed days.
            names: The names of the checks; by default all.
        """
        if name in self._episodes:
            checks = self._episodes[name]
            every = checks.all_days(self._spark) if days is None else days
            yield from checks.evaluations(self._spark, every, names)

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
        days: Sequence[date],
        by_day: Mapping[date, Metadata],
        counts: Metadata,
    ) -> Iterator[dg.AssetMaterialization]:
        """A materialization of each day of a table that micro-batches changed.

        Args:
            batches: The micro-batches.
            table: The table; unless a job writes it first, only its days with rows count.
            days: The days that they changed.
            by_day: Metadata of single days.
            counts: Metadata of the whole table.
        """
        metadata = {
            **batch_metadata(batches),
            **column_lineage(self._of_pipeline, table),
            **counts,
        }
        if table.name not in self._mains:
            days = sorted(table.arrival_units(self._spark, days))
        for day in days:
            yield dg.AssetMaterialization(
                asset_key(table),
                partition=day.isoformat(),
                metadata={**by_day.get(day, {}), **metadata},
            )

    def _checks(
        self, name: str, result: JobResult, again: str
    ) -> Iterator[dg.AssetCheckEvaluation]:
        """A job's checks and, if it published alerts, the days' episodes.

        Args:
            name: The name of the job's first table.
            result: The job's result.
            again: What to do again if it published nothing.
        """
        days = sorted(result.days)
        then = (
            once_published(self._pipeline)
            if result.published
            else once_blocked(self._pipeline, again, result.checks)
        )
        yield from rules_evaluations(asset_key(self._tables[name]), result.checks, days, then)
        if result.published:
            yield from self.of_episodes(name, days)

    def _materializations(
        self,
        table: Table,
        result: JobResult,
        more: Mapping[date, Metadata] = MappingProxyType({}),
        only: Collection[date] | None = None,
        *,
        is_main: bool = False,
    ) -> Iterator[dg.AssetMaterialization]:
        """One materialization per day; the last one also has the whole table's metadata.

        Args:
            table: The table.
            result: The job's result.
            more: Metadata by day to show first.
            only: The days to report; by default those of the result.
            is_main: Whether it is the job's first table; others report only days that have rows.
        """
        if is_main or only is not None:
            reported = set(result.facts if only is None else only).intersection(result.facts)
        else:
            # Also the days of which Dagster shows that they once had rows.
            shown = self._instance.get_materialized_partitions(asset_key(table))
            rows = result.rows[table.name]
            reported = {d for d in result.facts if rows.get(d) or d.isoformat() in shown}
        days = sorted(reported)
        drawn = self._plotted(table, days)
        for day in days:
            metadata: Metadata = {**more.get(day, {})}
            if day == days[-1]:
                metadata |= run_metadata(table, result)
                metadata |= column_lineage(self._of_pipeline, table)
            metadata |= {**day_metadata(table, result, day), **drawn.get(day, {})}
            if is_main:
                metadata |= main_metadata(table, result, day)
            yield dg.AssetMaterialization(
                asset_key(table), metadata=metadata, partition=day.isoformat()
            )

    def _plotted(self, table: Table, days: Sequence[date]) -> Mapping[date, Metadata]:
        """The plots of a table's days; none of a table that is not plotted."""
        plots = self._plots.get(table.name)
        return {} if plots is None or not days else plots(self._spark, days)
