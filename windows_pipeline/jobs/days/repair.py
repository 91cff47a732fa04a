"""Rebuilds damaged tables that are computed from raw_events and arrival_log.

Nothing here writes raw_events or arrival_log, and no damaged file is deleted: it is set aside. A
final window changes by a correction only, which lists it with the cause (rule E1).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from pathlib import Path

from pyspark.sql import SparkSession

from windows_pipeline.arrival.log import read_log
from windows_pipeline.checks.files import Finding, Fix
from windows_pipeline.config import Pipeline
from windows_pipeline.jobs.correction.run import correct
from windows_pipeline.jobs.days.chain import STEPS, announce, rebuilt, window_jobs
from windows_pipeline.jobs.days.set_aside import set_aside
from windows_pipeline.jobs.job import JobResult
from windows_pipeline.jobs.keyed_windows import KeyedWindowsJob
from windows_pipeline.settings import Settings
from windows_pipeline.storage.files.digests import LIST_NAME, LOG_FOLDER
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import (
    all_tables,
    bookkeeping_tables,
    firing_tables,
    notifications,
    source_tables,
    window_tables,
)

CAUSE = "repair of damaged files"
"""The cause in the rows of corrections."""
_SET_ASIDE = "_damaged"
_STEPS = ("keyed_windows", "alerts", "firings")
_STEP_OF = {
    "keyed_windows": "keyed_windows",
    "late_records": "keyed_windows",
    "failed_windows": "keyed_windows",
    "alerts": "alerts",
    "notifications": "alerts",
    "firings": "firings",
    "early_warnings": "firings",
    "processed": "firings",
}


class RepairRefusedError(Exception):
    """Tables cannot be rebuilt, as tables that they need are damaged; the message has the fix."""


@dataclass
class WindowsRepair:
    """What is to be rebuilt of one window definition.

    Attributes:
        windows_name: The definition.
        steps: The steps whose tables are computed again, of `_STEPS`.
        final_files: The damaged files of final_windows, below the table's folder.
        corrected: The arrival days whose final windows are compared with raw_events again.
        corrects: Whether a correction is made; of all days if `corrected` is empty.
        unreadable: The names of tables whose log cannot be read.
    """

    windows_name: str
    steps: set[str] = field(default_factory=set)
    final_files: list[str] = field(default_factory=list)
    corrected: set[date] = field(default_factory=set)
    corrects: bool = False
    unreadable: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class RepairPlan:
    """A repair that may begin.

    Attributes:
        of_windows: What is rebuilt, by definition.
        bookkeeping: The damaged tables of bookkeeping, which are set aside.
        lists: The tables whose list of digests is damaged.
    """

    of_windows: list[WindowsRepair]
    bookkeeping: list[Table]
    lists: list[Table]

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be rebuilt."""
        return not (self.of_windows or self.bookkeeping or self.lists)

    def lines(self, pipeline: Pipeline) -> Iterator[str]:
        """The steps of the repair as text, one line each."""
        for repair in self.of_windows:
            name = f"{pipeline.name}/{repair.windows_name}"
            for table in sorted(repair.unreadable):
                yield f"{table}: the folder is set aside, and the table created again"
            for step in (step for step in _STEPS if step in repair.steps):
                yield f"{name}/{_TABLES[step]}: computed again from raw_events"
            for file in repair.final_files:
                yield f"{name}/final_windows: {file} is set aside"
            if repair.corrects:
                corrected = sorted(repair.corrected)
                days = f"from {corrected[0]} to {corrected[-1]}" if corrected else "of all days"
                yield (
                    f"{name}/final_windows: windows {days} are computed again; each that differs "
                    f"from the remaining rows is listed in corrections (cause: {CAUSE})"
                )
            if "alerts" in repair.steps:
                yield f"{name}/alerts: retracted alerts of earlier corrections cannot be restored"
        for listed in self.lists:
            yield f"{listed.name}: damaged lines of {LIST_NAME} are dropped"
        files = f"{pipeline.name}/_landed_files"
        for bookkeeping in self.bookkeeping:
            then = (
                "check then reports each landed file as new, until its day is ingested again: "
                f"windows-pipeline run {pipeline.name} --from DAY --to DAY"
                if bookkeeping.name == files
                else "the next run computes its days again"
            )
            yield f"{bookkeeping.name}: the folder is set aside; {then}"


_TABLES = {
    "keyed_windows": "keyed_windows, late_records and failed_windows",
    "alerts": "alerts and notifications",
    "firings": "firings, early_warnings and processed",
}


def plan_repair(
    pipeline: Pipeline, settings: Settings, findings: Collection[Finding]
) -> RepairPlan:
    """Decides what is to be rebuilt; writes nothing.

    Raises:
        RepairRefusedError: raw_events or arrival_log is damaged, so no table can be rebuilt.
    """
    found = [one for one in findings if one.file != LIST_NAME]
    with_lists = {one.table for one in findings if one.file == LIST_NAME}
    sources = source_tables(pipeline, settings.warehouse)
    needed = {sources.raw_events.name, sources.arrival_log.name}
    broken = sorted({one.table for one in found if one.table in needed and one.fix is Fix.SOURCE})
    if broken:
        raise RepairRefusedError(
            f"{' and '.join(broken)} must be undamaged, as other tables are computed from them; "
            "nothing was written. Fix them first, as this says: "
            f"windows-pipeline check {pipeline.name} --files"
        )
    of_windows = []
    for name in pipeline.windows:
        repair = _of_windows(pipeline, name, settings, found)
        if repair.steps or repair.corrects:
            of_windows.append(repair)
    damaged = {one.table for one in found if one.fix is Fix.REPAIR}
    bookkeeping = bookkeeping_tables(pipeline, settings.warehouse)
    every = [*all_tables(pipeline, settings.warehouse), *bookkeeping]
    return RepairPlan(
        of_windows,
        [table for table in bookkeeping if table.name in damaged],
        [table for table in every if table.name in with_lists],
    )


