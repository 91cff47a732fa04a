"""Corrects published results after old records have changed; records each change (rule E1)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog, read_log
from windows_pipeline.jobs.correction.jobs import (
    AlertsCorrection,
    FinalWindowsCorrection,
    FiringsCorrection,
    KeyedWindowsCorrection,
)
from windows_pipeline.jobs.correction_marker import (
    Correction,
    CorrectionUnfinishedError,
    finished_number,
    is_alone,
    mark_alone,
    mark_begun,
    mark_finished,
    mark_needless,
    unfinished_correction,
)
from windows_pipeline.jobs.job import JobResult, run_job
from windows_pipeline.jobs.keyed_windows import KeyedWindowsJob
from windows_pipeline.jobs.unfinished_batch import (
    BatchUnfinishedError,
    require_finished_batch,
    require_no_batch_since,
)
from windows_pipeline.settings import Settings
from windows_pipeline.storage.arrival_units import days_from, days_text
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import PipelineTables, WindowTables


@dataclass(frozen=True)
class Corrected:
    """The changes of a correction in a day.

    Attributes:
        windows: How many final windows it `changed`, `retracted` and `added`. Those of which only
            the day that closes them differs are `moved_here` and, on the day that closed them
            before, `moved_away`.
        alerts_retracted: How many alerts it retracted.
        alerts_raised: How many alerts it raised.
    """

    windows: dict[str, int]
    alerts_retracted: int
    alerts_raised: int

    def __str__(self) -> str:
        """The counts in a line."""
        windows = [f"{self.windows.get(change, 0):,} {change}" for change in _CHANGES]
        moves = [
            f"{self.windows[move]:,} moved {where} another day"
            for move, where in _MOVES.items()
            if move in self.windows
        ]
        return (
            f"windows: {', '.join([*windows, *moves])}; "
            f"alerts: {self.alerts_retracted:,} retracted, {self.alerts_raised:,} raised"
        )


@dataclass(frozen=True)
class CorrectionResult:
    """The result of a correction.

    Attributes:
        number: The correction's number; None if nothing differed from the published results, or
            if the correction was not published.
        published: Whether every blocking check passed. Otherwise the correction is not finished,
            and the same command resumes it.
        results: Each job's first table and the job's result, in order.
        by_day: What the correction did, by day; days in which nothing differed are left out.
    """

    number: int | None
    published: bool
    results: list[tuple[str, JobResult]]
    by_day: dict[date, Corrected]


_CHANGES = ("changed", "retracted", "added")
_MOVES = {"moved_here": "here from", "moved_away": "to"}


def correct(
    spark: SparkSession,
    tables: PipelineTables,
    windows_name: str,
    settings: Settings,
    first: date,
    last: date | None,
    cause: str,
    report: Callable[[str], None] = lambda _: None,
    begin: Callable[[str], None] = lambda _: None,
) -> CorrectionResult:
    """Recomputes published days from raw_events and changes the results that differ.

    Each final window that differs gets a row in `corrections`; alerts that no longer hold are
    retracted, not deleted. If the pipeline's grace was changed, every published day is
    recomputed, and the tables follow the new grace once the correction ends. If a correction was
    killed, run it again with the same arguments: it resumes under the same number, and the tables
    end up the same.

    Args:
        spark: The session.
        tables: The tables of the pipeline as it is now, whose grace may differ.
        windows_name: The windows whose results are corrected.
        settings: How its jobs run.
        first: The first day to recompute.
        last: The last day to recompute; the last published day if None.
        cause: Why the results are corrected; each row of `corrections` has this text.
        report: Called with a text on what is about to happen.
        begin: Called with the name of a job's first table before the job starts.

    Raises:
        ValueError: There is no cause, or the days are not published.
        CorrectionUnfinishedError: Another correction of these windows was stopped half-way.
        BatchUnfinishedError: The stream's last micro-batch is not in all tables.
        TableMissingError: Nothing was published yet.
        DefinitionChangedError: More than the grace was changed.
    """
    plan = plan_correction(spark, tables, windows_name, settings, first, last, cause)
    return plan.run(spark, report, begin)


def plan_corrections(
    spark: SparkSession,
    tables: PipelineTables,
    settings: Settings,
    first: date,
    last: date | None,
    cause: str,
    windows_name: str | None = None,
) -> list[str]:
    """Requires that days can be corrected now, in one definition or in all that have results.

    For the other arguments and the errors see `correct`. If no definition has results, `correct`
    refuses all.

    Returns:
        The definitions to correct.
    """
    names = [windows_name] if windows_name is not None else list(tables.pipeline.windows)
    names = [name for name in names if tables.of(name).final_windows.exists(spark)] or names
    for name in names:
        plan_correction(spark, tables, name, settings, first, last, cause)
    return names


@dataclass(frozen=True)
class CorrectionPlan:
    """A correction that may begin, or resume where it was stopped.

    Attributes:
        job: The windows to correct.
        log: The arrival log that the plan was made with; it showed no running micro-batch.
        asked: The first and the last day to recompute.
        cause: Why.
        grace_changed: Whether the tables follow another grace.
        other_tables: The tables of firings and notifications, if the definition has any.
        unfinished: The correction to resume; None to begin a new correction.
    """

    job: KeyedWindowsJob
    log: ArrivalLog
    asked: tuple[date, date]
    cause: str
    grace_changed: bool
    other_tables: list[Table]
    unfinished: Correction | None

    def run(
        self,
        spark: SparkSession,
        report: Callable[[str], None] = lambda _: None,
        begin: Callable[[str], None] = lambda _: None,
    ) -> CorrectionResult:
        """Begins or resumes the correction; see `correct`.

        Raises:
            ValueError: A raw day is missing.
            CorrectionUnfinishedError: Another correction of these windows was stopped half-way.
            BatchUnfinishedError: A micro-batch came since the plan was made.
        """
        job = self.job
        tables = job.window_tables
        correction = _begin(spark, job, self.log, self.asked, self.cause, self.unfinished)
        days = days_from(correction.first, correction.last)
        report(
            f"{tables.final_windows.name}: recomputing {days_text(days)}"
            f"{', as the grace was changed' if self.grace_changed else ''}"
        )
        results: list[tuple[str, JobResult]] = []
        for step in correction_jobs(job.of_pipeline, job.windows_name, job.settings, correction):
            if not step.tables[0].exists(spark):
                continue  # the tables of firings, which no run has computed so far
            begin(step.tables[0].name)
            result = run_job(step, spark, days)
            results.append((step.tables[0].name, result))
            if not result.published:
                return CorrectionResult(None, published=False, results=results, by_day={})
        for table in self.other_tables:
            table.adopt_definition(spark)
        notified = self._notified(spark, correction)
        by_day = finish_correction(spark, tables, correction, notified=notified)
        return CorrectionResult(correction.number if by_day else None, True, results, by_day)

    def _notified(self, spark: SparkSession, correction: Correction) -> bool:
        """Whether a row of notifications has the correction's number."""
        number = F.lit(correction.number)
        touched = (F.col("correction") == number) | (F.col("retracted_by") == number)
        return any(
            not table.read(spark).where(touched).isEmpty()
            for table in self.other_tables
            if "retracted_by" in table.schema.names
        )


