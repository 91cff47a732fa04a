"""Ingests landed files: accepted records, rejected records, and the arrival log."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property, partial
from typing import Self

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from windows_pipeline.arrival.lines import in_line_order
from windows_pipeline.arrival.log import (
    ArrivalLog,
    arrival_log_rows,
    is_of_stream,
    read_log,
    rows_of,
    summed_up,
)
from windows_pipeline.arrival.numbering import RangedOrder, freed_on_error
from windows_pipeline.arrival.order import in_arrival_order
from windows_pipeline.arrival.ranges import in_arrival_order_by_ranges
from windows_pipeline.arrival.stored_watermark import store_watermarks
from windows_pipeline.arrival.watermark import decided_watermarks
from windows_pipeline.checks.compare import arrival_units_that_differ
from windows_pipeline.checks.own_checks import own_checks_of_records
from windows_pipeline.checks.recounts.arrival import recount_running_maxima
from windows_pipeline.checks.run import Batch, Check
from windows_pipeline.checks.table_rules import raw_events_checks
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.config import Pipeline, Source
from windows_pipeline.incremental.arrival_units import Facts, arrivals_of, day_facts
from windows_pipeline.jobs.computed_days import dependent_days, withdraw_computed_days
from windows_pipeline.jobs.job import (
    Job,
    RowCounts,
    Rows,
    Stage,
    StagedTable,
    cache_rows,
    publish_in_order,
)
from windows_pipeline.jobs.quarantine import (
    QuarantinedFile,
    quarantine_rows,
    quarantined_among,
)
from windows_pipeline.settings import Settings
from windows_pipeline.sources.bad_files import BadFileError, with_more
from windows_pipeline.sources.landed_columns import BLOCK, LINE
from windows_pipeline.sources.landed_files import read_landed
from windows_pipeline.sources.landing import FileState, LandingFolder, landing_of
from windows_pipeline.sources.record_counts import landed_counts
from windows_pipeline.sources.tuning import INGEST_TUNING, IngestTuning, records_in
from windows_pipeline.sources.validation import (
    AMBIGUOUS_TIME,
    judged_records,
    require_fit_to_order,
)
from windows_pipeline.storage.arrival_units import in_arrival_units
from windows_pipeline.storage.instants import with_timestamps
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables
from windows_pipeline.text.problems import RefusedError

_LANDED = ("landed", "rejected")
"""What the checks report of a day, beside its totals: how many records landed, were rejected."""


class FedByStreamError(RefusedError):
    """A stream fills the tables, so days can't be ingested whole; the message names the fix."""


