"""The command line: `windows-pipeline --help`."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from windows_pipeline.checks.run import CheckResult
from windows_pipeline.cli.printed import (
    PrintedBatches,
    console,
    print_changed,
    print_checks,
    print_jobs,
    print_records,
    print_rows,
    print_skipped,
    print_waiting,
    print_without_records,
    tell,
)
from windows_pipeline.compat.spark_session import SparkStartError, start_session
from windows_pipeline.config import (
    ConfigError,
    FolderProblem,
    Pipeline,
    folder_problem,
    load_files,
    load_folder,
)
from windows_pipeline.incremental.alerts import episodes, standing
from windows_pipeline.jobs import Job, RawEventsJob, check_published, published_days
from windows_pipeline.jobs.chain import days_landed, rebuild, skipped, why_passed_over, window_jobs
from windows_pipeline.jobs.correction.marker import CorrectionUnfinishedError
from windows_pipeline.jobs.correction.run import correct
from windows_pipeline.jobs.day_runs import (
    DaysToRun,
    changed_files,
    days_waiting,
    files_without_records,
    of_all,
    run_days,
    runs_to_do,
)
from windows_pipeline.jobs.forget import forget_day
from windows_pipeline.jobs.raw_events import FedByStreamError
from windows_pipeline.jobs.raw_rows import RawRowsMissingError
from windows_pipeline.jobs.unfinished_batch import BatchUnfinishedError
from windows_pipeline.query.trace import records_of_alert
from windows_pipeline.settings import Settings, SettingsError, load_settings
from windows_pipeline.sources.kafka_errors import KafkaSourceError
from windows_pipeline.storage.arrival_units import days_from, days_text
from windows_pipeline.storage.catalog import all_tables, window_tables
from windows_pipeline.storage.maintenance import maintain
from windows_pipeline.storage.table import DefinitionChangedError, TableMissingError
from windows_pipeline.streaming import StreamBehindError, run_stream
from windows_pipeline.windows.durations import duration_ms

app = typer.Typer(
    help="Exact event-time windows on Spark and Delta.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Step(StrEnum):
    """A step of the chain, by its main table."""

    RAW_EVENTS = "raw_events"
    KEYED_WINDOWS = "keyed_windows"
    FINAL_WINDOWS = "final_windows"
    ALERTS = "alerts"
    FIRINGS = "firings"


PipelineName = Annotated[str, typer.Argument(metavar="PIPELINE", help="A pipeline's name.")]
WindowsName = Annotated[
    str | None, typer.Option("--windows", help="A window definition; the only one if left out.")
]


@app.command()
def validate(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Pipeline files; all of the settings' if left out.")
    ] = None,
) -> None:
    """Reads pipeline files and says what is wrong with them.

    A source's folder that is not there yet is a warning; a file in its place is refused.
    """
    loaded = load_files(files) if files else load_folder(_settings().pipelines)
    if loaded.problems:
        raise ConfigError(loaded.all_problems)
    pipelines = loaded.pipelines
    found = _misplaced(pipelines)
    refused = [each.text for each in found if each.refused]
    if refused:
        raise ConfigError(refused)
    for each in found:
        tell("warning", each.text)
    for pipeline in pipelines.values():
        console.print(f"{pipeline.name}: valid; windows: {', '.join(pipeline.windows)}")


@app.command()
def check(pipeline: PipelineName) -> None:
    """Runs every check on the published tables; exit status 1 where one fails, or days wait.

    Steps of which nothing was published so far, as of a definition that is new, are named.
    """
    settings, declared, spark = _open(pipeline)
    jobs: list[Job] = [RawEventsJob(declared, settings)]
    for name in declared.windows:
        jobs += window_jobs(declared, name, settings)
    results: list[tuple[str, CheckResult]] = []
    for job in jobs:
        if job is not jobs[0] and not any(table.exists(spark) for table in job.tables):
            console.print(f"{job.tables[0].name}: not there yet")
            continue
        for table in job.tables:
            table.require(spark)
        published = published_days(job, spark)
        if published:
            # Days without any row, too: their records may be in no window.
            days = sorted({*published, *(row.arrival_unit for row in job.arrived(spark))})
            found = check_published(job, spark, days, recount=True)
            results += [(job.tables[0].name, result) for result in found]
    print_checks(results)
    _print_records(spark, settings, declared, None)
    waits = declared.source.is_landed and _print_left(spark, settings, declared)
    failed = any(not result.passed and not result.check.is_warning for _, result in results)
    if waits or failed:
        raise typer.Exit(1)


@app.command("run")
def run_command(
    pipeline: PipelineName,
    first: Annotated[
        str | None,
        typer.Option("--from", metavar="DAY", help="The first day; that of --to if left out."),
    ] = None,
    last: Annotated[
        str | None,
        typer.Option("--to", metavar="DAY", help="The last day; that of --from if left out."),
    ] = None,
) -> None:
    """Ingests landed days and computes what follows; without days, what is new or waited."""
    asked = [_day(option, text) for option, text in (("--from", first), ("--to", last)) if text]
    settings, declared = _declared(pipeline)
    if not declared.source.by_days:
        raise ValueError(f"{pipeline} follows its source: windows-pipeline stream {pipeline}")
    between = _days_between(declared, asked[0], asked[-1]) if asked else []
    spark = _started(settings)
    if between:
        runs = [DaysToRun(between, of_all(declared, set(between)))]
    else:
        runs = runs_to_do(spark, declared, settings)
    went_well: list[bool] = []
    for days in runs:
        console.print(f"{pipeline}: {days_text(days.days)}")
        results = run_days(spark, declared, settings, days, console.print)
        went_well += print_jobs(results)
    if not runs:
        console.print(f"{pipeline}: no landed day is new; nothing to do")
    _print_records(spark, settings, declared, {day for days in runs for day in days.days})
    if _print_left(spark, settings, declared) or not all(went_well):
        raise typer.Exit(1)


@app.command("rebuild")
def rebuild_command(
    pipeline: PipelineName,
    from_step: Annotated[
        Step | None, typer.Option("--from", help="Rebuild from this table on, changed or not.")
    ] = None,
) -> None:
    """Computes anew the tables that follow an old definition, and what depends on them."""
    settings, declared, spark = _open(pipeline)
    published = print_jobs(rebuild(spark, declared, settings, from_step, console.print))
    if not published:
        console.print(
            f"{pipeline}: every table follows {declared.name}'s definition; nothing to do"
        )
    if not all(published):
        raise typer.Exit(1)


@app.command("stream")
def stream_command(
    pipeline: PipelineName,
    every: Annotated[
        str | None,
        typer.Option(help="Look for more so often ('10 seconds'), until interrupted."),
    ] = None,
) -> None:
    """Ingests what came since the last run, and computes what follows; once, or on and on.

    Exit status 1 where more records of the run are rejected or late than the pipeline's limits.
    """
    if every is not None:
        # Spark has words of its own for units.
        every = f"{duration_ms(every, '--every')} milliseconds"
    settings, declared, spark = _open(pipeline)
    if declared.source.is_landed:
        landing = RawEventsJob(declared, settings).landing
        print_skipped(pipeline, skipped(declared, landing))
    batches = PrintedBatches(declared)
    try:
        run_stream(spark, declared, settings, every=every, on_batch=batches.add)
        if not batches.came:
            console.print(f"{pipeline}: nothing new has come")
    except KeyboardInterrupt:
        console.print("stopped; run it again to go on")
    if batches.went_wrong:
        raise typer.Exit(1)


@app.command("correct")
def correct_command(
    pipeline: PipelineName,
    first: Annotated[
        str, typer.Option("--from", metavar="DAY", help="The first arrival day to compute anew.")
    ],
    cause: Annotated[str, typer.Option(help="Why; stands in each row of corrections.")],
    last: Annotated[
        str | None,
        typer.Option("--to", metavar="DAY", help="The last one; the last published if left out."),
    ] = None,
    windows: WindowsName = None,
) -> None:
    """Corrects what was published of days whose raw records, or whose grace, were changed."""
    from_day = _day("--from", first)
    to_day = None if last is None else _day("--to", last)
    settings, declared = _declared(pipeline)
    name = _windows(declared, windows)
    spark = _started(settings)
    done = correct(spark, declared, name, settings, from_day, to_day, cause, console.print)
    for table, result in done.results:
        print_checks((table, found) for found in result.checks if not found.passed)
    if not done.published:
        console.print("NOT published; mend the cause, then run the same command again")
        raise typer.Exit(1)
    for day, what in done.units.items():
        console.print(f"{day}: {what}")
    if done.number is None:
        console.print(f"{pipeline} {name}: everything stands as it was published")
    else:
        console.print(f"{pipeline} {name}: correction {done.number} is published")


@app.command()
def forget(
    pipeline: PipelineName,
    day: Annotated[str, typer.Argument(metavar="DAY", help="The arrival day: 2013-03-08.")],
) -> None:
    """Takes an ingested day away again, as long as no final window follows from it."""
    settings, declared = _declared(pipeline)
    which = _day("DAY", day)
    if not declared.source.by_days:
        raise ValueError(f"{pipeline} follows its source, and has no days that could be taken away")
    spark = _started(settings)
    forget_day(spark, declared, settings, which)
    console.print(f"{pipeline}: {which} is in no table any more")
    landing = RawEventsJob(declared, settings).landing
    if which in days_landed(declared, landing):
        console.print(
            f"  its folder is still there, and the next run ingests it: {landing}/{which}"
        )


@app.command("maintain")
def maintain_command(pipeline: PipelineName) -> None:
    """Joins small files and deletes those that no version needs any more; rows stay."""
    settings, declared, spark = _open(pipeline)
    for table in all_tables(declared, settings.warehouse):
        done = maintain(spark, table) if table.exists(spark) else "not there yet"
        console.print(f"{table.name}: {done}")


@app.command("episodes")
def episodes_command(
    pipeline: PipelineName,
    windows: WindowsName = None,
    rule: Annotated[str | None, typer.Option(help="Only this rule.")] = None,
    key: Annotated[str | None, typer.Option(help="Only this key.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, the worst first.")] = 20,
) -> None:
    """Lists episodes: alerts of one key and rule whose windows overlap, the worst first."""
    settings, declared = _declared(pipeline)
    alerts = window_tables(declared, _windows(declared, windows), settings.warehouse).alerts
    spark = _started(settings)
    alerts.require(spark)
    found = standing(alerts.read(spark))
    for column, wanted in (("rule", rule), ("key", key)):
        if wanted is not None:
            found = found.where(F.col(column).cast("string") == F.lit(wanted))
    worst = episodes(found).orderBy(F.desc("severity"), "episode_start", "rule", "key")
    print_rows(
        worst.select(
            "rule", "key", "episode_start", "episode_end", "alerts", "severity", "worst.window_end"
        ),
        limit,
    )


@app.command()
def trace(
    pipeline: PipelineName,
    key: Annotated[str, typer.Argument(help="The alert's key.")],
    window_end: Annotated[
        str, typer.Argument(help="The alert's window_end, UTC, as `episodes` prints it.")
    ],
    windows: WindowsName = None,
    limit: Annotated[int, typer.Option(min=1, help="How many records to print.")] = 50,
) -> None:
    """Lists the records that count in an alert's window."""
    settings, declared = _declared(pipeline)
    name = _windows(declared, windows)
    try:
        instant = datetime.fromisoformat(window_end)
    except ValueError:
        raise typer.BadParameter(
            f"WINDOW_END: {window_end!r} is no time; write it as '2013-03-08 21:15:00'"
        ) from None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    spark = _started(settings)
    records = records_of_alert(spark, settings, declared, name, key, instant)
    arrival = [declared.source.arrival_column] if declared.source.arrival_column else []
    print_rows(
        records.select("arrival_unit", "offset", "event_time", *arrival, *declared.source.values),
        limit,
    )


