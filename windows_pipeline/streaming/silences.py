"""The silences that a micro-batch may end, however long ago they began (rules B8, E6).

Only keys that have a record again are looked for, and of their alerts only those of windows without
records, so the history of other alerts costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.engine.literals import coarse_from_ms, literal
from windows_pipeline.incremental import silences
from windows_pipeline.incremental.alerts import EPISODE, standing
from windows_pipeline.incremental.definition import Definition
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.storage.instants import ms_to_timestamp, timestamp_to_ms
from windows_pipeline.storage.joins import join_on


@dataclass(frozen=True)
class SilencesBefore:
    """The silences before a micro-batch.

    Attributes:
        definition: The definition; silences are windows.
        closed: `SEEN` of the windows that the micro-batch closed; computed already.
        is_earlier: Whether a window was closed before the micro-batch.
        closing: The close times before and after the micro-batch.
    """

    definition: Definition
    closed: DataFrame
    is_earlier: Column
    closing: Closing

    def added_to(self, alerts: DataFrame) -> DataFrame:
        """Adds the episodes of older silences that the micro-batch ends, and `NEXT_RECORD` to all.

        Args:
            alerts: The whole episodes of the micro-batch's alerts, and of earlier alerts within a
                window's length before it.
        """
        if self.closing.before_ms == NEVER_MS:
            return silences.with_next_record(alerts, self.closed)
        near = self._closed_since(self._near_ms).localCheckpoint()
        seen = self.closed.unionByName(near)
        keys = silences.keys_back(self.closed, near).localCheckpoint()
        if keys.isEmpty():
            return silences.with_next_record(alerts, seen)
        older = self._alerts().where(self._is_old & (F.col("record_count") == 0))
        silent = join_on(older, F.broadcast(keys), ["key"], "semi").localCheckpoint()
        seen = seen.unionByName(self._windows_after(silent))
        back_ms = timestamp_to_ms(silences.NEXT_RECORD)
        ends = back_ms >= literal(self.closing.before_ms, back_ms)
        ended = silences.with_next_record(silent, seen).where(ends).select(*EPISODE).distinct()
        ended = join_on(ended, alerts.select(*EPISODE).distinct(), EPISODE, "anti")
        whole = alerts.unionByName(self._episodes(ended.localCheckpoint(), alerts.columns))
        return silences.with_next_record(whole, seen)

    @cached_property
    def _near_ms(self) -> int:
        """A window's length before the micro-batch."""
        spec = self.definition.spec
        assert spec.length_ms is not None  # noqa: S101  windows with silences have a length
        return self.closing.before_ms - spec.length_ms

    @property
    def _is_old(self) -> Column:
        end_ms = timestamp_to_ms("window_end")
        return end_ms < literal(self._near_ms, end_ms)

    def _closed_since(self, since_ms: int) -> DataFrame:
        """`SEEN` of the final windows that end at a time or later, before the micro-batch."""
        spark = self.closed.sparkSession
        final = self.definition.tables.final_windows.read(spark, since_ms=since_ms)
        end_ms = timestamp_to_ms("window_end")
        is_since = end_ms >= literal(since_ms, end_ms)
        coarse_ms = coarse_from_ms(since_ms, self.closing.after_ms)  # lets Spark skip files
        may_be_since = F.col("window_end") >= ms_to_timestamp(F.lit(coarse_ms))
        return final.where(may_be_since & is_since & self.is_earlier).select(*silences.SEEN)

    def _alerts(self, since_ms: int | None = None) -> DataFrame:
        """The standing alerts of earlier micro-batches."""
        spark = self.closed.sparkSession
        stored = self.definition.tables.alerts.read(spark, since_ms=since_ms)
        return standing(stored).where(self.is_earlier)

    def _windows_after(self, silent: DataFrame) -> DataFrame:
        """The windows of keys between their last silences that may be open and the near ones.

        The look-back grows until a window with records follows each alert of an older silence.

        Args:
            silent: The alerts of older silences; computed already.

        Returns:
            `SEEN` of the windows.
        """
        windows, followed_by_none = self.closed.limit(0), silent
        keys = silent.select("key").distinct()
        start_ms = timestamp_to_ms("window_start")
        while True:
            newest = followed_by_none.groupBy("key").agg(F.max(start_ms).alias("_start_ms"))
            since_ms = newest.agg(F.min("_start_ms")).collect()[0][0]
            if since_ms is None:
                return windows
            # The window of the record before a silence ends one millisecond before the silence.
            since_ms -= 1
            between = self._closed_since(since_ms).where(self._is_old)
            windows = join_on(between, keys, ["key"], "semi").localCheckpoint()
            older = silences.with_next_record(silent.where(start_ms <= F.lit(since_ms)), windows)
            followed_by_none = older.where(F.col(silences.NEXT_RECORD).isNull())

    def _episodes(self, ended: DataFrame, columns: list[str]) -> DataFrame:
        """All alerts of some episodes that ended before the near ones.

        Args:
            ended: The columns of the episodes; computed already.
            columns: The columns to return.
        """
        start_ms = timestamp_to_ms("episode_start")
        first_ms, last_ms = ended.agg(F.min(start_ms), F.max(start_ms)).collect()[0]
        if first_ms is None:
            return self._alerts().select(*columns).limit(0)
        bounds = ms_to_timestamp(F.lit(first_ms)), ms_to_timestamp(F.lit(last_ms))
        stored = self._alerts(first_ms).where(F.col("episode_start").between(*bounds))
        return join_on(stored.select(*columns), ended, EPISODE, "semi")
