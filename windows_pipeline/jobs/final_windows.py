"""Publishes the windows that each unit closed: results that never change (rule E1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.engine.suppression import until_window_closes
from windows_pipeline.jobs.arrivals import units_frame
from windows_pipeline.jobs.job import Stage, StagedTable, kept, publish_in_order
from windows_pipeline.jobs.windows_job import WindowsJob
from windows_pipeline.quality.invariants import final_windows_checks
from windows_pipeline.quality.validation import Batch, Check
from windows_pipeline.tables.delta import Table, in_units


class FinalWindowsJob(WindowsJob):
    """Fills final_windows of one named window definition from its keyed_windows."""

    @property
    def inputs(self) -> list[Table]:
        """keyed_windows, late_records and arrival_log."""
        return [self.source.arrival_log, self.own.keyed_windows, self.own.late_records]

    @property
    def tables(self) -> list[Table]:
        """final_windows."""
        return [self.own.final_windows]

    @property
    def checks(self) -> list[Check]:
        """The checks of final windows."""
        return final_windows_checks()

    def _closed(self, spark: SparkSession, days: Sequence[date]) -> DataFrame:
        keyed = self.own.keyed_windows.read(spark).where(in_units(days))
        columns = [field.name for field in self.own.final_windows.schema]
        return until_window_closes(keyed).select(*columns)

    def stage(self, spark: SparkSession, days: Sequence[date]) -> Stage:
        """Takes the closed windows of the days."""
        closed = kept(self._closed(spark, days))
        return Stage([StagedTable(self.own.final_windows, closed)], [closed])

    def evidence(
        self, spark: SparkSession, days: Sequence[date], rows: Sequence[DataFrame]
    ) -> list[Batch]:
        """The windows beside their close times, and those that went, changed or came anew."""
        (final,) = rows
        units = units_frame(spark, self.arrivals(spark), days)
        closings = units.select("unit", "close_before_ms", "close_after_ms")
        sides = {
            "final": final,
            "published": self.own.final_windows.read(spark).where(in_units(days)),
            "closed": self._closed(spark, days),
        }
        alike = _counted_alike(sides, final.columns)
        bounds = {f"{name}_ms": F.unix_millis(name) for name in ("window_start", "window_end")}
        judged = alike.withColumns(bounds).join(F.broadcast(closings), "unit")
        return [Batch("final_windows", judged, judged, self.checks)]

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes final_windows."""
        return publish_in_order(days, stage.tables)


def _counted_alike(sides: Mapping[str, DataFrame], columns: Sequence[str]) -> DataFrame:
    """Each distinct row once, by its place and a hash of the rest, with each side's count."""
    place = ["unit", "key", "window_start", "window_end"]
    values = F.xxhash64(*[name for name in columns if name not in place])
    marked = [
        frame.select(*place, values.alias("values_hash"), F.lit(name).alias("side"))
        for name, frame in sides.items()
    ]
    counts = [F.count_if(F.col("side") == name).alias(f"in_{name}") for name in sides]
    return reduce(DataFrame.unionByName, marked).groupBy(*place, "values_hash").agg(*counts)