def main() -> None:
    """Runs the command line; what the user can mend is one clear line."""
    try:
        app()
    except (
        ConfigError,
        SettingsError,
        BatchUnfinishedError,
        CorrectionUnfinishedError,
        DefinitionChangedError,
        FedByStreamError,
        KafkaSourceError,
        RawRowsMissingError,
        SparkStartError,
        TableMissingError,
        StreamBehindError,
        FileNotFoundError,
        ValueError,
    ) as error:
        tell("error", str(error))
        raise SystemExit(2) from None


def _print_records(
    spark: SparkSession, settings: Settings, declared: Pipeline, days: Collection[date] | None
) -> None:
    """Prints where the records of some days went, or of all."""
    log = RawEventsJob(declared, settings).arrived_so_far(spark)
    of_days = [row for row in log if days is None or row.arrival_unit in days]
    if not of_days:
        return
    rejected = {(row.arrival_unit, row.batch): row.unit_rejected for row in of_days}
    late = {}
    for name in declared.windows:
        table = window_tables(declared, name, settings.warehouse).late_records
        if table.exists(spark):
            rows = table.of_units(spark, sorted({row.arrival_unit for row in of_days}))
            late[name] = rows.where("reason <> 'outside_windows'").count()
    print_records(declared.name, sum(row.rows for row in of_days), sum(rejected.values()), late)


