"""Runs a pipeline as a Structured Streaming query, once or until it is interrupted."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from threading import Event

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from windows_pipeline.arrival.log import ArrivalLog, is_mixed, read_log
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs import AlertsJob
from windows_pipeline.jobs.quarantine import quarantined
from windows_pipeline.jobs.raw_rows import require_raw_rows
from windows_pipeline.jobs.unfinished_batch import (
    BatchUnfinishedError,
    is_there,
    require_finished_batch,
)
from windows_pipeline.settings import Settings
from windows_pipeline.sources.bad_files import BadFileError, naming_bad_files, with_more
from windows_pipeline.sources.kafka.state import topic_state
from windows_pipeline.sources.landing import landing_of
from windows_pipeline.sources.tuning import INGEST_TUNING, IngestTuning
from windows_pipeline.storage.files.damage import PUT_BACK
from windows_pipeline.storage.table import Table, noted
from windows_pipeline.storage.tables import PipelineTables
from windows_pipeline.streaming.checkpoint import StreamBehindError, lacking
from windows_pipeline.streaming.followed_topic import FollowedTopic
from windows_pipeline.streaming.landed import Landing
from windows_pipeline.streaming.log_state import (
    LastLogged,
    LogState,
    last_logged,
    state_before,
)
from windows_pipeline.streaming.micro_batch import BatchResult, MicroBatch
from windows_pipeline.streaming.sources import open_stream, topic_of
from windows_pipeline.streaming.windows import Append
from windows_pipeline.windows.durations import duration_ms

_POLL_S = 0.05


@dataclass(frozen=True)
class Stream:
    """A pipeline's stream, whose tables allow it to run; see `prepared_stream`."""

    spark: SparkSession
    of_pipeline: PipelineTables
    settings: Settings
    tuning: IngestTuning

    @property
    def pipeline(self) -> Pipeline:
        """The pipeline."""
        return self.of_pipeline.pipeline

    def run(
        self,
        *,
        every: str | None = None,
        on_batch: Callable[[BatchResult], None] = lambda _: None,
        append: Append = Table.append,
    ) -> None:
        """Ingests the records that came since the last run, like `run_stream`.

        Args:
            every: How often to look for more records; None to end with those that are there.
            on_batch: Called with the result of each micro-batch.
            append: Appends a micro-batch's rows to a table.
        """
        source = self.pipeline.source
        read = source.path if source.kafka is None else f"topic {topic_of(source).topic}"
        checkpoint = self.of_pipeline.stream_checkpoint
        with noted(f"stream {self.pipeline.name} of {read} (checkpoint {checkpoint})"):
            self._run(every, on_batch, append)

    def _run(
        self, every: str | None, on_batch: Callable[[BatchResult], None], append: Append
    ) -> None:
        self._require_listed()
        topic = _followed_topic(self.spark, self.pipeline)
        trigger = {"availableNow": True} if every is None else {"processingTime": _interval(every)}
        records, landing = open_stream(self.spark, self.pipeline, self.settings, self.tuning)
        batches = _Batches(self, landing, topic, on_batch, append)
        query = (
            records.writeStream.queryName(f"{self.pipeline.name} stream")
            .option("checkpointLocation", self.of_pipeline.stream_checkpoint)
            .foreachBatch(batches.take)
            .trigger(**trigger)
            .start()
        )
        batches.begin(str(query.id))
        try:
            # Python handles an interrupt between calls to Spark, not within one.
            while query.isActive:
                time.sleep(_POLL_S)
            query.awaitTermination()
        except StreamingQueryException as error:
            if batches.error is None:
                self._require_listed()
            raise batches.error or error from None
        finally:
            query.stop()

    def _require_listed(self) -> None:
        """Requires that Spark lists all files: it silently skips some bad files.

        Raises:
            BadFileError: Spark would silently skip files.
        """
        source = self.pipeline.source
        if source.is_landed:
            with suppress(FileNotFoundError):  # a folder may have been removed meanwhile
                landing_of(source, self.settings.landing).require_listed(source.format)


