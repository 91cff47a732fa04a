"""Runs jobs: compute rows, check them, and publish them only if the checks pass."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from typing import Any, Protocol, Self, runtime_checkable

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.checks.run import (
    Batch,
    Check,
    CheckResult,
    import_ahead,
    judge,
    validate,
    verdicts_of,
)
from windows_pipeline.compat.local_frame import small_table
from windows_pipeline.compat.spark_session import configured
from windows_pipeline.incremental.arrival_units import Facts
from windows_pipeline.settings import Settings
from windows_pipeline.sources.bad_files import BadFileError, naming_bad_files
from windows_pipeline.storage.gathered import gather
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables

_KEEPS_PLANS: ContextVar[bool] = ContextVar("_KEEPS_PLANS", default=True)
"""Whether cached rows of this thread's run keep the plan that made them."""
_ARE_FEW: ContextVar[bool] = ContextVar("_ARE_FEW", default=False)
"""Whether this thread's run is of few records."""

RowCounts = dict[str, dict[date, int]]
"""The number of rows by table name and day; days without rows are left out."""
Rows = Mapping[str, DataFrame]
"""The rows of a job's tables, by the tables' short names."""


@dataclass(frozen=True)
class StagedTable:
    """New rows of a table that are not published yet.

    Attributes:
        table: The table.
        rows: Its rows: a cached frame, or a frame that is cheap to derive from a cached frame.
        row_count: How many rows; None if they were not counted.
        gathered: The same rows on the driver, if they are few; else None.
    """

    table: Table
    rows: DataFrame
    row_count: int | None = None
    gathered: pa.Table | None = None

    def publish(self, days: Sequence[date]) -> int:
        """Replaces the table's rows of some days; returns the version."""
        return self.table.publish(self.rows, days, self.row_count, self.gathered)

    def replace(self, where: str) -> int:
        """Replaces the table's rows that meet a condition; returns the version."""
        return self.table.replace(self.rows, where, self.gathered)

    def publish_new(self, days: Sequence[date]) -> int:
        """Publishes the days that the table has no rows of; returns the version."""
        return self.table.publish_new(self.rows, days, self.row_count, self.gathered)


@dataclass
class Stage:
    """The rows that a job computed for some days.

    Attributes:
        tables: The new rows, by the tables' short names.
        cached: The cached frames, to unpersist at the end.
        require_unchanged: Requires that the landed files are still what was read.
    """

    tables: dict[str, StagedTable]
    cached: list[DataFrame]
    require_unchanged: Callable[[], None] = lambda: None

    @staticmethod
    def of(tables: Iterable[Table], rows: Rows, cached: Sequence[DataFrame]) -> Stage:
        """Stages the rows of some tables.

        Args:
            tables: The tables.
            rows: The rows of each of them.
            cached: The cached frames.
        """
        staged = {table.short_name: StagedTable(table, rows[table.short_name]) for table in tables}
        return Stage(staged, list(cached))

    @property
    def rows(self) -> Rows:
        """The rows of each table."""
        return {name: staged.rows for name, staged in self.tables.items()}

    def collected(
        self, verdicts: DataFrame, *, are_few: bool = False
    ) -> tuple[Stage, RowCounts, pa.Table]:
        """The same stage with the number of rows of each table.

        Args:
            verdicts: Rows to collect besides.
            are_few: Whether to try to bring all rows to the driver in one query.

        Returns:
            The stage, the rows by table and day, and the rows of `verdicts`.
        """
        new = [(staged.table, staged.rows) for staged in self.tables.values()]
        found = gather(new, [verdicts]) if are_few else None
        if found is None:
            tables, judged = self.tables, verdicts.toArrow()
            counts = rows_by_arrival_unit({table.name: rows for table, rows in new})
        else:
            *gathered, judged = found
            pairs = zip(self.tables.items(), gathered, strict=True)
            tables = {name: replace(staged, gathered=rows) for (name, staged), rows in pairs}
            counts = {
                staged.table.name: _by_arrival_unit(rows)
                for staged, rows in zip(tables.values(), gathered, strict=True)
            }
        counted = {
            name: replace(staged, row_count=sum(counts[staged.table.name].values()))
            for name, staged in tables.items()
        }
        return replace(self, tables=counted), counts, judged


