"""Raises alerts on final windows, and joins overlapping alerts to episodes (rule E5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog
from windows_pipeline.checks.compare import arrival_units_that_differ, copies_by_frame
from windows_pipeline.checks.notification_rules import notification_checks, notifications_to_check
from windows_pipeline.checks.run import Batch, Check
from windows_pipeline.checks.table_rules import (
    ALERTS_NEVER_CHANGED,
    alerts_checks,
    alerts_history_checks,
)
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.incremental.alerts import standing
from windows_pipeline.incremental.arrival_units import arrival_units_frame
from windows_pipeline.incremental.definition_records import passing
from windows_pipeline.incremental.whole_episodes import WholeEpisodes
from windows_pipeline.jobs.computed_days import computed_days_in
from windows_pipeline.jobs.job import CachedRows, Rows, Stage, published_days
from windows_pipeline.jobs.windows_job import WindowsJob
from windows_pipeline.storage.diff import differences
from windows_pipeline.storage.instants import with_milliseconds
from windows_pipeline.storage.table import Table


class AlertsJob(WindowsJob):
    """Fills alerts of a window definition from its final_windows."""

    @property
    def inputs(self) -> list[Table]:
        """final_windows, and raw_events and the log for episodes that began earlier."""
        source = self.of_pipeline
        return [
            source.raw_events,
            source.arrival_log,
            self.window_tables.late_records,
            self.window_tables.final_windows,
        ]

    @property
    def tables(self) -> list[Table]:
        """Alerts, their episodes, and notifications if the pipeline notifies anybody."""
        tables = self.window_tables
        return self.written(tables.alerts, tables.episodes, tables.notifications)

    @property
    def computed_days_table(self) -> Table:
        """The computed days of windows, of which alerts are the last step."""
        return self.window_tables.computed_days

    def days_with_results(self, spark: SparkSession) -> list[date]:
        """The days whose alerts are computed, also those without an alert."""
        computed = computed_days_in(spark, self.computed_days_table)
        return sorted(computed.union(published_days(self, spark)))

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns that identify an alert that is not retracted."""
        return ("arrival_unit", "rule", *self.windows.window_key)

    @property
    def checks(self) -> list[Check]:
        """The checks of alerts and, if the pipeline notifies anybody, of notifications."""
        return [
            *alerts_checks(self.windows, self.result_columns),
            *alerts_history_checks(),
            *(notification_checks(self.windows.spec) if self.definition.notifies else []),
        ]

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        """Raises the days' alerts; their episodes may begin before the days.

        Raises:
            CorrectionUnfinishedError: A correction of these windows is not finished.
            BatchUnfinishedError: The stream's last micro-batch is not in all tables.
        """
        self.refuse_while_unfinished(spark, log)
        names = [table.short_name for table in self.tables]
        if not self.windows.alerts:
            none = {table.short_name: small_frame(spark, [], table.schema) for table in self.tables}
            return Stage.of(self.tables, none, [])
        records, arrivals = passing(self.logged_records(spark, log)), self.arrivals(log)
        of_runs, cached = [], CachedRows()
        for run in _runs_of(days):
            final = self.window_tables.final_windows.of_arrival_units(spark, run)
            of_run = WholeEpisodes(self.definition, records, arrivals, run, final, cached.keep)
            of_runs.append(self.definition.alert_rows(final, of_run.joined, names))
        rows = {
            name: reduce(DataFrame.unionByName, [of_run[name] for of_run in of_runs])
            for name in names
        }
        if self.definition.notifies:
            rows["notifications"] = cached.keep(rows["notifications"])
        return Stage.of(self.tables, rows, cached)

    def check_batches(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Rows,
        log: ArrivalLog,
    ) -> list[Batch]:
        """Joins the alerts with their final windows, with published alerts and notifications."""
        alerts = standing(rows["alerts"])
        final = self.window_tables.final_windows.of_arrival_units(spark, days)
        same_window = reduce(and_, [alerts[name].eqNullSafe(final[name]) for name in final.columns])
        is_final = final.withColumn("_is_final", F.lit(True))
        columns = [alerts[name] for name in alerts.columns]
        judged = alerts.join(is_final, same_window, "left").select(
            *columns, F.coalesce("_is_final", F.lit(False)).alias("_is_final")
        )
        before = Window.partitionBy("rule", "key").orderBy("_window_end_ms", "_window_start_ms")
        in_order = with_milliseconds(judged).withColumns(
            {
                "_previous_end": F.lag("window_end").over(before),
                "_previous_episode": F.lag("episode_start").over(before),
            }
        )
        frames = self._doubtful(spark, days, rows["alerts"])
        changes = differences(frames["published"], frames["alerts"], self.key_columns)
        batches = [
            Batch("alerts", in_order, alerts_checks(self.windows, self.result_columns)),
            Batch(
                "alerts_history",
                self._counted(frames),
                alerts_history_checks(),
                changes={ALERTS_NEVER_CHANGED: changes},
            ),
        ]
        if self.definition.notifies:
            spec, window = self.windows.spec, self.definition.window
            arrival_units = arrival_units_frame(spark, self.arrivals(log), days)
            closings = arrival_units.select("arrival_unit", "_close_before_ms")
            events = rows["notifications"]
            judged = notifications_to_check(events, alerts, final, closings, spec, window)
            batches.append(Batch("notifications", judged, notification_checks(spec)))
        return batches

    def _doubtful(
        self, spark: SparkSession, days: Sequence[date], alerts: DataFrame
    ) -> dict[str, DataFrame]:
        """The compared frames on the days whose alerts changed."""
        frames = self._compared(spark, days, alerts)
        compared = ("alerts", "published")
        in_doubt = arrival_units_that_differ({name: frames[name] for name in compared}, compared)
        doubtful = F.col("arrival_unit").isin(*in_doubt) if in_doubt else F.lit(False)
        return {name: rows.where(doubtful) for name, rows in frames.items()}

    def _counted(self, frames: Mapping[str, DataFrame]) -> DataFrame:
        """Each alert, with how often each of the frames has it."""
        had = F.col("rows_in_published") + F.col("rows_in_retracted")
        counted = copies_by_frame(frames, self.key_columns)
        return counted.withColumn(
            "_arrival_unit_had", F.sum(had).over(Window.partitionBy("arrival_unit"))
        )

    def _compared(
        self, spark: SparkSession, days: Sequence[date], alerts: DataFrame
    ) -> dict[str, DataFrame]:
        """The alerts to check, and the published alerts: those that stand and those retracted."""
        published = self.tables[0].of_arrival_units(spark, days)
        frames = {
            "alerts": standing(alerts),
            "published": standing(published),
            "retracted": published.where(F.col("retracted_by").isNotNull()),
        }
        return {name: rows.drop("correction", "retracted_by") for name, rows in frames.items()}

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes the days that have no rows yet; checks have compared the others."""
        return {new.table.name: new.publish_new(days) for new in stage.tables.values()}


def _runs_of(days: Sequence[date]) -> list[list[date]]:
    """Consecutive days, each run in order."""
    runs: list[list[date]] = []
    for day in sorted(set(days)):
        if runs and day - runs[-1][-1] == timedelta(days=1):
            runs[-1].append(day)
        else:
            runs.append([day])
    return runs