def prepared_stream(
    spark: SparkSession,
    tables: PipelineTables,
    settings: Settings,
    tuning: IngestTuning = INGEST_TUNING,
) -> Stream:
    """Creates the missing tables, and requires that the other tables allow the stream to resume.

    Args:
        spark: A classic session, in time zone UTC.
        tables: The tables of the pipeline.
        settings: Where landed files lie.
        tuning: How many records a task takes.

    Raises:
        CorrectionUnfinishedError: A correction of its windows is not finished.
        DefinitionChangedError: A table holds rows of another definition.
        RawRowsMissingError: raw_events has fewer rows than the arrival log names.
        StreamBehindError: The checkpoint lacks micro-batches that the tables have,
            or a table lacks rows that others have.
    """
    _require_whole(spark, tables)
    # First, as a correction that was killed may have changed the definition of some tables.
    _refuse_while_correcting(spark, tables, settings)
    _make_tables(spark, tables)
    return Stream(spark, tables, settings, tuning)


def run_stream(
    spark: SparkSession,
    tables: PipelineTables,
    settings: Settings,
    *,
    every: str | None = None,
    on_batch: Callable[[BatchResult], None] = lambda _: None,
    append: Append = Table.append,
    tuning: IngestTuning = INGEST_TUNING,
) -> None:
    """Ingests the records that came since the last run, and computes their results.

    A stream that was stopped or killed anywhere resumes at the same point when it is run again;
    every record is in the tables once.

    Args:
        spark: A classic session, in time zone UTC.
        tables: The tables of the pipeline.
        settings: Where landed files lie.
        every: How often to look for more records, such as '10 seconds'; until the stream is
            interrupted. None to end when all records that are there now are ingested.
        on_batch: Called with the result of each micro-batch.
        append: Appends a micro-batch's rows to a table.
        tuning: How many records a task takes.

    Raises:
        BadFileError: A landed file is bad, and the source does not skip bad files, or the file
            has a name that Spark can't list (A8); nothing of its micro-batch is ingested, and the
            next run begins with that micro-batch.
        CorrectionUnfinishedError: A correction of its windows is not finished.
        DefinitionChangedError: A table holds rows of another definition.
        KafkaDataLostError: Records of a topic are lost.
        RawRowsMissingError: raw_events has fewer rows than the arrival log names.
        StreamBehindError: The checkpoint belongs to other tables; a table has a rebuild that has
            not ended, or is new while others have rows.
        Exception: Any other error of Spark, of a micro-batch, or of `on_batch`; a note names
            source and checkpoint.
    """
    stream = prepared_stream(spark, tables, settings, tuning)
    stream.run(every=every, on_batch=on_batch, append=append)


def _require_whole(spark: SparkSession, tables: PipelineTables) -> None:
    """Requires that raw_events and the checkpoint have all that the arrival log names.

    Raises:
        RawRowsMissingError: raw_events lacks rows.
        StreamBehindError: The checkpoint lacks the log's newest micro-batch, or the log also has
            days that were ingested whole.
    """
    pipeline = tables.pipeline
    if not tables.arrival_log.exists(spark):
        return
    log = read_log(spark, tables.arrival_log)
    require_raw_rows(spark, pipeline, tables.raw_events, log, {row.arrival_unit for row in log})
    last = last_logged(log).batch
    if last is None:
        return
    if is_mixed(log):
        raise StreamBehindError(
            f"{pipeline.name}: its tables hold days that were ingested whole and records of a "
            "stream, so a record may be there twice. Start over by days, from the landed files: "
            f"windows-pipeline rebuild {pipeline.name} --from raw_events"
        )
    lack = lacking(
        tables.stream_checkpoint,
        last,
        lambda file: is_there(spark, file),
    )
    if lack is not None:
        raise StreamBehindError(f"{pipeline.name}: {lack}; {PUT_BACK}")