@dataclass(frozen=True)
class RawEventsJob:
    """Fills raw_events, rejected_records and arrival_log from landed files (rules A1, A2, A6).

    Attributes:
        of_pipeline: The tables of the pipeline.
        settings: Where tables and landed files lie.
        tuning: How many records a task takes.
        bad: The errors of the files that the job leaves out and lists (rule A8).
    """

    of_pipeline: PipelineTables
    settings: Settings
    tuning: IngestTuning = INGEST_TUNING
    bad: tuple[BadFileError, ...] = ()
    starts_over: bool = field(default=False, kw_only=True)

    @property
    def inputs(self) -> list[Table]:
        """No table: the job reads landed files."""
        return []

    @property
    def tables(self) -> list[Table]:
        """raw_events, rejected_records, quarantined_files if any, and last arrival_log.

        The row of the arrival log commits a day.
        """
        of = self.of_pipeline
        every = (of.raw_events, of.rejected_records, of.quarantined_files, of.arrival_log)
        return [replace(table, starts_over=self.starts_over) for table in every if table.is_written]

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline."""
        return self.of_pipeline.pipeline

    def for_run(self) -> Self:
        """The same job, which has not listed its landing yet."""
        return replace(self)

    def starting_over(self) -> Self:
        """The same job, for a rebuild of its tables."""
        return replace(self, starts_over=True)

    @property
    def computed_days_table(self) -> None:
        """None, as all other steps follow."""
        return

    @property
    def _log(self) -> Table:
        return self.tables[-1]

    @property
    def files(self) -> Table:
        """The table of ingested files."""
        return self.of_pipeline.landed_files

    @property
    def counted_tables(self) -> list[Table]:
        """No table: the numbers are computed from the log."""
        return []

    @property
    def checks(self) -> list[Check]:
        """The checks of ingested records."""
        return [*raw_events_checks(self.pipeline), *own_checks_of_records(self.pipeline).checks]

    @cached_property
    def landing(self) -> LandingFolder:
        """The folder of the source's day folders, which the job lists once; see `for_run`."""
        return landing_of(self.pipeline.source, self.settings.landing)

    def without(self, error: BadFileError) -> Job | None:
        """The job that leaves out the files of an error, too; None if bad files stop the job."""
        bad = with_more(self.bad, error) if self.pipeline.source.skips_bad_files else None
        return None if bad is None else replace(self, bad=bad)

    def arrived(self, spark: SparkSession) -> ArrivalLog:
        """Reads the log, which says whether days or a stream fill these tables."""
        return () if self.starts_over else read_log(spark, self._log)

    def arrived_so_far(self, spark: SparkSession) -> ArrivalLog:
        """Reads the log, or returns an empty log if the table does not exist yet."""
        return self.arrived(spark) if self._log.exists(spark) else ()

    def estimated_records(self, days: Sequence[date], log: ArrivalLog) -> int:
        """Estimates the number of records from the size of the files; a stream counts as large."""
        if self._is_streamed(log):
            return sys.maxsize
        return records_in(sum(self.landing.bytes_of(days).values()))

    def stage(self, spark: SparkSession, days: Sequence[date], log: ArrivalLog) -> Stage:
        """Reads the landed files of the days.

        Raises:
            FedByStreamError: A stream fills these tables.
            FileNotFoundError: A day has no folder.
        """
        self.refuse_stream(log)
        source = self.pipeline.source
        # Listed before they are read, so that a file which changes meanwhile is noticed.
        files = self.landing.files(days)
        left_out = {bad.file for bad in self.bad}
        read = [file for file in files if str(file) not in left_out]
        landed = read_landed(spark, source, self.landing, read)
        # Accepted and rejected records together, so that Spark parses each text once.
        ordered, cached = self._in_order(landed, days)
        with freed_on_error(cached):
            require_fit_to_order(ordered, source)
            rows = self._rows(ordered, days, read, quarantined_among(files, self.bad))
            self.files.create_if_missing(spark)
            tables = [*self.tables, self.files]
            staged = {
                table.short_name: StagedTable(
                    table, rows[table.short_name].select(table.schema.names)
                )
                for table in tables
            }
        unchanged = partial(self.landing.require_unchanged, read)
        return Stage(staged, [cached, rows["arrival_log"]], unchanged)

    def _rows(
        self,
        ordered: DataFrame,
        days: Sequence[date],
        read: Sequence[FileState],
        listed: Sequence[QuarantinedFile],
    ) -> Rows:
        """The rows of each table and of the landed files; those of arrival_log are cached."""
        accepted = ordered.where(F.col("reason").isNull())
        timed = with_timestamps(accepted, "event_time", "running_max")
        rejected = ordered.where(F.col("reason").isNotNull())
        counted = arrival_log_rows(accepted, rejected, days)
        of_no_stream = dict.fromkeys(("watermark", "batch", "stream"), F.lit(None))
        logged = with_timestamps(counted, "max_event_time")
        return {
            "raw_events": timed.withColumn("batch", F.lit(None)),
            "rejected_records": rejected,
            "quarantined_files": quarantine_rows(ordered.sparkSession, listed),
            "arrival_log": cache_rows(logged.withColumns(of_no_stream)),
            "_landed_files": _with_counts(read, ordered),
        }

    def _is_streamed(self, log: ArrivalLog) -> bool:
        """Whether a stream fills these tables; for landed files only the log can say."""
        return not self.pipeline.source.by_days or is_of_stream(log)

    def refuse_stream(self, log: ArrivalLog) -> None:
        """Refuses to ingest whole days where a stream brings records.

        Raises:
            FedByStreamError: The log has a micro-batch.
        """
        if not is_of_stream(log):
            return
        name = self.pipeline.name
        raise FedByStreamError(
            f"{name}: a stream fills its tables, and would bring the records of a day that is "
            f"ingested whole again. Let the stream bring them: windows-pipeline stream {name}. To "
            "correct records, start over by days, from the landed files as they are: "
            f"windows-pipeline rebuild {name} --from raw_events"
        )

    def _ranges(self, days: Sequence[date]) -> int | None:
        """How many tasks sort the records; None for a task per day and source partition."""
        if self.settings.arrival_ranges is not None:
            return self.settings.arrival_ranges
        return self.tuning.ranges_for(self.landing.bytes_of(days).values())

    def _in_order(self, landed: DataFrame, days: Sequence[date]) -> RangedOrder:
        source = self.pipeline.source
        if source.is_by_line:
            return in_line_order(judged_records(landed, source, [BLOCK, LINE]))
        judged, ranges = judged_records(landed, source), self._ranges(days)
        if ranges is not None:
            return in_arrival_order_by_ranges(judged, source.order_column, ranges)
        ordered = cache_rows(in_arrival_order(judged, source.order_column))
        return RangedOrder(ordered, ordered)

    def check_batches(
        self,
        spark: SparkSession,
        days: Sequence[date],
        rows: Rows,
        log: ArrivalLog,
    ) -> list[Batch]:
        """A row per day and source partition: how many records landed, and where they went.

        The pipeline's own checks look at the records themselves.
        """
        raw, quarantined = rows["raw_events"], rows.get("quarantined_files")
        arrival_units = _of_whole_arrival_units(rows["arrival_log"])
        is_large = self._is_large(days, log)
        stretch_rows = self.tuning.checked_rows_per_stretch if is_large else None
        seen = recount_running_maxima(raw, stretch_rows)
        seen = _with_decisions(seen, log)
        expected = F.greatest("so_far", "decided")
        of_partition = seen.groupBy("arrival_unit", "source_partition").agg(
            F.count_if(~F.col("is_again")).alias("distinct_offsets"),
            F.count_if(~expected.eqNullSafe(F.col("running_max"))).alias("wrong_running_max"),
        )
        of_reject = (
            rows["rejected_records"]
            .groupBy("arrival_unit")
            .agg(
                F.count("*").alias("rejected"),
                F.mode("reason").alias("most_frequent_reason"),
                F.count_if(F.col("reason").startswith(AMBIGUOUS_TIME)).alias("_ambiguous"),
            )
        )
        of_day = Window.partitionBy("arrival_unit")
        totals = {"arrival_unit_rows": F.sum("rows").over(of_day)}
        if self.pipeline.source.zones:
            totals["ambiguous"] = F.sum("ambiguous").over(of_day) + F.col("_ambiguous")
        counted = ["rejected", "distinct_offsets", "wrong_running_max", "_ambiguous"]
        if quarantined is not None:
            of_arrival_unit = quarantined.groupBy("arrival_unit").agg(
                F.count("*").alias("quarantined")
            )
            arrival_units = arrival_units.join(of_arrival_unit, "arrival_unit", "left").fillna(
                0, ["quarantined"]
            )
        judged = (
            arrival_units.join(of_partition, ["arrival_unit", "source_partition"], "left")
            .join(self._landed(spark, days, log, rows), "arrival_unit", "left")
            .join(of_reject, "arrival_unit", "left")
            .join(_without_values(raw, self.pipeline.source), "arrival_unit", "left")
            .fillna(0, counted if self._is_streamed(log) else ["landed", *counted])
            .withColumns(totals)
        )
        checks = raw_events_checks(self.pipeline)
        return [
            Batch("raw_events", judged, checks, numbers=[*_LANDED, *totals]),
            *own_checks_of_records(self.pipeline).batches(raw, days),
        ]

    def _is_large(self, days: Sequence[date], log: ArrivalLog) -> bool:
        """Whether a day's source partition has more records than one task should check."""
        if not self._is_streamed(log):
            return self._ranges(days) is not None
        of_days = (row for row in summed_up(log) if row.arrival_unit in days)
        return any(row.rows > self.tuning.records_per_task for row in of_days)

    def _landed(
        self,
        spark: SparkSession,
        days: Sequence[date],
        log: ArrivalLog,
        rows: Rows,
    ) -> DataFrame:
        """How many records landed in each day; no row for a stream, whose days are no folders.

        Files that quarantined_files lists do not count.
        """
        schema = "arrival_unit date, landed bigint"
        if self._is_streamed(log):
            return small_frame(spark, [], schema)
        quarantined = rows.get("quarantined_files")
        listed = [] if quarantined is None else quarantined.select("file").collect()
        left_out = {row["file"] for row in listed}
        files = [file for file in self.landing.files(days) if str(file) not in left_out]
        counts = landed_counts(self.pipeline.source, self.landing, files)
        return small_frame(spark, counts.items(), schema)

    def publish(self, spark: SparkSession, days: Sequence[date], stage: Stage) -> dict[str, int]:
        """Writes the records first and the log last: a log row commits its day.

        To ingest a day again, the job first deletes the day's log row. If the job is killed
        then, the day counts as missing and blocks all later days. The stored watermark of later
        days may depend on the day, so it is deleted as well. The day, and every later day whose
        windows read its records, no longer count as computed.

        Raises:
            FedByStreamError: A stream has begun to fill these tables.
        """
        log = stage.tables["arrival_log"]
        before = self.arrived(spark)
        self.refuse_stream(before)
        dependent = self._dependent_days(spark, days, stage, before)
        withdraw_computed_days(spark, self.of_pipeline, {*days, *dependent})
        decided_by = self.pipeline.partitions.start, self.pipeline.source.idle_after
        if self.starts_over:
            log.table.replace_by_empty(spark)
        else:
            log.table.withdraw(spark, days)
        store_watermarks(spark, log.table, *decided_by)
        if not self.pipeline.source.skips_bad_files:  # but an earlier run may have left files out
            listed = self.of_pipeline.quarantined_files
            if listed.exists(spark):
                listed.withdraw(spark, days)
        records_and_files = [staged for staged in stage.tables.values() if staged is not log]
        versions = publish_in_order(days, [*records_and_files, log])
        store_watermarks(spark, log.table, *decided_by)
        return versions | {log.table.name: log.table.version(spark)}

    def _dependent_days(
        self, spark: SparkSession, days: Sequence[date], stage: Stage, before: ArrivalLog
    ) -> set[date]:
        """The later days whose windows may change, as days are ingested again."""
        known_days = sorted({row.arrival_unit for row in before} & set(days))
        if not known_days:
            return set()
        raw, log = stage.tables["raw_events"], stage.tables["arrival_log"]
        columns = [name for name in raw.table.schema.names if name != "batch"]
        old = raw.table.of_arrival_units(spark, known_days).select(columns)
        new = raw.rows.where(in_arrival_units(known_days)).select(columns)
        changed = arrival_units_that_differ({"old": old, "new": new}, ["old", "new"])
        if not changed:
            return set()
        after = *(row for row in before if row.arrival_unit not in days), *rows_of(log.rows)
        both = raw.table.read(spark).select(columns).unionByName(raw.rows.select(columns))
        return dependent_days(spark, self.of_pipeline, changed, both, (before, after))

    def facts(
        self, spark: SparkSession, days: Sequence[date], log: ArrivalLog, rows: RowCounts
    ) -> dict[date, Facts]:
        """Each day's rejected records, and how far the day closes each definition's windows."""
        published = read_log(spark, self._log)
        facts: dict[date, Facts] = {day: {} for day in days}
        for name, windows in self.pipeline.windows.items():
            arrivals = arrivals_of(self.pipeline, published, windows.spec)
            for day, of_day in day_facts(arrivals, days).items():
                closed = of_day.pop("closed_through_ms", None)
                facts[day] |= of_day
                if closed is not None:
                    facts[day][f"{name}_closed_through_ms"] = closed
        if self.pipeline.source.has_several_partitions:
            of_partitions = arrivals.partition_facts(days, self.pipeline.source.idle_after)
            for day, of_day in of_partitions.items():
                facts[day] |= of_day
        return facts


