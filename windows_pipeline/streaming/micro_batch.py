"""Ingests a micro-batch, and appends its rows to every table exactly once.

The raw records come first, then the log rows, which commit the micro-batch, then each definition's
late records, windows, final windows and alerts. All rows depend only on the micro-batch and the log
before it, and Delta accepts the number of a micro-batch once per table. So a micro-batch that was
killed and is run again ends in the same tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.watermark import LogRow
from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.compat.spark_session import configured
from windows_pipeline.config import Pipeline
from windows_pipeline.engine.literals import literal
from windows_pipeline.incremental.definition import Definition
from windows_pipeline.jobs.quarantine import QuarantinedFile, quarantine_rows
from windows_pipeline.settings import Settings
from windows_pipeline.sources.bad_files import require_none
from windows_pipeline.sources.landed_columns import BLOCK, LINE
from windows_pipeline.sources.tuning import INGEST_TUNING, IngestTuning
from windows_pipeline.sources.validation import judged_records, require_fit_to_order
from windows_pipeline.storage.instants import with_timestamps
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables
from windows_pipeline.streaming.followed_topic import FollowedTopic
from windows_pipeline.streaming.landed import BatchRecords
from windows_pipeline.streaming.log_state import LogState, log_rows
from windows_pipeline.streaming.order import FILE, OFFSET, PARTITION, in_stream_order
from windows_pipeline.streaming.parallel import together
from windows_pipeline.streaming.windows import Append, BatchWindows, ComputedBatch, append_of

_UNSORTED = {"spark.sql.maxConcurrentOutputFileWriters": "8"}
"""Appended rows need no sort: Spark writes the files of few arrival units at the same time."""
Appends = list[Callable[[], None]]
"""The tasks that append a definition's rows, in any order."""


class BatchResult(NamedTuple):
    """The result of a micro-batch.

    Attributes:
        batch: The micro-batch's number.
        arrival_units: The arrival days of its records.
        accepted: How many records were accepted.
        rejected: How many records were rejected.
        passed_over: How many files were skipped: links, and files outside the folders of the
            pipeline's days.
        stream_time_ms: The watermark after the micro-batch; windows that end before the watermark
            minus grace are closed.
        late: How many records are late, by definition.
        failed: How many closed windows have an aggregate that can't be computed, by definition;
            definitions without such windows are left out (rule G3).
        undecided: In how many closed windows an alert rule can't be evaluated, likewise.
        without_value: The columns, among those unseen so far, in which no record has a value.
        without_records: The names and sizes of landed files that gave no record, if records come
            by line.
        quarantined: The bad files that were left out (rule A8).
        ambiguous: How many records have a local time that occurs twice (rule A6).
    """

    batch: int
    arrival_units: list[date]
    accepted: int
    rejected: int
    passed_over: int
    stream_time_ms: int
    late: Mapping[str, int]
    failed: Mapping[str, int]
    undecided: Mapping[str, int]
    without_value: list[str]
    without_records: Sequence[tuple[str, int]]
    quarantined: Sequence[QuarantinedFile]
    ambiguous: int = 0


