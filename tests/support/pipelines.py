"""Runs pipelines through real Dagster runs, for tests."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

import dagster as dg
import yaml
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from definitions import build_definitions
from tests.support.stored_rows import stored_rows
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.dagster import asset_key, range_tags
from windows_pipeline.jobs import Job
from windows_pipeline.jobs.days.chain import window_jobs
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables, WindowTables, tables_of

ROOT = Path(__file__).parents[2]
FIRST_DAY = date(2013, 1, 1)
DAYS = 3
SHORT_GRACE = "75 minutes"
"""Makes windows close and records come late within a few days."""
LONGER_GRACE = "2 hours"
SELECTED = ("raw_events", "keyed_windows", "final_windows", "alerts")
"""The tables whose assets a run may select; a step reports its other tables."""
DERIVED = (
    *("keyed_windows", "late_records", "failed_windows"),
    *("final_windows", "alerts", "episodes"),
)


def day(number: int) -> date:
    """The day of a number, from 1."""
    return FIRST_DAY + timedelta(days=number - 1)


def settings_in(folder: Path, base: Settings) -> Settings:
    """The settings with a folder of their own for files and tables."""
    folders = {
        "warehouse": str(folder / "warehouse"),
        "landing": str(folder),
        "pipelines": folder / "pipelines",
    }
    return base.model_copy(update=folders)


@dataclass
class Project:
    """A project folder of its own: landed files, pipeline files, a warehouse."""

    folder: Path
    base: Settings

    @property
    def settings(self) -> Settings:
        return settings_in(self.folder, self.base)

    @property
    def pipeline(self) -> Pipeline:
        return load_pipeline(self.folder / "pipelines" / "flights.yaml")

    @property
    def source(self) -> PipelineTables:
        return tables_of(self.pipeline, self.settings.warehouse)

    @property
    def windows(self) -> WindowTables:
        return self.source.of("hourly")

    @property
    def tables_by_name(self) -> dict[str, Table]:
        """The tables that every pipeline has, by their short names."""
        tables = (*self.source.of_source, *self.windows.of_every_definition)
        return {table.short_name: table for table in tables}

    def land(self, flights: Path, days: int) -> None:
        """Takes the first days of the landed year."""
        for number in range(1, days + 1):
            name = day(number).isoformat()
            shutil.copytree(flights / name, self.folder / "data" / "flights" / name)

    def declare(self, *, stream: bool = False, **changes: object) -> None:
        """Writes pipelines/flights.yaml with `hourly` alone, and fields of it changed."""
        declared = yaml.safe_load((ROOT / "pipelines" / "flights.yaml").read_text())
        if stream:
            declared["source"]["stream"] = True
        declared["windows"] = {"hourly": declared["windows"]["hourly"] | changes}
        file = self.folder / "pipelines" / "flights.yaml"
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(yaml.safe_dump(declared))

    def write_settings(self) -> None:
        """Writes settings.yaml, for commands in the project's folder."""
        settings = self.base.model_dump(mode="json")
        settings |= {"warehouse": "warehouse", "landing": ".", "pipelines": "pipelines"}
        (self.folder / "settings.yaml").write_text(yaml.safe_dump(settings))

    def run(self, first: int, last: int, *tables: str) -> dg.ExecuteInProcessResult:
        """Materializes the tables' assets (all if none is named) for a range of days."""
        defs = build_definitions(self.settings)
        names = {
            "raw_events": self.source.raw_events,
            **{name: getattr(self.windows, name) for name in DERIVED},
        }
        # No run selects the tables that a step writes beside its first one.
        keys = [asset_key(names[name]) for name in tables or names if name in SELECTED]
        with dg.DagsterInstance.ephemeral() as instance:
            every = defs.resolve_job_def("flights_all")
            # As the whole job, which plans no checks; steps evaluate theirs in any case.
            job = every.get_subset(asset_selection=set(keys), asset_check_selection=set())
            return job.execute_in_process(
                instance=instance,
                tags=range_tags(day(first).isoformat(), day(last).isoformat()),
                raise_on_error=False,
            )

    def compute_unchecked(self, spark: SparkSession) -> None:
        """Computes every derived table, without checks and without Dagster."""
        days = [day(number) for number in range(1, DAYS + 1)]
        for job in window_jobs(self.source, "hourly", self.settings):
            write_unchecked(job, spark, days)

    def rows(self, table: str) -> list[tuple[object, ...]]:
        """All rows of a derived table, sorted; as text, in which different bits differ."""
        found = stored_rows(getattr(self.windows, table))
        return sorted(tuple(repr(value) for value in row) for row in found)

    def all_rows(self) -> dict[str, list[tuple[object, ...]]]:
        """The rows of every derived table."""
        return {table: self.rows(table) for table in DERIVED}

    def copy(self, folder: Path, *, derived: bool) -> Project:
        """A project of the same files, definition and tables, with or without derived ones."""
        for name in ("pipelines", "data"):
            shutil.copytree(self.folder / name, folder / name)
        tables = self.source.of_source
        if derived:
            tables += self.windows.of_every_definition
        for table in tables:
            table_folder = Path(table.location).relative_to(self.folder)
            shutil.copytree(self.folder / table_folder, folder / table_folder)
        return Project(folder, self.base)


def write_unchecked(job: Job, spark: SparkSession, days: Sequence[date]) -> None:
    """Publishes what a job computes, whatever its checks would say."""
    for table in job.tables:
        table.create_if_missing(spark)
    job.publish(spark, days, job.stage(spark, days, job.arrived(spark)))


def version_of(spark: SparkSession, table: Table) -> int:
    """The newest version of a table, by its history."""
    history = DeltaTable.forPath(spark, table.location).history(1)
    return int(history.select("version").collect()[0][0])


def materializations(result: dg.ExecuteInProcessResult) -> list[dg.AssetMaterialization]:
    """The materializations of a run, one per partition."""
    return [
        event.step_materialization_data.materialization
        for event in result.all_events
        if event.is_step_materialization
    ]


def failed_checks(result: dg.ExecuteInProcessResult) -> set[str]:
    """The names of the rules of tables that failed in a run, on any day."""
    return {
        name
        for evaluation in result.get_asset_check_evaluations()
        if not evaluation.passed and evaluation.check_name == "rules" and evaluation.partition
        for name in str(evaluation.metadata["failed_rules"].value).split(", ")
    }