def _interval(every: str) -> str:
    """How often to look for more records, as Spark writes it: it knows fewer names of units.

    Raises:
        ValueError: The text is not a duration, or is negative.
    """
    ms = duration_ms(every, "every")
    if ms < 0:
        raise ValueError(f"every: {every!r} must not be negative; write '0 seconds' or more")
    return f"{ms} milliseconds"


def _make_tables(spark: SparkSession, of_pipeline: PipelineTables) -> None:
    """Creates missing tables; a rebuild must then fill them with earlier micro-batches.

    Raises:
        StreamBehindError: A table lacks rows of micro-batches that other tables have.
    """
    pipeline = of_pipeline.pipeline
    arrival_log = of_pipeline.arrival_log
    log = read_log(spark, arrival_log) if arrival_log.exists(spark) else ()
    came = last_logged(log).batch is not None
    may_be_empty = [of_pipeline.quarantined_files]
    for of_windows in map(of_pipeline.of, pipeline.windows):
        # Episodes from before the pipeline had targets are not notified.
        may_be_empty += [of_windows.corrections, of_windows.notifications]
    tables = of_pipeline.written
    for table in tables:
        if table.exists(spark):  # a changed definition has another error than a new table
            table.require(spark)
    lacking = [
        table for table in tables if came and table not in may_be_empty and not table.exists(spark)
    ]
    if lacking:
        _require_finished_before(spark, of_pipeline, log, lacking[0])
    for table in tables:
        table.create_if_missing(spark, rows_to_come=table in lacking)
    _refuse_while_rebuilding(spark, tables)


def _require_finished_before(
    spark: SparkSession, tables: PipelineTables, log: ArrivalLog, new: Table
) -> None:
    """Requires that no micro-batch is unfinished when a table is added.

    Otherwise they would block each other: the new table needs a rebuild, which waits for the end
    of the micro-batch, and the micro-batch, run again, would wait for the rebuild.

    Raises:
        StreamBehindError: A micro-batch is unfinished.
    """
    try:
        require_finished_batch(spark, tables, log)
    except BatchUnfinishedError as error:
        raise StreamBehindError(
            f"{new.name} is new, and {error}. First take the new definition out of the pipeline's "
            "file again"
        ) from error


def _refuse_while_rebuilding(spark: SparkSession, tables: Sequence[Table]) -> None:
    """Refuses to begin a micro-batch while a table lacks rows of earlier micro-batches.

    Raises:
        StreamBehindError: A table lacks rows.
    """
    for table in tables:
        if table.is_rebuild_unfinished(spark):
            raise StreamBehindError(
                f"{table.name} lacks what came before, as it is new or its rebuild is not "
                f"finished. Fill it first: windows-pipeline rebuild {table.name.split('/')[0]}"
            )


def _refuse_while_correcting(
    spark: SparkSession, tables: PipelineTables, settings: Settings
) -> None:
    """Refuses to begin a micro-batch while a correction of the pipeline is not finished.

    Raises:
        CorrectionUnfinishedError: A correction is not finished.
    """
    for name in tables.pipeline.windows:
        AlertsJob(tables, name, settings).refuse_while_correcting(spark)


def _followed_topic(spark: SparkSession, pipeline: Pipeline) -> FollowedTopic | None:
    """The topic as it is now, if the source is a topic.

    Raises:
        NoConnectorError: Spark has no connector for Kafka.
        Py4JJavaError: No broker answers, or it has no such topic.
        SeveralPartitionsError: The topic has several partitions, and must have one.
    """
    declared = pipeline.source.kafka
    if declared is None:
        return None
    topic = topic_of(pipeline.source)
    state = topic_state(spark, topic)
    followed = FollowedTopic(
        topic,
        state.topic_id,
        holes_allowed=declared.holes == "allowed",
        one_partition=declared.partitions == "one",
    )
    followed.require_partitions(state)
    return followed


