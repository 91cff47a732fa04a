"""Corrects what was published where history has changed (rule E1): never silently."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.arrival.log import ArrivalLog, read_log
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs.correction.jobs import (
    AlertsCorrection,
    FinalWindowsCorrection,
    FiringsCorrection,
    KeyedWindowsCorrection,
)
from windows_pipeline.jobs.correction.marker import (
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
from windows_pipeline.storage.arrival_units import days_from
from windows_pipeline.storage.catalog import (
    WindowTables,
    firing_tables,
    source_tables,
    window_tables,
)


@dataclass(frozen=True)
class Corrected:
    """What a correction did to a unit.

    Attributes:
        windows: Final windows by what became of them: `changed`, `retracted`, `added`.
        alerts_retracted: How many alerts were taken back.
        alerts_raised: How many were raised.
    """

    windows: dict[str, int]
    alerts_retracted: int
    alerts_raised: int

    def __str__(self) -> str:
        """The same in a few words."""
        windows = [f"{self.windows.get(what, 0):,} {what}" for what in _WHAT]
        return (
            f"windows: {', '.join(windows)}; "
            f"alerts: {self.alerts_retracted:,} retracted, {self.alerts_raised:,} raised"
        )


@dataclass(frozen=True)
class CorrectionResult:
    """What became of a correction.

    Attributes:
        number: Its number; None where nothing differed from what was published, or where it
            was not published.
        published: Whether every blocking check passed; otherwise it is not finished, and the
            same command goes on with it.
        results: The jobs' results, by the name of their first table, in order.
        units: What it did, by unit; units in which nothing differed are left out.
    """

    number: int | None
    published: bool
    results: list[tuple[str, JobResult]]
    units: dict[date, Corrected]


_WHAT = ("changed", "retracted", "added")


def correct(
    spark: SparkSession,
    pipeline: Pipeline,
    windows_name: str,
    settings: Settings,
    first: date,
    last: date | None,
    cause: str,
    said: Callable[[str], None] = lambda _: None,
) -> CorrectionResult:
    """Computes published units anew from raw_events and changes what comes out differently.

    Each final window that differs gets a row in `corrections`; alerts that no longer hold are
    taken back, not deleted. Where the pipeline's grace was changed, every published unit is
    computed anew, and the tables follow the new grace from the end on. Killed anywhere and run
    again with the same arguments, it ends in the same tables, with one number.

    Args:
        spark: The session.
        pipeline: The pipeline as it is now.
        windows_name: The windows whose results are corrected.
        settings: Where the tables lie.
        first: The first unit to compute anew.
        last: The last one; the last published one if None.
        cause: Why; stands in each row of `corrections`.
        said: Is told what is about to happen.

    Raises:
        ValueError: No cause, or days that are not there.
        CorrectionUnfinishedError: Another correction of these windows was stopped half-way.
        BatchUnfinishedError: The last micro-batch of its stream is not in all tables.
        TableMissingError: Nothing was published yet.
        DefinitionChangedError: More than the grace was changed.
    """
    if not cause.strip():
        raise ValueError(f"cause: {cause!r}; say why what was published is corrected")
    own = window_tables(pipeline, windows_name, settings.warehouse).before_correction()
    for table in (own.keyed_windows, own.late_records, own.final_windows):
        table.require(spark)
    for table in (own.corrections, own.alerts):
        table.create_if_missing(spark)
    fires = firing_tables(pipeline, windows_name, settings.warehouse)
    told = (
        [table for table in fires.before_correction().all if table.exists(spark)] if fires else []
    )
    for table in told:
        table.require(spark)
    log = read_log(spark, source_tables(pipeline, settings.warehouse).arrival_log)
    unfinished = unfinished_correction(spark, own.corrections)
    if unfinished is None:
        # Before it begins: the stream goes on only where no correction is half-way.
        require_finished_batch(spark, pipeline, settings.warehouse, log)
    grace_changed = not all(table.follows_definition(spark) for table in vars(own).values())
    asked = _asked_days(spark, own, None if grace_changed else first, last, unfinished)
    job = KeyedWindowsJob(pipeline, windows_name, settings)
    correction = _begin(spark, job, log, asked, cause, unfinished)
    days = days_from(correction.first, correction.last)
    said(
        f"{own.final_windows.name}: {len(days)} days, {days[0]} to {days[-1]}, anew"
        f"{', as the grace was changed' if grace_changed else ''}"
    )
    results: list[tuple[str, JobResult]] = []
    for step in correction_jobs(pipeline, windows_name, settings, correction):
        if not step.tables[0].exists(spark):
            continue  # firings, which nobody has asked for so far
        result = run_job(step, spark, days)
        results.append((step.tables[0].name, result))
        if not result.published:
            return CorrectionResult(None, published=False, results=results, units={})
    for table in told:
        table.adopt_definition(spark)
    units = finish_correction(spark, own, correction)
    return CorrectionResult(correction.number if units else None, True, results, units)


def correction_jobs(
    pipeline: Pipeline, windows_name: str, settings: Settings, correction: Correction
) -> list[KeyedWindowsCorrection | FinalWindowsCorrection | AlertsCorrection | FiringsCorrection]:
    """The jobs of a correction, in order."""
    of_windows = (pipeline, windows_name, settings, correction)
    fires = pipeline.windows[windows_name].trigger is not None
    return [
        KeyedWindowsCorrection(*of_windows),
        FinalWindowsCorrection(*of_windows),
        AlertsCorrection(*of_windows),
        *([FiringsCorrection(*of_windows)] if fires else []),
    ]


def finish_correction(
    spark: SparkSession, own: WindowTables, correction: Correction
) -> dict[date, Corrected]:
    """Has the tables follow the definition and says that all is written; returns what was done."""
    for table in vars(own).values():
        if not table.follows_definition(spark):
            table.adopt_definition(spark)
    units = corrected_units(spark, own, correction.number)
    if units:
        mark_finished(spark, own.corrections, correction)
    else:
        mark_needless(spark, own.corrections)
    return units


def corrected_units(spark: SparkSession, own: WindowTables, number: int) -> dict[date, Corrected]:
    """What a correction did, by unit."""
    listed = own.corrections.read(spark).where(F.col("correction") == number)
    alerts = own.alerts.read(spark)
    retracted = alerts.where(F.col("retracted_by") == number)
    raised = alerts.where(F.col("correction") == number)
    counts: dict[date, dict[str, int]] = {}
    for what, rows in (("", listed), ("back", retracted), ("raised", raised)):
        kind = F.col("change") if not what else F.lit(what)
        for row in _counted(rows.select("arrival_unit", kind.alias("what"))):
            counts.setdefault(row[0], {})[row[1]] = row[2]
    return {
        unit: Corrected(
            {what: of_unit[what] for what in _WHAT if what in of_unit},
            of_unit.get("back", 0),
            of_unit.get("raised", 0),
        )
        for unit, of_unit in sorted(counts.items())
    }


def _counted(rows: DataFrame) -> list[tuple[date, str, int]]:
    return [tuple(row) for row in rows.groupBy("arrival_unit", "what").count().collect()]


def _asked_days(
    spark: SparkSession,
    own: WindowTables,
    first: date | None,
    last: date | None,
    unfinished: Correction | None,
) -> tuple[date, date]:
    """The first and the last day to compute anew; all published ones where none is said."""
    published = own.keyed_windows.read(spark).select("arrival_unit")
    for table in (own.final_windows, own.late_records):
        published = published.unionByName(table.read(spark).select("arrival_unit"))
    earliest, latest = published.agg(F.min("arrival_unit"), F.max("arrival_unit")).collect()[0]
    if earliest is None:
        raise ValueError(f"{own.final_windows.name}: nothing is published, so nothing to correct")
    if unfinished is not None:  # its first steps may have left its last days without rows
        latest = max(latest, unfinished.last)
    start = first or earliest
    end = last if first and last else latest
    if end < start or end > latest:
        raise ValueError(
            f"from {start} to {end}: {own.final_windows.name} has published days from "
            f"{earliest} to {latest}; take the first day that changed, and a later one or none"
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
    """Takes up the correction that was stopped, if it covers what is asked for, or begins one."""
    own = job.own
    if unfinished is not None:
        covered = unfinished.first <= asked[0] and asked[1] <= unfinished.last
        if not covered or cause != unfinished.cause:
            raise CorrectionUnfinishedError(own.corrections, unfinished)
        _require_arrived(job, log, unfinished.first, unfinished.last)
        if not is_alone(spark, own.corrections, unfinished):
            _require_alone(spark, job, log, unfinished)
        return unfinished
    _require_arrived(job, log, *asked)
    correction = Correction(
        finished_number(spark, own.corrections) + 1,
        *asked,
        cause,
        own.final_windows.version(spark),
        own.alerts.version(spark),
    )
    mark_begun(spark, own.corrections, correction)
    _require_alone(spark, job, log, correction)
    return correction


def _require_alone(
    spark: SparkSession, job: KeyedWindowsJob, log: ArrivalLog, begun: Correction
) -> None:
    """Looks for a micro-batch that came before it was begun; later ones see that it was.

    Raises:
        BatchUnfinishedError: One did. The correction has written nothing, and is none any more.
    """
    corrections = job.own.corrections
    try:
        require_no_batch_since(spark, job.pipeline, job.settings.warehouse, log, job.arrived(spark))
    except BatchUnfinishedError:
        mark_needless(spark, corrections)
        raise
    mark_alone(spark, corrections, begun)


def _require_arrived(job: KeyedWindowsJob, log: ArrivalLog, first: date, last: date) -> None:
    """Refuses days past a missing one: all their windows would be taken back."""
    days = days_from(first, last)
    arrivals = job.arrivals(log)
    if first < arrivals.first_day:
        raise ValueError(f"from {first}: the pipeline's partitions begin {arrivals.first_day}")
    if len(arrivals.units(days)) < len(days):
        raise ValueError(
            f"from {first} to {last}: the raw day {arrivals.next_day} is missing, and nothing "
            "closes past it; materialize raw_events of that day first"
        )
