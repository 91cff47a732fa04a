"""Computes the firings of a micro-batch, with the engine of runs by days (rules E2, H1)."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.arrival.merge import Merge, Resumed
from windows_pipeline.engine.firings.kernel import AFTER
from windows_pipeline.incremental.closed_days import first_arrival_unit
from windows_pipeline.incremental.definition import Definition
from windows_pipeline.incremental.firings import Positions, position_column
from windows_pipeline.storage.fetched_rows import FetchedRows
from windows_pipeline.storage.table import Table
from windows_pipeline.streaming.scope import BatchScope
from windows_pipeline.text.instants import day_number


@dataclass(frozen=True)
class BatchFirings:
    """The firings of a window definition in a micro-batch.

    Attributes:
        definition: The definition.
        batch: The micro-batch's number.
        scope: The arrival units and close times of the micro-batch.
        before: The merge of the source partitions as it was before the micro-batch.
        after: The merge as it is after the micro-batch.
    """

    definition: Definition
    batch: int
    scope: BatchScope
    before: Merge
    after: Merge

    def compute(
        self, records: DataFrame, from_ms: int, closed: FetchedRows
    ) -> list[tuple[Table, DataFrame, int]]:
        """Computes the firings, and the early warnings and a function's rows that follow.

        Args:
            records: The records of the micro-batch, and earlier records that its windows need.
            from_ms: The event time from which on earlier records are included.
            closed: The windows that the micro-batch closed, as rows of final_windows with
                `_computed_day`.

        Returns:
            For each table, the rows to append and their number.
        """
        came_with = F.col(f"{AFTER}batch") == F.lit(self.batch)
        around = Positions(self.before.position, self.after.position)
        positions = {day_number(self.scope.arrival_units[-1]): around}
        rows = self.definition.firing_rows(
            records, positions, self._resumed(from_ms), came_with, closed.frame, self._placed
        )
        tables = [table for table in self.definition.tables.of_firings if table.short_name in rows]
        for table in tables[1:]:
            rows[table.short_name] = rows[table.short_name].localCheckpoint()
        found = [(table, rows[table.short_name]) for table in tables]
        return [(table, of_table, of_table.count()) for table, of_table in found]

    def _placed(self, fired: DataFrame) -> DataFrame:
        """Firings in their arrival units; computed, as each query would analyze the plan again."""
        return fired.withColumn("arrival_unit", self._arrival_unit()).localCheckpoint()

    def _resumed(self, from_ms: int) -> list[Resumed]:
        """The idle partitions that resumed in the arrival units that are read."""
        first = min(read.arrival_unit for read in self.scope.reads(from_ms))
        return [part for part in self.after.resumed if part.arrival_unit >= first]

    def _arrival_unit(self) -> Column:
        """The arrival unit of the micro-batch that merged the record after which a window fired."""
        position = F.struct("_stream_time_ms", F.col(f"{AFTER}_merged_as").alias("_merged_as"))
        with_records = self.scope.with_records
        merged = [
            (
                day,
                (F.col(f"{AFTER}arrival_unit") <= F.lit(day))
                & (position <= position_column(self.after.position_after[day])),
            )
            for day in self.scope.arrival_units[:-1]
            # A day without records merges nothing.
            if day in with_records
        ]
        return first_arrival_unit(merged, self.scope.arrival_units[-1])