def _with_counts(files: Sequence[FileState], ordered: DataFrame) -> DataFrame:
    """The landed files, with the number of records of each."""
    spark = ordered.sparkSession
    states = small_frame(
        spark,
        [file[:4] for file in files],
        "arrival_unit date, file string, size_bytes bigint, _written_ms bigint",
    )
    is_accepted = F.col("reason").isNull()
    counts = ordered.groupBy("arrival_unit", "file").agg(
        F.count_if(is_accepted).alias("accepted"), F.count_if(~is_accepted).alias("rejected")
    )
    counted = states.join(counts, ["arrival_unit", "file"], "left")
    return with_timestamps(counted.fillna(0, ["accepted", "rejected"]), "written")


def _without_values(raw: DataFrame, source: Source) -> DataFrame:
    """For each day with records, the value columns in which no record has a value.

    Columns that come later than the day are left out.
    """
    forms = source.long_forms
    empty = []
    for name in source.values:
        since = forms[name].since if name in forms else None
        is_due = F.lit(True) if since is None else F.max("arrival_unit") >= F.lit(since)
        empty.append(F.when(is_due & (F.count(f"`{name}`") == 0), F.lit(name)))
    listed = F.array_compact(F.array(*empty)) if empty else F.array().cast("array<string>")
    return raw.groupBy("arrival_unit").agg(listed.alias("without_value"))


