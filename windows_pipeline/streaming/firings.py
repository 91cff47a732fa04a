"""The firings that a micro-batch brought, by the engine that batches use (rules E2, H1)."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.arrival.merge import Merge, Waking
from windows_pipeline.engine.firings.kernel import AFTER
from windows_pipeline.incremental.early_warnings import early_warnings
from windows_pipeline.incremental.firings import Reached, place_column
from windows_pipeline.incremental.records import target_of
from windows_pipeline.jobs.firings import FiringsJob
from windows_pipeline.storage.fetched_rows import KeptRows
from windows_pipeline.storage.table import Table
from windows_pipeline.streaming.first_unit import first_unit
from windows_pipeline.streaming.scope import BatchScope


@dataclass(frozen=True)
class BatchFirings:
    """The firings of one definition around a micro-batch.

    Attributes:
        job: The definition and its tables.
        batch: The micro-batch's number.
        scope: What it concerns.
        before: How far the merge of the source partitions had come before it.
        after: The same after it.
    """

    job: FiringsJob
    batch: int
    scope: BatchScope
    before: Merge
    after: Merge

    def compute(
        self, records: DataFrame, from_ms: int, closed: KeptRows
    ) -> list[tuple[Table, DataFrame, int]]:
        """Computes them, and the early warnings that they and closed windows make.

        Args:
            records: What the definition's windows need around the micro-batch.
            from_ms: From which event time on earlier ones are there.
            closed: The windows that it closed, as rows of final_windows with `_computed_day`.

        Returns:
            Tables, and the rows that each gets, with how many these are.
        """
        job = self.job
        came_with = F.col(f"{AFTER}batch") == F.lit(self.batch)
        reached = Reached(self.before.reached, self.after.reached)
        targets = {target_of(self.scope.units[-1]): reached}
        found = job.fired(records, targets, self._wakings(from_ms), came_with)
        # Without the plan that made them: each further query would look through it again.
        fired = found.withColumn("arrival_unit", self._unit()).localCheckpoint()
        own = fired.where("_is_new")
        appends = [(job.fires.firings, own, own.count())]
        if job.warns_in is not None:
            warnings = early_warnings(fired, closed.frame, job.rules).localCheckpoint()
            appends.append((job.warns_in, warnings, warnings.count()))
        return appends

    def _wakings(self, from_ms: int) -> list[Waking]:
        """Those of the units that are read."""
        first = min(read.arrival_unit for read in self.scope.reads(from_ms))
        return [waking for waking in self.after.wakings if waking.arrival_unit >= first]

    def _unit(self) -> Column:
        """The micro-batch's unit that merged the record after which a window fired."""
        place = F.struct("_stream_time_ms", F.col(f"{AFTER}merged_as").alias("merged_as"))
        with_records = self.scope.with_records
        merged = [
            (
                day,
                (F.col(f"{AFTER}arrival_unit") <= F.lit(day))
                & (place <= place_column(self.after.reached_after[day])),
            )
            for day in self.scope.units[:-1]
            # A day that brought nothing merges nothing.
            if day in with_records
        ]
        return first_unit(merged, self.scope.units[-1])
