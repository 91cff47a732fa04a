"""The command line: `windows-pipeline --help`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from windows_pipeline.config import (
    ConfigError,
    Misplaced,
    Pipeline,
    load_pipeline,
    load_pipelines,
    misplaced,
    pipeline_files,
)
from windows_pipeline.engine.alerts import episodes, standing
from windows_pipeline.jobs import Job, RawEventsJob, check_published, published_days
from windows_pipeline.jobs.chain import rebuild, window_jobs
from windows_pipeline.jobs.correct import correct
from windows_pipeline.jobs.correction_marker import CorrectionUnfinishedError
from windows_pipeline.jobs.raw_events import FedByStreamError
from windows_pipeline.jobs.unfinished_batch import BatchUnfinishedError
from windows_pipeline.quality.validation import CheckResult
from windows_pipeline.query.trace import records_of_alert
from windows_pipeline.session import start_session
from windows_pipeline.settings import Settings, SettingsError, load_settings
from windows_pipeline.sources.kafka_errors import KafkaSourceError
from windows_pipeline.streaming import BatchResult, StreamBehindError, run_stream
from windows_pipeline.tables.catalog import all_tables, window_tables
from windows_pipeline.tables.delta import DefinitionChangedError, TableMissingError
from windows_pipeline.tables.maintenance import maintain

app = typer.Typer(
    help="Exact event-time windows on Spark and Delta.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# A pipe has no width; rows must not be cut for it.
_console = Console(width=None if sys.stdout.isatty() else 240)


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
    if files:
        pipelines = {file: load_pipeline(file) for file in files}
    else:
        folder = _settings().pipelines
        pipelines = dict(zip(pipeline_files(folder), load_pipelines(folder), strict=True))
    found = _misplaced(pipelines)
    refused = [each.text for each in found if each.refused]
    if refused:
        raise ConfigError(refused)
    for each in found:
        _tell("[yellow]warning:[/]", each.text)
    for pipeline in pipelines.values():
        _console.print(f"{pipeline.name}: valid; windows: {', '.join(pipeline.windows)}")


@app.command()
def check(pipeline: PipelineName) -> None:
    """Runs every check on the published tables; exit status 1 where one fails.

    Steps of which nothing was published so far, as of a definition that is new, are named.
    """
    settings, declared, spark = _open(pipeline)
    jobs: list[Job] = [RawEventsJob(declared, settings)]
    for name in declared.windows:
        jobs += window_jobs(declared, name, settings)
    results: list[tuple[str, CheckResult]] = []
    for job in jobs:
        if job is not jobs[0] and not any(table.exists(spark) for table in job.tables):
            _console.print(f"{job.tables[0].name}: not there yet")
            continue
        for table in job.tables:
            table.require(spark)
        days = published_days(job, spark)
        if days:
            found = check_published(job, spark, days)
            results += [(job.tables[0].name, result) for result in found]
    _print_checks(results)
    if any(not result.passed for _, result in results):
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
    failed = False
    count = 0
    for name, result in rebuild(spark, declared, settings, from_step, _console.print):
        count += 1
        rows = ", ".join(f"{table} {sum(rows.values()):,}" for table, rows in result.rows.items())
        _console.print(f"{name}: {'published' if result.published else 'NOT published'}; {rows}")
        failed = failed or not result.published
        _print_checks((name, found) for found in result.checks if not found.passed)
    if not count:
        _console.print(
            f"{pipeline}: every table follows {declared.name}'s definition; nothing to do"
        )
    if failed:
        raise typer.Exit(1)


@app.command("stream")
def stream_command(
    pipeline: PipelineName,
    every: Annotated[
        str | None,
        typer.Option(help="Look for more so often ('10 seconds'), until interrupted."),
    ] = None,
) -> None:
    """Ingests what came since the last run, and computes what follows; once, or on and on."""
    settings, declared, spark = _open(pipeline)
    began = monotonic()

    def said(result: BatchResult) -> None:
        days = ", ".join(map(str, result.units)) or "no day"
        _console.print(
            f"micro-batch {result.batch}: {days}; {result.accepted:,} records accepted, "
            f"{result.rejected:,} rejected; {monotonic() - began:.1f} s"
        )
        if result.passed_over:
            _console.print(
                f"  passed over: {result.passed_over:,} files of days outside the pipeline's "
                "partitions"
            )

    try:
        run_stream(spark, declared, settings, every=every, on_batch=said)
    except KeyboardInterrupt:
        _console.print("stopped; run it again to go on")


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
    settings, declared, spark = _open(pipeline)
    name = _windows(declared, windows)
    done = correct(spark, declared, name, settings, from_day, to_day, cause, _console.print)
    for table, result in done.results:
        _print_checks((table, found) for found in result.checks if not found.passed)
    if not done.published:
        _console.print("NOT published; mend the cause, then run the same command again")
        raise typer.Exit(1)
    for day, what in done.units.items():
        _console.print(f"{day}: {what}")
    if done.number is None:
        _console.print(f"{pipeline} {name}: everything stands as it was published")
    else:
        _console.print(f"{pipeline} {name}: correction {done.number} is published")


@app.command("maintain")
def maintain_command(pipeline: PipelineName) -> None:
    """Joins small files and deletes those that no version needs any more; rows stay."""
    settings, declared, spark = _open(pipeline)
    for table in all_tables(declared, settings.warehouse):
        done = maintain(spark, table) if table.exists(spark) else "not there yet"
        _console.print(f"{table.name}: {done}")


@app.command("episodes")
def episodes_command(
    pipeline: PipelineName,
    windows: WindowsName = None,
    rule: Annotated[str | None, typer.Option(help="Only this rule.")] = None,
    key: Annotated[str | None, typer.Option(help="Only this key.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, the worst first.")] = 20,
) -> None:
    """Lists episodes: alerts of one key and rule whose windows overlap, the worst first."""
    settings, declared, spark = _open(pipeline)
    alerts = window_tables(declared, _windows(declared, windows), settings.warehouse).alerts
    alerts.require(spark)
    found = standing(alerts.read(spark))
    for column, wanted in (("rule", rule), ("key", key)):
        if wanted is not None:
            found = found.where(F.col(column).cast("string") == F.lit(wanted))
    worst = episodes(found).orderBy(F.desc("severity"), "episode_start", "rule", "key")
    _print_rows(
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
    settings, declared, spark = _open(pipeline)
    try:
        instant = datetime.fromisoformat(window_end)
    except ValueError:
        raise typer.BadParameter(
            f"WINDOW_END: {window_end!r} is no time; write it as '2013-03-08 21:15:00'"
        ) from None
    if instant.tzinfo is None:
        instant = instant.replace(tzinfo=UTC)
    name = _windows(declared, windows)
    records = records_of_alert(spark, settings, declared, name, key, instant)
    arrival = [declared.source.arrival] if declared.source.arrival else []
    _print_rows(
        records.select("unit", "offset", "event_time", *arrival, *declared.source.values), limit
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
        TableMissingError,
        StreamBehindError,
        FileNotFoundError,
        ValueError,
    ) as error:
        _tell("[red]error:[/]", str(error))
        raise SystemExit(2) from None


def _tell(what: str, text: str) -> None:
    # Brackets in a file's values are no markup.
    line = f"{what} {escape(text)}"
    Console(stderr=True).print(line, highlight=False, soft_wrap=True)


def _settings() -> Settings:
    return load_settings(Path.cwd())


def _misplaced(pipelines: Mapping[Path, Pipeline]) -> list[Misplaced]:
    """What is wrong with where the sources lie, by the files of their pipelines."""
    try:
        landing = _settings().landing
    except SettingsError as error:
        # Files are read without settings, too; what their paths are relative to is not known then.
        return [Misplaced(f"source.path was not looked at: {error}", refused=False)]
    found = [misplaced(file, pipeline.source, landing) for file, pipeline in pipelines.items()]
    return [each for each in found if each is not None]


def _open(name: str) -> tuple[Settings, Pipeline, SparkSession]:
    settings = _settings()
    declared = {pipeline.name: pipeline for pipeline in load_pipelines(settings.pipelines)}
    if name not in declared:
        raise ValueError(
            f"PIPELINE: {name!r} is not in {settings.pipelines}; use one of {', '.join(declared)}"
        )
    return settings, declared[name], start_session(settings)


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
        raise ValueError(f"--windows: {name!r}; use one of {', '.join(known)}")
    return name


def _print_checks(results: Iterable[tuple[str, CheckResult]]) -> None:
    for name, result in results:
        mark = "[green]passed[/]" if result.passed else "[red]FAILED[/]"
        _console.print(f"{name} {result.check.name}: {mark}")
        if not result.passed:
            _console.print(f"  {result.check.description}; {result.failing_rows:,} rows, such as")
            for row in result.sample[:3]:
                _console.print(f"  {row}", highlight=False)


def _print_rows(rows: DataFrame, limit: int) -> None:
    found = rows.limit(limit + 1).collect()
    grid = Grid(box=box.SIMPLE)
    for column in rows.columns:
        grid.add_column(column, no_wrap=True)
    for row in found[:limit]:
        grid.add_row(*(_text(value) for value in row))
    _console.print(grid)
    if len(found) > limit:
        _console.print(f"there are more; --limit {limit} were asked for")


def _text(value: object) -> str:
    if isinstance(value, datetime):  # collected in this machine's zone
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]
    return str(value)