@dataclass(frozen=True)
class MicroBatch:
    """A micro-batch of a pipeline's stream.

    Attributes:
        of_pipeline: The tables of the pipeline.
        settings: How Spark runs.
        number: The micro-batch's number, one more than the number before.
        stream: The stream's name in the log.
        topic: The topic that the stream follows, if it follows a topic.
        unseen: The columns of which no record had a value so far.
        tuning: How many records a task takes.
        append: Appends rows to a table.
    """

    of_pipeline: PipelineTables
    settings: Settings
    number: int
    stream: str
    topic: FollowedTopic | None
    unseen: Sequence[str] = ()
    tuning: IngestTuning = INGEST_TUNING
    append: Append = Table.append

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline."""
        return self.of_pipeline.pipeline

    def run(
        self, spark: SparkSession, landed: BatchRecords, state: LogState
    ) -> tuple[BatchResult, LogState]:
        """Ingests the records, and appends the rows that are computed from them.

        Args:
            spark: The session.
            landed: The records.
            state: The log before the micro-batch.

        Returns:
            The result, and the state of the log after the micro-batch.

        Raises:
            BadFileError: A landed file can't be read, or has changed; nothing was appended.
            KafkaDataLostError: Records of the topic are lost.
            ValueError: The arrival column has texts of numbers or times, which sort wrongly.
        """
        source = self.pipeline.source
        order_columns = [
            name for name in (PARTITION, OFFSET, FILE) if name in landed.records.columns
        ]
        if source.is_by_line:
            order_columns += [BLOCK, LINE]
        judged = judged_records(landed.records, source, order_columns)
        ordered, parts, rejected, files, ambiguous = in_stream_order(
            judged,
            source.order_column,
            state,
            by_line=source.is_by_line,
            in_files=landed.in_files,
            ranges=self.settings.arrival_ranges or landed.ranges,
            tuning=self.tuning,
        )
        landed.require_unchanged()
        require_fit_to_order(ordered, source)
        if self.topic is not None:
            self.topic.require_whole(spark, state, parts)
        rows = log_rows(
            state,
            parts,
            rejected,
            self.pipeline.partitions.start,
            source.idle_after,
            self.number,
            self.stream,
        )
        self._quarantine(spark, landed.quarantined)
        accepted = sum(part.rows for part in parts)
        fresh = self._raw(ordered)
        after = state.after(rows)
        windows = self._windows(fresh, accepted, state, after) if accepted else {}
        of_definitions: dict[str, ComputedBatch] = {}

        def ingest() -> list[Appends]:
            refused = ordered.where(F.col("reason").isNotNull())
            self._ingest((fresh, accepted), (refused, sum(rejected.values())))
            self._log(spark, self.of_pipeline.arrival_log, rows)
            return []

        def compute() -> list[Appends]:
            of_definitions.update({name: found.compute() for name, found in windows.items()})
            return [found.appends for found in of_definitions.values()]

        # Windows often read more earlier records than the micro-batch has.
        earlier = max((batch.earlier_records for batch in windows.values()), default=0)
        conf = self.settings.conf_for(earlier + accepted + sum(rejected.values()))
        with configured(ordered.sparkSession, {**_UNSORTED, **conf}):
            # Rows are appended only after both tasks: the log then has the micro-batch.
            for of_task in together([ingest, compute]):
                for appends in of_task:
                    together(appends)
        arrival_units = sorted({part.arrival_unit for part in parts} | set(rejected))
        result = BatchResult(
            self.number,
            arrival_units,
            accepted,
            sum(rejected.values()),
            landed.passed_over,
            after.watermark_ms,
            {name: found.late for name, found in of_definitions.items()},
            {name: found.failed for name, found in of_definitions.items() if found.failed},
            {name: found.undecided for name, found in of_definitions.items() if found.undecided},
            self._without_value(fresh) if accepted else [],
            landed.without_records(files) if source.is_by_line else [],
            landed.quarantined,
            ambiguous,
        )
        return result, after

    def _quarantine(self, spark: SparkSession, files: Sequence[QuarantinedFile]) -> None:
        """Lists the files that the micro-batch leaves out, before its first record is appended.

        The list is written once: a micro-batch that was killed and is run again leaves out the
        same files, whatever became of them.

        Raises:
            BadFileError: A file turned bad after the micro-batch began, so its records count.
        """
        table = self.of_pipeline.quarantined_files
        if not table.is_written:
            return
        of_batch = [file._replace(batch=self.number) for file in files]
        self.append(table, quarantine_rows(spark, of_batch), self.number, len(of_batch))
        listed = {
            row["file"]
            for row in table.rows(spark, ["file", "batch"]).to_pylist()
            if row["batch"] == self.number
        }
        require_none([file.error for file in files if file.file not in listed])

    def _without_value(self, fresh: DataFrame) -> list[str]:
        """The columns unseen so far in which this micro-batch has no value either."""
        if not self.unseen:
            return []
        counts = fresh.agg(*[F.count(f"`{name}`") for name in self.unseen]).collect()[0]
        return [name for name, values in zip(self.unseen, counts, strict=True) if not values]

    def _raw(self, ordered: DataFrame) -> DataFrame:
        accepted = ordered.where(F.col("reason").isNull())
        timed = with_timestamps(accepted, "event_time", "running_max")
        return timed.withColumn("batch", literal(self.number, F.col("offset")))

    def _ingest(self, accepted: tuple[DataFrame, int], rejected: tuple[DataFrame, int]) -> None:
        """Appends accepted and rejected records, if there are any."""
        tables = self.of_pipeline
        of_tables = ((tables.raw_events, *accepted), (tables.rejected_records, *rejected))
        together([append_of(*rows, self.number, self.append) for rows in of_tables if rows[-1]])

    def _windows(
        self, fresh: DataFrame, row_count: int, before: LogState, after: LogState
    ) -> dict[str, BatchWindows]:
        return {
            name: BatchWindows(
                Definition(self.of_pipeline.of(name), self.settings.tuning),
                self.of_pipeline,
                self.number,
                fresh,
                row_count,
                before,
                after,
                self.append,
            )
            for name in self.pipeline.windows
        }

    def _log(self, spark: SparkSession, arrival_log: Table, rows: list[LogRow]) -> None:
        frame = small_frame(
            spark,
            rows,
            "arrival_unit date, source_partition string, _max_event_time_ms bigint, rows bigint, "
            "arrival_unit_rejected bigint, last_offset bigint, _watermark_ms bigint, batch bigint, "
            "stream string, first_offset bigint, ambiguous bigint",
        )
        timed = with_timestamps(frame, "max_event_time", "watermark")
        self.append(arrival_log, timed, self.number, len(rows))