def plan_correction(
    spark: SparkSession,
    of_pipeline: PipelineTables,
    windows_name: str,
    settings: Settings,
    first: date,
    last: date | None,
    cause: str,
) -> CorrectionPlan:
    """Requires that the days can be corrected now; for arguments and errors see `correct`."""
    if not cause.strip():
        raise ValueError(
            f"cause: must say why published results are corrected, but is {cause!r}; write a reason"
        )
    tables = of_pipeline.of(windows_name)
    for table in (tables.keyed_windows, tables.late_records, tables.final_windows):
        table.require(spark)
    for table in (tables.corrections, tables.alerts, tables.episodes, tables.failed_windows):
        table.create_if_missing(spark)
    fired = [table for table in tables.of_firings if table.exists(spark)]
    if tables.notifications.is_written:
        tables.notifications.create_if_missing(spark)
        fired.append(tables.notifications)
    for table in fired:
        table.require(spark)
    log = read_log(spark, of_pipeline.arrival_log)
    unfinished = unfinished_correction(spark, tables.corrections)
    if unfinished is None:
        # A correction that has begun keeps the stream from finishing its micro-batch.
        require_finished_batch(spark, of_pipeline, log)
    grace_changed = not all(table.follows_definition(spark) for table in tables.of_every_definition)
    asked = _asked_days(spark, tables, None if grace_changed else first, last, unfinished)
    job = KeyedWindowsJob(of_pipeline, windows_name, settings)
    return CorrectionPlan(job, log, asked, cause, grace_changed, fired, unfinished)