@dataclass(frozen=True)
class JobResult:
    """The result of a job.

    Attributes:
        days: The days that the job computed.
        published: Whether the rows were published.
        rows: How many rows the job computed for each table and day.
        versions: Delta versions by table name; empty if nothing was published.
        checks: The results of the checks.
        facts: What to report of each day; empty if nothing was published.
        seconds: How long the job took.
    """

    days: Sequence[date]
    published: bool
    rows: RowCounts
    versions: dict[str, int]
    checks: list[CheckResult]
    facts: dict[date, Facts]
    seconds: float


class Job(Protocol):
    """A job that fills the tables of one step of the chain."""

    @property
    def of_pipeline(self) -> PipelineTables:
        """The tables of the pipeline."""
        ...

    @property
    def settings(self) -> Settings:
        """Where the tables lie, and how Spark runs."""
        ...

    @property
    def inputs(self) -> list[Table]:
        """The tables that the job reads."""
        ...

    @property
    def tables(self) -> list[Table]:
        """The tables that the job writes; the checks are shown with the first of them."""
        ...

    @property
    def counted_tables(self) -> list[Table]:
        """The tables whose rows `facts` counts; other jobs may write some of them."""
        ...

    @property
    def computed_days_table(self) -> Table | None:
        """The table of computed days, if this job is the last step that computes them; or None."""
        ...

    @property
    def checks(self) -> list[Check]:
        """All checks of the job's tables."""
        ...

    def starting_over(self) -> Self:
        """The same job, for a rebuild: the tables' old rows count for nothing; see `Table`."""
        ...

    def for_run(self) -> Self:
        """The same job for one run: it lists what has landed once, as it is then."""
        ...

    def arrived(self, spark: SparkSession) -> ArrivalLog:
        """Reads the arrival log, which the job's other methods take."""
        ...

    def estimated_records(self, days: Sequence[date], log: ArrivalLog) -> int:
        """About how many records some days brought; Spark's settings depend on the number."""
        ...

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        """Computes the rows of some days."""
        ...

    def check_batches(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Rows,
        log: ArrivalLog,
    ) -> list[Batch]:
        """The frames that the checks look at, made of the rows of each table."""
        ...

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes the rows; a job that was killed and is run again ends in the same tables."""
        ...

    def facts(
        self, spark: SparkSession, days: Sequence[date], log: ArrivalLog, rows: RowCounts
    ) -> dict[date, Facts]:
        """What to report of each day once it is published.

        Args:
            spark: The session.
            days: The days.
            log: The arrival log that `arrived` returned.
            rows: The row counts of the job's tables and of `counted_tables`.
        """
        ...


@runtime_checkable
class Recounts(Protocol):
    """A job whose values checks can compute again, which takes as long as the job itself."""

    def recount(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Rows,
        log: ArrivalLog,
    ) -> list[Batch]:
        """Computes the published rows again; returns frames to check, like `check_batches`."""
        ...


@runtime_checkable
class LeavesOutFiles(Protocol):
    """A job that reads landed files, and may go on without bad files (rule A8)."""

    def without(self, error: BadFileError) -> Job | None:
        """The same job without the files of an error; None if the error is to end the job."""
        ...


def cache_rows(rows: DataFrame) -> DataFrame:
    """Caches rows that are used more than once; put them into `Stage.cached`.

    By default the rows keep the plan that made them, which every further query analyzes again.
    For few rows that takes longer than the query itself, so `sized_for` may say to cut the plan
    off: Spark then stores rows instead of columns, and frees them once nothing refers to them.
    """
    if _KEEPS_PLANS.get():
        return rows.persist(StorageLevel.MEMORY_AND_DISK)
    return rows.localCheckpoint(eager=False)


class CachedRows(list[DataFrame]):
    """The cached frames of a stage."""

    def keep(self, rows: DataFrame) -> DataFrame:
        """Caches rows; see `cache_rows`."""
        self.append(cache_rows(rows))
        return self[-1]


@contextmanager
def sized_for(spark: SparkSession, settings: Settings, records: int) -> Iterator[None]:
    """Configures Spark and `cache_rows` for a run of a number of records."""
    keeps_plans = _KEEPS_PLANS.set(settings.keeps_plans(records))
    are_few = _ARE_FEW.set(settings.are_few(records))
    try:
        with configured(spark, settings.conf_for(records)):
            yield
    finally:
        _KEEPS_PLANS.reset(keeps_plans)
        _ARE_FEW.reset(are_few)


def publish_in_order(days: Sequence[date], staged: Iterable[StagedTable]) -> dict[str, int]:
    """Publishes one table after the other; returns the versions by table name."""
    return {new.table.name: new.publish(days) for new in staged}


def run_job(job: Job, spark: SparkSession, days: Sequence[date]) -> JobResult:
    """Computes and checks the rows of some days, and publishes them if no blocking check fails.

    Args:
        job: The job.
        spark: The session.
        days: The days to compute.

    Raises:
        BadFileError: The job reads landed files, some are bad, and the job does not leave bad
            files out (rule A8); nothing is published.
        DefinitionChangedError: A table holds rows of another definition.
        TableMissingError: A table that the job reads does not exist.
    """
    import_ahead()
    for table in job.inputs:
        table.require(spark)
    for table in job.tables:
        table.create_if_missing(spark)
    log = job.arrived(spark)
    while True:
        sized = sized_for(spark, job.settings, job.estimated_records(days, log))
        try:
            with naming_bad_files(), sized:
                return _run(job, spark, days, log)
        except BadFileError as error:
            # Some bad files are found only by a task, one at a time.
            fewer = job.without(error) if isinstance(job, LeavesOutFiles) else None
            if fewer is None:
                raise
            job = fewer


def _run(job: Job, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> JobResult:
    begun = time.monotonic()
    stage = job.stage(spark, days, log)
    try:
        try:
            batches = job.check_batches(spark, days, stage.rows, log)
            with verdicts_of(batches) as verdicts:
                staged, rows, judged = stage.collected(verdicts, are_few=_ARE_FEW.get())
        finally:  # of a file that changed, a read or a check may fail
            stage.require_unchanged()
        checks = judge(batches, judged)
        passed = all(result.passed or not result.check.blocking for result in checks)
        versions = job.publish(spark, days, staged) if passed else {}
        others = [table for table in job.counted_tables if table.name not in rows]
        stored = {table.name: table.rows_by_arrival_unit(spark, days) for table in others}
        facts = job.facts(spark, days, log, rows | stored) if passed else {}
        if passed:
            _store_computed_days(job, spark, facts)
        seconds = time.monotonic() - begun
        return JobResult(days, passed, rows, versions, checks, facts, seconds)
    finally:
        for frame in stage.cached:
            frame.unpersist()


def _store_computed_days(job: Job, spark: SparkSession, facts: Mapping[date, Facts]) -> None:
    """Stores which days are computed; days that are blocked by a missing day are not."""
    done = sorted(day for day, of_day in facts.items() if "blocked_by" not in of_day)
    table = job.computed_days_table
    if table is None or not done:
        return
    table.create_if_missing(spark)
    new = sorted(set(done) - table.arrival_units(spark, done))
    if new:
        rows = small_table([(day,) for day in new], table.schema)
        gathered = rows if table.is_written_by_driver(spark) else None
        frame = spark.createDataFrame(rows, table.schema)
        table.publish(frame, new, len(new), gathered)


def check_published(
    job: Job, spark: SparkSession, days: Sequence[date], *, recount: bool = False
) -> list[CheckResult]:
    """Runs a job's checks on the published rows of some days.

    Args:
        job: The job.
        spark: The session.
        days: The days.
        recount: Whether to compute all values again and compare them, too.
    """
    for table in [*job.inputs, *job.tables]:
        table.require(spark)
    log = job.arrived(spark)
    sized = sized_for(spark, job.settings, job.estimated_records(days, log))
    with naming_bad_files(), sized:
        rows = {table.short_name: table.of_arrival_units(spark, days) for table in job.tables}
        batches = job.check_batches(spark, days, rows, log)
        if recount and isinstance(job, Recounts):
            batches += job.recount(spark, days, rows, log)
        return validate(batches)


def rows_by_arrival_unit(rows: Mapping[str, DataFrame]) -> RowCounts:
    """Counts the rows of each frame by day, in one Spark job; days without rows are left out."""
    arrival_units = [
        frame.select(F.lit(name).alias("name"), "arrival_unit") for name, frame in rows.items()
    ]
    counts: RowCounts = {name: {} for name in rows}
    for row in (
        reduce(DataFrame.union, arrival_units).groupBy("name", "arrival_unit").count().collect()
    ):
        counts[row["name"]][row["arrival_unit"]] = row["count"]
    return counts


def _by_arrival_unit(rows: pa.Table) -> dict[date, int]:
    """The number of rows of each day."""
    found: list[dict[str, Any]] = rows["arrival_unit"].value_counts().to_pylist()
    return {of_day["values"]: of_day["counts"] for of_day in found}


def published_days(job: Job, spark: SparkSession) -> list[date]:
    """The days of which a job's tables hold rows."""
    return sorted(set().union(*(table.arrival_units(spark) for table in job.tables)))
