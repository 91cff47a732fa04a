"""The base of all jobs that compute a table of one window definition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession

from windows_pipeline.arrival.log import ArrivalLog, read_log
from windows_pipeline.config import Pipeline
from windows_pipeline.config import Windows as WindowsConfig
from windows_pipeline.incremental.alerts import RuleSql
from windows_pipeline.incremental.units import Arrivals, Facts, arrivals_of, day_facts
from windows_pipeline.jobs.correction_marker import CorrectionUnfinishedError, unfinished_correction
from windows_pipeline.jobs.job import RowCounts
from windows_pipeline.jobs.raw_rows import require_raw_rows
from windows_pipeline.jobs.unfinished_batch import BatchUnfinishedError, require_finished_batch
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import (
    SourceTables,
    WindowTables,
    source_tables,
    window_tables,
)


@dataclass(frozen=True)
class WindowsJob:
    """A job of a window definition, with the tables of the definition and of its source."""

    pipeline: Pipeline
    windows_name: str
    settings: Settings

    @property
    def windows(self) -> WindowsConfig:
        """The definition."""
        return self.pipeline.windows[self.windows_name]

    @property
    def correct_command(self) -> str:
        """The command that corrects these windows, without days and cause."""
        return f"windows-pipeline correct {self.pipeline.name} --windows {self.windows_name}"

    @property
    def source(self) -> SourceTables:
        """The tables of the pipeline's source."""
        return source_tables(self.pipeline, self.settings.warehouse)

    @property
    def window_tables(self) -> WindowTables:
        """The tables of the definition."""
        return window_tables(self.pipeline, self.windows_name, self.settings.warehouse)

    @property
    def tables(self) -> list[Table]:
        """The tables that the job writes."""
        raise NotImplementedError

    @property
    def notes(self) -> Table | None:
        """None, as later steps follow."""
        return None

    @property
    def counted(self) -> list[Table]:
        """late_records, whichever job writes it."""
        return [self.window_tables.late_records]

    @property
    def rules(self) -> dict[str, RuleSql]:
        """The alert rules as SQL for Spark."""
        columns = self.windows.result_columns(self.pipeline.source)
        return {
            name: RuleSql(rule.when_sql(columns), rule.severity_sql(columns))
            for name, rule in self.windows.alerts.items()
        }

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
        of_stream = (spark, self.pipeline, self.settings.warehouse, log)
        try:
            require_finished_batch(*of_stream)
        except BatchUnfinishedError:
            if not self.is_alone(spark):
                raise
            require_finished_batch(*of_stream, alone=True)

    def is_alone(self, spark: SparkSession) -> bool:
        """Whether every micro-batch is refused, as the tables are being rebuilt."""
        return any(table.is_emptied(spark) for table in self.tables)

    def arrived(self, spark: SparkSession) -> ArrivalLog:
        """The arrival log."""
        return read_log(spark, self.source.arrival_log)

    def records(self, days: Sequence[date], log: ArrivalLog) -> int:
        """How many records the days brought, by the log."""
        wanted = set(days)
        of_days = [row for row in log if row.arrival_unit in wanted]
        # `unit_rejected` counts a whole unit or micro-batch, and stands in each of its rows.
        rejected = {(row.arrival_unit, row.batch): row.unit_rejected for row in of_days}
        return sum(row.rows for row in of_days) + sum(rejected.values())

    def raw_records(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> DataFrame:
        """The records that the windows of some days need; see `records_to_read`.

        Raises:
            RawRowsMissingError: raw_events lacks some of these records.
        """
        arrivals, raw = self.arrivals(log), self.source.raw_events
        rows = raw.read(spark)
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