def correction_jobs(
    tables: PipelineTables, windows_name: str, settings: Settings, correction: Correction
) -> list[KeyedWindowsCorrection | FinalWindowsCorrection | AlertsCorrection | FiringsCorrection]:
    """The jobs of a correction, in order, on tables that may follow the old grace."""
    of_windows = (tables, windows_name, settings, correction)
    fires = tables.pipeline.windows[windows_name].trigger is not None
    return [
        KeyedWindowsCorrection(*of_windows),
        FinalWindowsCorrection(*of_windows),
        AlertsCorrection(*of_windows),
        *([FiringsCorrection(*of_windows)] if fires else []),
    ]


def finish_correction(
    spark: SparkSession, tables: WindowTables, correction: Correction, *, notified: bool
) -> dict[date, Corrected]:
    """Marks the tables as of the definition and the correction as finished.

    Args:
        spark: The session.
        tables: The tables of the definition.
        correction: The correction.
        notified: Whether a notification has its number.

    Returns:
        What the correction did, by day.
    """
    for table in tables.of_every_definition:
        if not table.follows_definition(spark):
            table.adopt_definition(spark)
    by_day = corrected_by_day(spark, tables, correction.number)
    if by_day or notified:
        mark_finished(spark, tables.corrections, correction)
    else:
        mark_needless(spark, tables.corrections)
    return by_day


def corrected_by_day(
    spark: SparkSession, tables: WindowTables, number: int
) -> dict[date, Corrected]:
    """The changes of a correction, by day."""
    corrections = tables.corrections
    window_key = [name for name in corrections.key if name not in ("correction", "arrival_unit")]
    of_number = corrections.read(spark).where(F.col("correction") == number)
    listed = _with_moves(of_number, window_key)
    alerts = tables.alerts.read(spark)
    retracted = alerts.where(F.col("retracted_by") == number)
    raised = alerts.where(F.col("correction") == number)
    counts: dict[date, dict[str, int]] = {}
    of_alerts = ((retracted, "alerts_retracted"), (raised, "alerts_raised"))
    changes = [
        listed.select("arrival_unit", "change"),
        *(rows.select("arrival_unit", F.lit(change)) for rows, change in of_alerts),
    ]
    every = reduce(DataFrame.union, changes).groupBy("arrival_unit", "change").count()
    for day, name, count in every.collect():
        counts.setdefault(day, {})[name] = count
    return {
        day: Corrected(
            {change: of_day[change] for change in (*_CHANGES, *_MOVES) if change in of_day},
            of_day.get("alerts_retracted", 0),
            of_day.get("alerts_raised", 0),
        )
        for day, of_day in sorted(counts.items())
    }


def _with_moves(listed: DataFrame, window_key: Sequence[str]) -> DataFrame:
    """Names windows of a correction that one day retracted, and another added with the same values.

    Only the day that closes such a window differs, as after a change of the grace.
    """
    of_window = Window.partitionBy(*window_key)
    old, new = (F.first(name, ignorenulls=True).over(of_window) for name in ("old", "new"))
    is_same = (F.count("*").over(of_window) > 1) & old.eqNullSafe(new)
    move = F.when(F.col("change") == "added", "moved_here").otherwise("moved_away")
    return listed.withColumn("change", F.when(is_same, move).otherwise(F.col("change")))