def _print_left(spark: SparkSession, settings: Settings, declared: Pipeline) -> bool:
    """Prints which days wait and which files changed or are skipped; returns whether any wait."""
    waits = print_waiting(declared.name, days_waiting(spark, declared, settings))
    landing = RawEventsJob(declared, settings).landing
    try:
        print_skipped(declared.name, skipped(declared, landing))
        changed = print_changed(declared.name, changed_files(spark, declared, settings))
        empty = files_without_records(spark, declared, settings)
        print_without_records([(f"{file.day}/{file.name}", file.size_bytes) for file in empty])
    except FileNotFoundError:  # the landed files may be gone once they are ingested
        return waits
    return waits or changed or bool(empty)


def _settings() -> Settings:
    return load_settings(Path.cwd())


def _misplaced(pipelines: Mapping[Path, Pipeline]) -> list[FolderProblem]:
    """What is wrong with where the sources lie, by the files of their pipelines."""
    try:
        landing = _settings().landing
    except SettingsError as error:
        # Files are read without settings, too; what their paths are relative to is not known then.
        return [FolderProblem(f"source.path was not looked at: {error}", refused=False)]
    found = [folder_problem(file, pipeline.source, landing) for file, pipeline in pipelines.items()]
    return [each for each in found if each is not None]