class _Batches:
    """Ingests micro-batches one after another."""

    def __init__(
        self,
        stream: Stream,
        landing: Landing,
        topic: FollowedTopic | None,
        on_batch: Callable[[BatchResult], None],
        append: Append,
    ) -> None:
        self._spark = stream.spark
        self._pipeline = pipeline = stream.pipeline
        self._settings = stream.settings
        self._tuning = stream.tuning
        self._append = append
        self._landing = landing
        self._topic = topic
        self._on_batch = on_batch
        self._begun = Event()
        self._stream = ""
        self._state: LogState | None = None
        self._unseen: list[str] = list(pipeline.source.values)
        self._tables = stream.of_pipeline
        self.error: Exception | None = None

    def begin(self, query_id: str) -> None:
        """Releases the first micro-batch, now that the query's id is known."""
        self._stream = query_id if self._topic is None else self._topic.stream_of(query_id)
        self._begun.set()

    def take(self, rows: DataFrame, number: int) -> None:
        """Ingests a micro-batch."""
        self._begun.wait()
        try:
            self._ingest(rows, number)
        except Exception as error:
            self.error = error  # Spark raises its own exception, which has only the text
            raise

    def _ingest(self, rows: DataFrame, number: int) -> None:
        # A correction or rebuild that has begun since then does not read this micro-batch.
        _refuse_while_correcting(self._spark, self._tables, self._settings)
        _refuse_while_rebuilding(self._spark, self._tables.written)
        state = self._state_before(number)
        start = self._pipeline.partitions.start
        last_arrival_unit = max(state.last_arrival_unit or start, start)
        batch = MicroBatch(
            self._tables,
            self._settings,
            number,
            self._stream,
            self._topic,
            self._unseen,
            self._tuning,
            self._append,
        )
        bad = self._left_out(number)
        while True:
            try:
                with naming_bad_files():
                    landed = self._landing(self._spark, rows, last_arrival_unit, bad)
                    result, self._state = batch.run(self._spark, landed, state)
                break
            except BadFileError as error:
                more = with_more(bad, error) if self._pipeline.source.skips_bad_files else None
                if more is None:
                    raise
                bad = more
        if result.accepted:
            self._unseen = result.without_value
        self._on_batch(result)

    def _left_out(self, number: int) -> tuple[BadFileError, ...]:
        """The files that the micro-batch left out before it was killed; none if it is new."""
        if not self._pipeline.source.skips_bad_files:
            return ()
        listed = quarantined(self._spark, self._tables)
        return tuple(file.error for file in listed if file.batch == number)

    def _state_before(self, number: int) -> LogState:
        state = self._state
        if state is not None and state.batch == number - 1:
            return state
        source = self._pipeline.source
        log = read_log(self._spark, self._tables.arrival_log)
        start = self._pipeline.partitions.start
        self._require_its_own(last_logged(log), number)
        merges = any(windows.trigger for windows in self._pipeline.windows.values())
        state = state_before(number, log, start, source.idle_after, merges=merges)
        if state.batch < 0 and state.log:
            raise StreamBehindError(
                f"{self._pipeline.name}: its tables hold days that were ingested whole, whose "
                "records a stream would bring again. Declare another pipeline for the stream"
            )
        return state

    def _require_its_own(self, last: LastLogged, number: int) -> None:
        """Refuses a checkpoint or a topic that would bring records twice, or leave records out."""
        name = self._pipeline.name
        if self._topic is not None and last.stream is not None:
            self._topic.require_goes_on(self._spark, last.stream)
        if last.stream not in (None, self._stream):
            checkpoint = self._tables.stream_checkpoint
            raise StreamBehindError(
                f"{name}: its tables were filled by stream {last.stream}, this is "
                f"{self._stream}, which starts over, as {checkpoint} holds no checkpoint of "
                f"that stream; {PUT_BACK}"
            )
        if last.batch is None and number:
            raise StreamBehindError(
                f"{name}: its tables have no micro-batch, the checkpoint ends with {number - 1}. "
                "Put the tables back; or delete the pipeline's folder of tables, which has the "
                "checkpoint, too, and start over"
            )
        if last.batch not in (None, number - 1, number):
            raise StreamBehindError(
                f"{name}: its tables end with micro-batch {last.batch}, the checkpoint with "
                f"{number - 1}; {PUT_BACK}"
            )