def _asked_days(
    spark: SparkSession,
    tables: WindowTables,
    first: date | None,
    last: date | None,
    unfinished: Correction | None,
) -> tuple[date, date]:
    """The first and the last day to recompute; all published days if `first` is None.

    Raises:
        ValueError: Nothing is published, or the days are not.
    """
    filled = (tables.keyed_windows, tables.final_windows, tables.late_records)
    published = {day for table in filled for day in table.arrival_units(spark)}
    if not published:
        raise ValueError(
            f"{tables.final_windows.name}: must have published days to correct, but has none; "
            f"compute them first: {tables.final_windows.what_fills}"
        )
    earliest, latest = min(published), max(published)
    if unfinished is not None:  # may have left its last days without rows
        latest = max(latest, unfinished.last)
    start = first or earliest
    end = last if first and last else latest
    if end < start or end > latest:
        raise ValueError(
            f"from {start} to {end}: {tables.final_windows.name} must have these days, but has "
            f"published days from {earliest} to {latest}; name the first day that changed, and a "
            "later day or none"
        )
    return start, end


def _begin(
    spark: SparkSession,
    job: KeyedWindowsJob,
    log: ArrivalLog,
    asked: tuple[date, date],
    cause: str,
    unfinished: Correction | None,
) -> Correction:
    """Resumes the correction that was stopped, or begins a new correction.

    Raises:
        CorrectionUnfinishedError: The correction that was stopped has another cause, or lacks days.
    """
    tables = job.window_tables
    if unfinished is not None:
        covered = unfinished.first <= asked[0] and asked[1] <= unfinished.last
        if not covered or cause != unfinished.cause:
            raise CorrectionUnfinishedError(tables.corrections, unfinished)
        _require_arrived(job, log, unfinished.first, unfinished.last)
        if not is_alone(spark, tables.corrections, unfinished):
            _require_alone(spark, job, log, unfinished)
        return unfinished
    _require_arrived(job, log, *asked)
    correction = Correction(
        finished_number(spark, tables.corrections) + 1,
        *asked,
        cause,
        tables.final_windows.version(spark),
        tables.alerts.version(spark),
    )
    mark_begun(spark, tables.corrections, correction)
    _require_alone(spark, job, log, correction)
    return correction


def _require_alone(
    spark: SparkSession, job: KeyedWindowsJob, log: ArrivalLog, begun: Correction
) -> None:
    """Requires that no micro-batch came since the correction was planned.

    A later micro-batch sees that the correction has begun, and is refused.

    Raises:
        BatchUnfinishedError: A micro-batch came; the correction is withdrawn before it wrote rows.
    """
    corrections = job.window_tables.corrections
    try:
        require_no_batch_since(spark, job.of_pipeline, log, job.arrived(spark))
    except BatchUnfinishedError:
        mark_needless(spark, corrections)
        raise
    mark_alone(spark, corrections, begun)


def _require_arrived(job: KeyedWindowsJob, log: ArrivalLog, first: date, last: date) -> None:
    """Refuses days after a missing day, as all their windows would be retracted.

    Raises:
        ValueError: A raw day is missing, or the first day is before the pipeline's.
    """
    days = days_from(first, last)
    arrivals = job.arrivals(log)
    if first < arrivals.first_day:
        raise ValueError(
            f"from {first}: the pipeline's partitions begin at {arrivals.first_day}; write that "
            "day or a later one"
        )
    if len(arrivals.arrival_units(days)) < len(days):
        raise ValueError(
            f"from {first} to {last}: the raw day {arrivals.next_day} is missing, and no window "
            "closes past it; materialize raw_events of that day first"
        )
