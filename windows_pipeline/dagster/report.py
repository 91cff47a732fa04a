"""Reports what a command did to the Dagster instance, so that Dagster's UI shows it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import dagster as dg
from pyspark.sql import SparkSession

from windows_pipeline.config import Pipeline
from windows_pipeline.dagster.alerts import plot_and_warnings
from windows_pipeline.dagster.catalogue import column_lineage
from windows_pipeline.dagster.checks import rules_evaluations
from windows_pipeline.dagster.episodes import EpisodeChecks
from windows_pipeline.dagster.keys import asset_key
from windows_pipeline.dagster.metadata import Metadata, day_metadata, run_metadata
from windows_pipeline.jobs import JobResult
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import all_tables, window_tables


class InstanceReport:
    """Reports the results of a pipeline's jobs to the Dagster instance, job by job."""

    def __init__(
        self, home: Path, pipeline: Pipeline, settings: Settings, spark: SparkSession
    ) -> None:
        """Opens the instance of a folder.

        Args:
            home: The instance's folder, which has a `dagster.yaml`.
            pipeline: The pipeline.
            settings: Where its tables lie.
            spark: The session, to plot alerts.
        """
        # `DagsterInstance.get` takes the folder from nowhere else.
        os.environ["DAGSTER_HOME"] = str(home.resolve())
        self._instance = dg.DagsterInstance.get()
        self._spark = spark
        self._pipeline = pipeline
        self._warehouse = settings.warehouse
        self._tables = {table.name: table for table in all_tables(pipeline, settings.warehouse)}
        alerts = {
            name: window_tables(pipeline, name, settings.warehouse).alerts
            for name in pipeline.windows
        }
        self._plots = {
            table.name: plot_and_warnings(pipeline, name, settings)
            for name, table in alerts.items()
        }
        self._episodes = {
            table.name: EpisodeChecks(pipeline, name, table) for name, table in alerts.items()
        }

    def job(self, name: str, result: JobResult) -> None:
        """Reports a job's checks and, if it published, a materialization of each table and day.

        Args:
            name: The name of the job's first table, whose asset has the job's checks.
            result: The job's result.
        """
        main = asset_key(self._tables[name])
        days = sorted(result.days)
        for evaluation in rules_evaluations(main, result.checks, days):
            self._instance.report_runless_asset_event(evaluation)
        if not result.published:
            return
        if name in self._episodes:
            checks = self._episodes[name]
            names = [spec.name for spec in checks.specs]
            for evaluation in checks.evaluations(self._spark, days, names, result.facts):
                self._instance.report_runless_asset_event(evaluation)
        for table_name in result.versions:
            table = self._tables.get(table_name)
            if table is not None:
                for event in self._materializations(table, result):
                    self._instance.report_runless_asset_event(event)

    def _materializations(
        self, table: Table, result: JobResult
    ) -> Iterator[dg.AssetMaterialization]:
        """One materialization a day; the last one has what describes the whole table, too."""
        days = sorted(result.facts)
        for day in days:
            metadata: Metadata = {}
            if day == days[-1]:
                metadata |= run_metadata(table, result)
                metadata |= column_lineage(self._pipeline, table, self._warehouse)
                if table.name in self._plots:
                    metadata |= self._plots[table.name](self._spark, days)
            metadata |= day_metadata(table, result, day)
            yield dg.AssetMaterialization(
                asset_key(table), metadata=metadata, partition=day.isoformat()
            )


def open_report(
    pipeline: Pipeline, settings: Settings, spark: SparkSession
) -> InstanceReport | None:
    """Opens the Dagster instance of DAGSTER_HOME or, without it, of the settings.

    Returns:
        The report; None if there is no such instance.
    """
    named = os.environ.get("DAGSTER_HOME") or settings.dagster_home
    if named is None or not (Path(named) / "dagster.yaml").is_file():
        return None
    return InstanceReport(Path(named), pipeline, settings, spark)