def _of_windows(
    pipeline: Pipeline, windows_name: str, settings: Settings, found: list[Finding]
) -> WindowsRepair:
    repair = WindowsRepair(windows_name)
    tables = window_tables(pipeline, windows_name, settings.warehouse)
    own = {table.name for table in _tables_of(pipeline, windows_name, settings)}
    for one in (one for one in found if one.table in own and one.fix is Fix.REPAIR):
        is_unreadable = one.file is not None and one.file.startswith(LOG_FOLDER)
        if is_unreadable:
            repair.unreadable.add(one.table)
        if one.table != tables.final_windows.name:
            repair.steps.add(_STEP_OF[one.table.rsplit("/", 1)[-1]])
            continue
        repair.corrects = True
        if one.arrival_unit is not None:
            repair.corrected.add(one.arrival_unit)
        if one.file is None:  # windows of undamaged files differ
            repair.steps.add("keyed_windows")
        elif not is_unreadable:
            repair.final_files.append(one.file)
    if tables.final_windows.name in repair.unreadable:
        repair.corrected.clear()
        repair.final_files.clear()
    return repair


def _tables_of(pipeline: Pipeline, windows_name: str, settings: Settings) -> list[Table]:
    """All tables of a definition."""
    fires = firing_tables(pipeline, windows_name, settings.warehouse)
    notified = notifications(pipeline, windows_name, settings.warehouse)
    return [
        *vars(window_tables(pipeline, windows_name, settings.warehouse)).values(),
        *(fires.all if fires else []),
        *([] if notified is None else [notified]),
    ]


def run_repair(
    spark: SparkSession,
    pipeline: Pipeline,
    settings: Settings,
    plan: RepairPlan,
    report: Callable[[str], None] = lambda _: None,
) -> Iterator[tuple[str, JobResult]]:
    """Carries out a plan; after a kill, planning and running it again ends with the same tables.

    Yields:
        The name of each job's first table, and the job's result. After a result that was not
        published, the definition's other steps are left out.

    Raises:
        BatchUnfinishedError: A micro-batch is running or unfinished.
        CorrectionUnfinishedError: A correction is unfinished.
    """
    # First, as jobs write their days to these tables.
    for table in plan.bookkeeping:
        set_aside(Path(table.location))
    for repair in plan.of_windows:
        yield from _repaired(spark, pipeline, settings, repair, report)
    for table in plan.lists:
        if table.exists(spark):
            table.forget_deleted_files(spark)


def _repaired(
    spark: SparkSession,
    pipeline: Pipeline,
    settings: Settings,
    repair: WindowsRepair,
    report: Callable[[str], None],
) -> Iterator[tuple[str, JobResult]]:
    _set_damage_aside(spark, pipeline, settings, repair)
    jobs = window_jobs(pipeline, repair.windows_name, settings)
    of_steps = dict(zip(STEPS[1:], jobs, strict=False))
    computed_again = [of_steps[step] for step in _STEPS if step in repair.steps]
    announce(spark, pipeline, settings, [table for job in computed_again for table in job.tables])
    log = read_log(spark, source_tables(pipeline, settings.warehouse).arrival_log)
    days = sorted({row.arrival_unit for row in log})
    keyed = [job for job in computed_again if isinstance(job, KeyedWindowsJob)]
    later = [job for job in computed_again if job not in keyed]
    # A correction reads these tables, too.
    for table in (table for job in later for table in job.tables):
        table.replace_by_empty(spark)
    steps: list[Callable[[], Iterable[tuple[str, JobResult]]]] = [
        *(partial(rebuilt, spark, job, days, report) for job in keyed),
        *([partial(_corrected, spark, pipeline, settings, repair, days, report)] * repair.corrects),
        *(partial(rebuilt, spark, job, days, report) for job in later),
    ]
    for step in steps:
        results = list(step())
        yield from results
        if not all(result.published for _, result in results):
            return


def _set_damage_aside(
    spark: SparkSession, pipeline: Pipeline, settings: Settings, repair: WindowsRepair
) -> None:
    tables = window_tables(pipeline, repair.windows_name, settings.warehouse)
    for table in _tables_of(pipeline, repair.windows_name, settings):
        if table.name in repair.unreadable:
            set_aside(Path(table.location))
    final = Path(tables.final_windows.location)
    for file in repair.final_files:
        if (final / file).exists():
            aside = final / _SET_ASIDE / file
            aside.parent.mkdir(parents=True, exist_ok=True)
            (final / file).replace(aside)
    if repair.final_files:
        tables.final_windows.take_out_missing_files()
    if tables.final_windows.name in repair.unreadable:
        tables.final_windows.create_if_missing(spark)


def _corrected(
    spark: SparkSession,
    pipeline: Pipeline,
    settings: Settings,
    repair: WindowsRepair,
    days: list[date],
    report: Callable[[str], None],
) -> list[tuple[str, JobResult]]:
    """Compares final windows with raw_events again; each that differs becomes a correction."""
    first = min(repair.corrected, default=days[0])
    last = max(repair.corrected, default=None)
    windows_name = repair.windows_name
    return correct(spark, pipeline, windows_name, settings, first, last, CAUSE, report).results
