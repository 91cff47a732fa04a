"""The base of all jobs that compute a table of one window definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from windows_pipeline.arrival.log import ArrivalLog, read_log
from windows_pipeline.config import Pipeline, Windows
from windows_pipeline.incremental.arrival_units import Arrivals, Facts, arrivals_of, day_facts
from windows_pipeline.incremental.definition import Definition
from windows_pipeline.incremental.definition_records import passing
from windows_pipeline.jobs.correction_marker import CorrectionUnfinishedError, unfinished_correction
from windows_pipeline.jobs.job import RowCounts
from windows_pipeline.jobs.raw_rows import require_raw_rows
from windows_pipeline.jobs.unfinished_batch import logged_rows, require_finished_batch
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables, WindowTables


@dataclass(frozen=True)
class WindowsJob:
    """A job of a window definition, with the tables of the definition and of its source.

    Attributes:
        of_pipeline: The tables of the pipeline.
        windows_name: The definition's name.
        settings: Where the tables lie, and how Spark runs.
        starts_over: Whether the job computes its tables again from the start; see `Table`.
    """

    of_pipeline: PipelineTables
    windows_name: str
    settings: Settings
    starts_over: bool = field(default=False, kw_only=True)

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline."""
        return self.of_pipeline.pipeline

    @property
    def windows(self) -> Windows:
        """The definition."""
        return self.pipeline.windows[self.windows_name]

    @cached_property
    def definition(self) -> Definition:
        """The definition, which computes the rows."""
        return Definition(self.window_tables, self.settings.tuning)

    @property
    def window_tables(self) -> WindowTables:
        """The tables of the definition."""
        return self.of_pipeline.of(self.windows_name)

    @property
    def tables(self) -> list[Table]:
        """The tables that the job writes."""
        raise NotImplementedError

    def written(self, *tables: Table) -> list[Table]:
        """Those of some tables that the pipeline writes, as this job writes them."""
        there = [table for table in tables if table.is_written]
        return [replace(table, starts_over=True) for table in there] if self.starts_over else there

    def for_run(self) -> Self:
        """This job, which reads tables alone."""
        return self

    def starting_over(self) -> Self:
        """The same job, for a rebuild of its tables."""
        return replace(self, starts_over=True)

    @property
    def computed_days_table(self) -> Table | None:
        """None, because later steps follow."""
        return None

    @property
    def counted_tables(self) -> list[Table]:
        """late_records, whichever job writes it."""
        return [self.window_tables.late_records]

    @property
    def result_columns(self) -> dict[str, str]:
        """The types of the windows' results, by column."""
        return self.definition.result_columns

    def refuse_while_correcting(self, spark: SparkSession) -> None:
        """Refuses to write while a correction of these windows is not finished.

        Raises:
            CorrectionUnfinishedError: A correction is not finished.
        """
        unfinished = unfinished_correction(spark, self.window_tables.corrections)
        if unfinished is not None:
            raise CorrectionUnfinishedError(self.window_tables.corrections, unfinished)

    def refuse_while_unfinished(self, spark: SparkSession, log: ArrivalLog) -> None:
        """Refuses to write while a correction or a micro-batch is not finished.

        Raises:
            CorrectionUnfinishedError: A correction of these windows is not finished.
            BatchUnfinishedError: The stream's last micro-batch is not in all tables.
        """
        self.refuse_while_correcting(spark)
        # While tables are rebuilt micro-batches are refused, and the rebuild says which count.
        stored = [table for table in self.tables if table.exists(spark)]
        if not self.starts_over and not any(table.is_replaced(spark) for table in stored):
            require_finished_batch(spark, self.of_pipeline, log)

    def arrived(self, spark: SparkSession) -> ArrivalLog:
        """The arrival log."""
        return read_log(spark, self.of_pipeline.arrival_log)

    def estimated_records(self, days: Sequence[date], log: ArrivalLog) -> int:
        """How many records the days brought, by the log."""
        wanted = set(days)
        of_days = [row for row in log if row.arrival_unit in wanted]
        # `arrival_unit_rejected` counts a whole day or micro-batch, and stands in each of its rows.
        rejected = {(row.arrival_unit, row.batch): row.arrival_unit_rejected for row in of_days}
        return sum(row.rows for row in of_days) + sum(rejected.values())

    def raw_records(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> DataFrame:
        """The records that the windows of some days need; see `records_to_read`.

        Records that do not pass the definition's filter are left out; `marked_records` has them.

        Raises:
            RawRowsMissingError: raw_events lacks some of these records.
        """
        return passing(self.marked_records(spark, days, log))

    def logged_records(self, spark: SparkSession, log: ArrivalLog) -> DataFrame:
        """All records of raw_events that the log has, marked by the definition's filter."""
        return self.definition.marked_records(
            logged_rows(self.of_pipeline.raw_events.read(spark), log)
        )

    def marked_records(
        self, spark: SparkSession, days: Sequence[date], log: ArrivalLog
    ) -> DataFrame:
        """The records that the windows of some days need, marked by the definition's filter.

        Raises:
            RawRowsMissingError: raw_events lacks some of these records.
        """
        arrivals, raw = self.arrivals(log), self.of_pipeline.raw_events
        rows = self.logged_records(spark, log)
        reads = arrivals.reads(rows, days)
        require_raw_rows(spark, self.pipeline, raw, log, {read.arrival_unit for read in reads})
        return arrivals.records_of(rows, days, reads)

    def arrivals(self, log: ArrivalLog) -> Arrivals:
        """The arrivals, with the close times of the definition's windows."""
        return arrivals_of(self.pipeline, log, self.windows.spec)

    def facts(
        self, spark: SparkSession, days: Sequence[date], log: ArrivalLog, rows: RowCounts
    ) -> dict[date, Facts]:
        """The numbers of late and rejected records, and how far each day closed windows."""
        facts = day_facts(self.arrivals(log), days)
        late = rows[self.window_tables.late_records.name]
        return {day: facts[day] | {"late": late.get(day, 0)} for day in days}
