"""What every job does: nothing reaches a table's readers before its checks have passed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce
from typing import Protocol

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.checks.run import Batch, Check, CheckResult, import_ahead, validate
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.compat.spark_session import configured
from windows_pipeline.incremental.units import Facts
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table

_KEEPS_PLANS: ContextVar[bool] = ContextVar("_KEEPS_PLANS", default=True)
"""Whether the run of this thread keeps rows with the plan that made them."""

RowCounts = dict[str, dict[date, int]]
"""Rows by table name and unit; units without rows are left out."""


@dataclass(frozen=True)
class StagedTable:
    """A table's new rows, not published yet.

    Attributes:
        table: The table.
        rows: Its rows: persisted, or cheaply made of what is.
        many: How many these are; None where they were not counted.
    """

    table: Table
    rows: DataFrame
    many: int | None = None


@dataclass
class Stage:
    """What a job computed for some units.

    Attributes:
        tables: The new rows, in the order in which they are published.
        cached: Persisted frames, to let go of at the end.
    """

    tables: list[StagedTable]
    cached: list[DataFrame]

    def counted(self, rows: RowCounts) -> Stage:
        """The same, with the number of its rows."""
        tables = [replace(one, many=sum(rows[one.table.name].values())) for one in self.tables]
        return Stage(tables, self.cached)


@dataclass(frozen=True)
class JobResult:
    """What became of a job.

    Attributes:
        published: Whether the rows reached the tables.
        rows: How many rows each table got.
        versions: Delta versions by table name; empty where nothing was published.
        checks: What the checks found.
        facts: What is to be said of each unit; empty where nothing was published.
    """

    published: bool
    rows: RowCounts
    versions: dict[str, int]
    checks: list[CheckResult]
    facts: dict[date, Facts]


class Job(Protocol):
    """A job that fills the tables of one step of the chain."""

    @property
    def settings(self) -> Settings:
        """Where the tables lie, and how Spark runs."""
        ...

    @property
    def inputs(self) -> list[Table]:
        """The tables that it reads."""
        ...

    @property
    def tables(self) -> list[Table]:
        """The tables that it writes; the checks belong to the first."""
        ...

    @property
    def counted(self) -> list[Table]:
        """The tables of which the facts say how many rows each unit has; others' among them."""
        ...

    @property
    def notes(self) -> Table | None:
        """The notes of days that are computed once this job is done; None of an earlier step."""
        ...

    @property
    def checks(self) -> list[Check]:
        """All checks of its tables."""
        ...

    def arrived(self, spark: SparkSession) -> ArrivalLog:
        """The arrival log, as the rest of the job takes it; nothing if it is not read."""
        ...

    def records(self, days: Sequence[date], log: ArrivalLog) -> int:
        """About how many records some units brought; only Spark's settings follow from it."""
        ...

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        """Computes the rows of some units."""
        ...

    def evidence(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Sequence[DataFrame],
        log: ArrivalLog,
    ) -> list[Batch]:
        """The batches that its checks run on, for rows of its tables, in their order."""
        ...

    def recount(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Sequence[DataFrame],
        log: ArrivalLog,
    ) -> list[Batch]:
        """What is looked at only when published rows are checked, as it takes as long as a run."""
        ...

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes the rows; killed anywhere and run again, the tables are the same."""
        ...

    def facts(
        self, spark: SparkSession, days: Sequence[date], log: ArrivalLog, rows: RowCounts
    ) -> dict[date, Facts]:
        """What is to be said of each unit, once it is published.

        Args:
            spark: The session.
            days: The units.
            log: As `arrived` gave it.
            rows: How many rows there are of the job's tables, and of those in `counted`.
        """
        ...


def kept(rows: DataFrame) -> DataFrame:
    """Keeps rows that are used more than once; `Stage.cached` takes them.

    With the plan that made them, unless `sized_for` says otherwise: each further query looks
    through it again, which takes longer than to compute what is made of few rows. Without it rows
    are kept as they are, not by column, and until Spark sees that nothing refers to them.
    """
    if _KEEPS_PLANS.get():
        return rows.persist(StorageLevel.MEMORY_AND_DISK)
    return rows.localCheckpoint(eager=False)


@contextmanager
def sized_for(spark: SparkSession, settings: Settings, records: int) -> Iterator[None]:
    """Sets up Spark, and `kept`, for a run that brings so many records."""
    before = _KEEPS_PLANS.set(settings.keeps_plans(records))
    try:
        with configured(spark, settings.conf_for(records)):
            yield
    finally:
        _KEEPS_PLANS.reset(before)


def publish_in_order(days: Sequence[date], staged: Sequence[StagedTable]) -> dict[str, int]:
    """Publishes each table in turn; returns the versions by table name."""
    return {one.table.name: one.table.publish(one.rows, days, one.many) for one in staged}


def run_job(job: Job, spark: SparkSession, days: Sequence[date]) -> JobResult:
    """Stages, checks and, where no blocking check fails, publishes some units.

    Args:
        job: The job.
        spark: The session.
        days: The units to compute anew.

    Raises:
        DefinitionChangedError: A table holds rows of another definition.
        TableMissingError: A table that the job reads is not there.
    """
    import_ahead()
    for table in job.inputs:
        table.require(spark)
    for table in job.tables:
        table.create_if_missing(spark)
    log = job.arrived(spark)
    with sized_for(spark, job.settings, job.records(days, log)):
        return _run(job, spark, days, log)


def _run(job: Job, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> JobResult:
    stage = job.stage(spark, days, log)
    try:
        batches = job.evidence(spark, days, [staged.rows for staged in stage.tables], log)
        checks = _validate_all(batches)
        own = {staged.table.name: staged.rows for staged in stage.tables}
        others = [table for table in job.counted if table.name not in own]
        read = {table.name: table.of_units(spark, days) for table in others}
        counts = rows_by_unit(own | read)
        passed = all(result.passed or not result.check.blocking for result in checks)
        versions = job.publish(spark, days, stage.counted(counts)) if passed else {}
        facts = job.facts(spark, days, log, counts) if passed else {}
        if passed:
            _note(job, spark, facts)
        return JobResult(passed, {name: counts[name] for name in own}, versions, checks, facts)
    finally:
        for frame in stage.cached:
            frame.unpersist()


def _note(job: Job, spark: SparkSession, facts: Mapping[date, Facts]) -> None:
    """Notes that days are computed: those that wait for none."""
    done = sorted(day for day, of_day in facts.items() if "held_back_by" not in of_day)
    if job.notes is None or not done:
        return
    job.notes.create_if_missing(spark)
    new = sorted(set(done) - job.notes.units(spark, done))
    if new:
        frame = small_frame(spark, [(day,) for day in new], job.notes.schema)
        job.notes.publish(frame, new, len(new))


def check_published(
    job: Job, spark: SparkSession, days: Sequence[date], *, recount: bool = False
) -> list[CheckResult]:
    """Runs a job's checks on the rows that its tables hold for some units.

    Args:
        job: The job.
        spark: The session.
        days: The units.
        recount: Whether all values are computed again, too.
    """
    for table in [*job.inputs, *job.tables]:
        table.require(spark)
    log = job.arrived(spark)
    with sized_for(spark, job.settings, job.records(days, log)):
        rows = [table.of_units(spark, days) for table in job.tables]
        batches = job.evidence(spark, days, rows, log)
        if recount:
            batches += job.recount(spark, days, rows, log)
        return _validate_all(batches)


def rows_by_unit(rows: Mapping[str, DataFrame]) -> RowCounts:
    """How many rows each unit has, by name, in one job; units without any are left out."""
    units = [
        frame.select(F.lit(name).alias("name"), "arrival_unit") for name, frame in rows.items()
    ]
    counts: RowCounts = {name: {} for name in rows}
    for row in reduce(DataFrame.union, units).groupBy("name", "arrival_unit").count().collect():
        counts[row["name"]][row["arrival_unit"]] = row["count"]
    return counts


def published_days(job: Job, spark: SparkSession) -> list[date]:
    """The units that a job's tables hold rows of."""
    units = (table.read(spark).select("arrival_unit").distinct().collect() for table in job.tables)
    return sorted({row.arrival_unit for of_table in units for row in of_table})


def _validate_all(batches: Sequence[Batch]) -> list[CheckResult]:
    shared = [kept(batch.shared) for batch in batches if batch.shared is not None]
    try:
        return [result for batch in batches for result in validate(batch)]
    finally:
        for frame in shared:
            frame.unpersist()
