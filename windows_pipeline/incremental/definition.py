"""A window definition, as days and micro-batches compute its rows (rules A to G).

This is the door of the package: who reads and writes tables asks a `Definition` for the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.arrival.merge import Resumed
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.config import BoundAggregates, Pipeline, Source, Windows
from windows_pipeline.engine.firings.kernel import AFTER
from windows_pipeline.engine.literals import literal
from windows_pipeline.engine.record_shards import ROWS_BEFORE, in_record_shards
from windows_pipeline.engine.time_shards import IN_HOME_SHARD
from windows_pipeline.engine.windows import PARTLY_LATE
from windows_pipeline.incremental.aggregated_values import REASONS, reason_of
from windows_pipeline.incremental.alerts import (
    JoinedAlerts,
    RuleSql,
    broken_rules,
    never_corrected,
    with_episodes,
)
from windows_pipeline.incremental.closed_days import ClosedDays
from windows_pipeline.incremental.definition_records import definition_records, passing
from windows_pipeline.incremental.early_warnings import early_warnings
from windows_pipeline.incremental.episodes import episode_rows
from windows_pipeline.incremental.firings import Positions, arrival_unit_firings
from windows_pipeline.incremental.late import late_records
from windows_pipeline.incremental.lookback import lookback_from_ms
from windows_pipeline.incremental.notifications import corrected, episode_events, with_ids
from windows_pipeline.incremental.processed import FiringFunction
from windows_pipeline.incremental.windows import arrival_unit_windows
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.storage.arrival_units import in_arrival_units
from windows_pipeline.storage.fetched_rows import FetchedRows
from windows_pipeline.storage.instants import ms_to_timestamp, with_instants
from windows_pipeline.storage.tables import WindowTables
from windows_pipeline.tuning import TUNING, Tuning
from windows_pipeline.windows import PipelineWindows

_LEAST_LOOK_BACKS = 4
"""With shards this long, the three look-backs that a recount needs lie in one neighbour."""


@dataclass(frozen=True)
class Definition:
    """A window definition of a pipeline.

    Attributes:
        tables: The tables of the definition.
        base_tuning: How records are cut into shards, by the settings.
    """

    tables: WindowTables
    base_tuning: Tuning = TUNING

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline."""
        return self.tables.pipeline

    @property
    def name(self) -> str:
        """The definition's name."""
        return self.tables.windows_name

    @property
    def windows(self) -> Windows:
        """The definition as it is written."""
        return self.pipeline.windows[self.name]

    @property
    def spec(self) -> PipelineWindows:
        """The windows."""
        return self.windows.spec

    @cached_property
    def source(self) -> Source:
        """The pipeline's source with the definition's key."""
        return self.windows.keyed(self.pipeline.source)

    @cached_property
    def tuning(self) -> Tuning:
        """How records are cut into shards: with one key for all records, into smaller shards."""
        if self.source.key_columns:
            return self.base_tuning
        least = min(self.base_tuning.least_shard_look_backs, _LEAST_LOOK_BACKS)
        return replace(self.base_tuning, least_shard_look_backs=least, one_key=True)

    @cached_property
    def aggregates(self) -> BoundAggregates:
        """The aggregates, with the columns that they take of the source's records."""
        return self.windows.bound_aggregates(self.pipeline.source)

    @cached_property
    def result_columns(self) -> dict[str, str]:
        """The types of the windows' results, by column."""
        return self.windows.result_columns(self.pipeline.source)

    @cached_property
    def final_columns(self) -> list[str]:
        """The columns of final windows, without `arrival_unit`."""
        names = self.tables.final_windows.schema.names
        return [name for name in names if name != "arrival_unit"]

    @cached_property
    def rules(self) -> dict[str, RuleSql]:
        """The alert rules as SQL for Spark."""
        columns = self.result_columns
        return {
            name: RuleSql(self.windows.breaking_sql(rule, columns), rule.severity_sql(columns).sql)
            for name, rule in self.windows.alerts.items()
        }

    @property
    def notifies(self) -> bool:
        """Whether the pipeline notifies anybody of episodes."""
        return self.tables.notifications.is_written

    @property
    def window(self) -> tuple[str, ...]:
        """The columns that identify a window of a key."""
        return self.windows.window_key[1:]

    def marked_records(self, raw_events: DataFrame) -> DataFrame:
        """The records by the definition's key, marked by its filter; see `definition_records`."""
        return definition_records(raw_events, self.windows, self.pipeline.source)

    def records(self, raw_events: DataFrame) -> DataFrame:
        """The records by the definition's key that pass its filter."""
        return passing(self.marked_records(raw_events))

    @property
    def needs_records(self) -> bool:
        """Whether the look-back depends on the records themselves, as that of sessions does."""
        return self.spec.timeout_ms is not None

    def lookback_ms(self, records: DataFrame, closes_ms: Collection[int]) -> dict[int, int]:
        """From which event time records matter at close times; see `lookback_from_ms`."""
        return lookback_from_ms(records, self.spec, closes_ms)

    def cut(self, records: DataFrame) -> DataFrame:
        """Cuts records into record shards if other records decide which ones are late.

        The shards serve both the windows and the late records, and none holds copies. Records of
        other windows are cut when these windows are computed.
        """
        if self.spec.late_after_ms is not None:
            return records
        cut = in_record_shards(records, self.spec, self.tuning)
        return cut.drop(IN_HOME_SHARD, ROWS_BEFORE)

    def compute(
        self,
        records: DataFrame,
        closings: Mapping[int, Closing],
        *,
        only_closed: bool | None = None,
    ) -> DataFrame:
        """Computes the windows that computed days changed or closed; see `arrival_unit_windows`.

        Args:
            records: The records that `Arrivals.records` returns, cut by `cut`.
            closings: The close times before and after each computed day, by day number.
            only_closed: Whether to leave open windows out; None for what the definition says.
        """
        if only_closed is None:
            only_closed = not self.windows.partial_results
        if only_closed and closings and self.spec.length_ms is not None:
            # A session that extends beyond the close time is open, so all its records are needed;
            # rows with a grace are counted in order of arrival.
            close_ms = max(closing.after_ms for closing in closings.values())
            time_ms = F.col("_event_time_ms")
            records = records.where(time_ms < literal(close_ms, time_ms))
        return arrival_unit_windows(
            records,
            self.spec,
            self.aggregates,
            closings,
            only_closed=only_closed,
            tuning=self.tuning,
        )

    def window_rows(
        self,
        computed: FetchedRows,
        records: DataFrame,
        computed_days: Sequence[int],
        wanted: Collection[str],
        closed_days: ClosedDays | None = None,
    ) -> dict[str, FetchedRows]:
        """What computed days add to keyed_windows, final_windows, late_records and failed_windows.

        Args:
            computed: What `compute` returned, with the instants of the tables.
            records: The records, or those that may be late; cut by `cut`.
            computed_days: The computed days, by number.
            wanted: The tables whose rows to return.
            closed_days: The days that closed windows, if a computed day stands for several.

        Returns:
            The rows by table.
        """
        closed = computed.where("closed")
        rows = {"keyed_windows": closed, "final_windows": closed}
        if self.windows.partial_results:  # the other rows are of records that no window counts
            rows["keyed_windows"] = computed.known("record_count")
        if "late_records" in wanted:
            names = [name for name in PARTLY_LATE[:1] if name in computed.columns]
            partly_late = computed.known(names[0]).frame if names else None
            late = self.late_records(records, partly_late, computed_days, closed_days)
            rows["late_records"] = FetchedRows(late)
        if "failed_windows" in wanted:
            rows["failed_windows"] = FetchedRows(self._failed(closed.frame))
        return rows

    def late_records(
        self,
        records: DataFrame,
        computed: DataFrame | None,
        computed_days: Sequence[int],
        closed_days: ClosedDays | None = None,
    ) -> DataFrame:
        """The records that no window counts, as rows of the table; see `late_records`."""
        values = list(self.source.values)
        return late_records(records, computed, self.spec, values, computed_days, closed_days)

    def _failed(self, closed: DataFrame) -> DataFrame:
        """The failed aggregates of closed windows, as rows of failed_windows (rule G3)."""
        schema = self.tables.failed_windows.schema
        messages = self.windows.failure_messages(self.result_columns)
        if not messages:
            return small_frame(closed.sparkSession, [], schema)
        named = closed.withColumn("aggregate", F.explode("failed"))
        message = F.lit(None).cast("string")
        for name, text in messages.items():
            message = F.when(F.col("aggregate") == F.lit(name), text).otherwise(message)
        if REASONS in named.columns:
            message = F.coalesce(reason_of(F.col("aggregate")), message)
        return named.withColumn("message", message).select(*schema.names)

    def raise_alerts(self, final_windows: DataFrame) -> DataFrame:
        """An alert for each rule that a final window breaks; see `broken_rules`."""
        return broken_rules(final_windows, self.rules)

    def with_episodes(self, alerts: DataFrame) -> DataFrame:
        """Joins alerts into episodes; see `with_episodes`."""
        return with_episodes(alerts, self.rules)

    def alert_rows(
        self,
        windows: DataFrame,
        joined: Callable[[DataFrame], JoinedAlerts],
        wanted: Collection[str],
    ) -> dict[str, DataFrame]:
        """What closed windows add to the tables alerts, episodes and notifications.

        Args:
            windows: The windows, as rows of final_windows; at least those that break a rule.
            joined: Joins their alerts with the earlier ones of their episodes.
            wanted: The tables whose rows to return.

        Returns:
            The rows by table.
        """
        of, rows = joined(self.raise_alerts(windows)), {}
        if "alerts" in wanted:
            rows["alerts"] = never_corrected(of.new)
        if "episodes" in wanted:
            rows["episodes"] = episode_rows(
                of.whole,
                self.spec,
                self.rules,
                self.window,
                [name for name in self.final_columns if name not in self.windows.window_key],
                in_arrival_units(of.days),
                of.closed_by_days,
            )
        if "notifications" in wanted:
            events = episode_events(
                of.whole,
                self.spec,
                self.window,
                [aggregate.name for aggregate in self.windows.aggregate_list],
                self.rules,
                of.is_new,
                of.closed,
            )
            rows["notifications"] = with_ids(
                never_corrected(events), self.pipeline.name, self.name, self.window
            )
        return rows

    def corrected_notifications(
        self, stored: DataFrame, computed: DataFrame, number: int
    ) -> DataFrame:
        """All rows that days have once a correction is published; see `corrected`."""
        return corrected(stored, computed, number, self.pipeline.name, self.name, self.window)

    @property
    def raises_warnings(self) -> bool:
        """Whether firings that break a rule can warn of it."""
        return bool(self.windows.alerts) and self.tables.early_warnings.is_written

    @cached_property
    def function(self) -> FiringFunction:
        """What turns firings into rows, if the definition has a function."""
        return FiringFunction(self.windows, self.source)

    def firing_rows(
        self,
        records: DataFrame,
        positions: Mapping[int, Positions],
        resumed: Sequence[Resumed],
        came_with: Column,
        closed: DataFrame,
        keep: Callable[[DataFrame], DataFrame],
    ) -> dict[str, DataFrame]:
        """What computed days add to firings, early_warnings and processed.

        Args:
            records: The records of all keys, marked by the filter.
            positions: See `arrival_unit_firings`, like the next two.
            resumed: The parts of source partitions that resumed.
            came_with: Whether the record after which a window fired came with the computed day.
            closed: The windows that the computed days closed, with `_computed_day`.
            keep: Keeps firings, of which each table is a query.

        Returns:
            The rows by table; without rules none of early_warnings, without a function none of
            processed.
        """
        assert self.windows.trigger is not None  # noqa: S101  only windows with a trigger fire
        trigger = self.windows.trigger.spec
        aggregates = self.function.with_records(self.aggregates)
        delay_ms, final = self.spec.close_delay_ms, None
        if trigger.fires_final:
            final = arrival_unit_windows(
                self.cut(passing(records)),
                self.spec,
                aggregates,
                {day: around.closing(delay_ms) for day, around in positions.items()},
                only_closed=True,
                tuning=self.tuning,
            )
        fired = arrival_unit_firings(
            records,
            self.spec,
            trigger,
            aggregates,
            positions,
            resumed,
            came_with,
            closed=final,
            # A window's warning belongs to its first firing that breaks the rule, and its final
            # firing has the last number.
            with_earlier=self.raises_warnings or trigger.also_final,
            tuning=self.tuning,
        )
        placed = with_instants(fired).withColumns(
            {
                "stream_time": ms_to_timestamp("_stream_time_ms"),
                "fired_after": F.col(f"{AFTER}offset"),
                # A partition's offsets repeat from day to day, so all three identify a record.
                "fired_after_arrival_unit": F.col(f"{AFTER}arrival_unit"),
                "fired_after_partition": F.col(f"{AFTER}source_partition"),
            }
        )
        panes = keep(placed)
        new = panes.where("_is_new")
        rows = {"firings": self.function.without_records(new)}
        if self.raises_warnings:
            so_far = self.function.without_records(panes)
            rows["early_warnings"] = early_warnings(so_far, closed, self.rules)
        if self.windows.process is not None:
            rows["processed"] = self.function.rows_of(new)
        return rows