def _with_decisions(seen: DataFrame, published: ArrivalLog) -> DataFrame:
    """Adds the watermark that a stream had decided on before a record, or null (rule A4)."""
    decisions = list(decided_watermarks(published))
    if not decisions:
        return seen.withColumn("decided", F.lit(None).cast("timestamp"))
    schema = "batch bigint, source_partition string, _decided_ms bigint"
    decided = small_frame(seen.sparkSession, decisions, schema)
    timed = with_timestamps(decided, "decided")
    return seen.join(F.broadcast(timed), ["batch", "source_partition"], "left")


def _of_whole_arrival_units(logged: DataFrame) -> DataFrame:
    """The arrival log with a row per day and source partition, summed over micro-batches."""
    of_batch = Window.partitionBy("arrival_unit", "batch")
    first_of_batch = F.row_number().over(of_batch.orderBy("source_partition")) == 1
    parts = logged.withColumn(
        "batch_rejected", F.when(first_of_batch, F.col("arrival_unit_rejected"))
    )
    whole_arrival_unit = Window.partitionBy("arrival_unit")
    parts = parts.withColumn(
        "arrival_unit_rejected", F.sum("batch_rejected").over(whole_arrival_unit)
    )
    return parts.groupBy("arrival_unit", "source_partition").agg(
        F.min("first_offset").alias("first_offset"),
        F.max("last_offset").alias("last_offset"),
        F.sum("rows").alias("rows"),
        F.max("max_event_time").alias("max_event_time"),
        F.max("arrival_unit_rejected").alias("arrival_unit_rejected"),
        *[F.sum(name).alias(name) for name in ("ambiguous",) if name in logged.columns],
    )