def _open(name: str) -> tuple[Settings, Pipeline, SparkSession]:
    settings, declared = _declared(name)
    return settings, declared, _started(settings)


def _declared(name: str) -> tuple[Settings, Pipeline]:
    settings = _settings()
    loaded = load_folder(settings.pipelines)
    declared = {pipeline.name: pipeline for pipeline in loaded.pipelines.values()}
    if name not in declared:
        use = f"use one of {', '.join(declared)}" if declared else "declare one there"
        missing = f"PIPELINE: {name!r} is not in {settings.pipelines}; {use}"
        if loaded.problems:
            raise ConfigError([f"{missing}, or correct these files:", *loaded.all_problems])
        raise ValueError(missing)
    for file in loaded.problems:
        tell(
            "warning",
            f"{file}: is left out, as it has mistakes; to see them: windows-pipeline validate",
        )
    return settings, declared[name]


def _started(settings: Settings) -> SparkSession:
    """A session that prints no warnings of its own beside what is asked for."""
    spark = start_session(settings)
    if not is_remote():
        # What stops it, and what stopped that, is told in a line at the end.
        spark.sparkContext.setLogLevel("FATAL")
        logging.getLogger("py4j").setLevel(logging.CRITICAL)
    return spark


def _days_between(pipeline: Pipeline, first: date, last: date) -> list[date]:
    """The days from one to another.

    Raises:
        ValueError: They lie outside the pipeline's partitions, or there are none.
    """
    start, end = pipeline.partitions.start, pipeline.partitions.end or date.max
    if start <= first <= last and why_passed_over(pipeline, last) == "after tomorrow":
        raise ValueError(
            f"--to {last}: a day must be at most tomorrow (UTC); a later one would keep all that "
            "comes before it waiting. Rename its folder"
        )
    if not start <= first <= last <= end:
        to = f" to {end}" if pipeline.partitions.end else " on"
        raise ValueError(
            f"--from {first} --to {last}: no days of {pipeline.name}, which are from {start}{to}"
        )
    return days_from(first, last)


def _day(option: str, text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"{option}: {text!r} is no day; write it as 2013-03-08") from None


def _windows(pipeline: Pipeline, name: str | None) -> str:
    known = list(pipeline.windows)
    if name is None and len(known) == 1:
        return known[0]
    if name not in known:
        told = "is missing" if name is None else f"{name!r} is none of {pipeline.name}"
        raise ValueError(f"--windows: {told}; use one of {', '.join(known)}")
    return name
