"""The demo's summary: rows per table, the worst disruptions, where tables lie, what to try."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich import box
from rich.console import Console
from rich.table import Column
from rich.table import Table as Grid

from windows_pipeline.config import load_pipeline
from windows_pipeline.settings import Settings, load_settings
from windows_pipeline.storage.tables import tables_of

_ROOT = Path(__file__).parent.parent
_NEW_YORK = ZoneInfo("America/New_York")
_WORST = 10
_YEAR = 2013


def print_summary(
    console: Console,
    spark: SparkSession | None,
    root: Path = _ROOT,
    settings: Settings | None = None,
) -> None:
    """Prints the summary of the flights pipeline.

    Args:
        console: Where to print.
        spark: The session that the run left active.
        root: The project's folder; the table folder is printed relative to it.
        settings: The project's settings; those in `root` if None.

    Raises:
        RuntimeError: There is no session.
    """
    if spark is None:
        raise RuntimeError("a Spark session must be active, and none is; run: make demo")
    if settings is None:
        settings = load_settings(root)
    pipeline = load_pipeline(settings.pipelines / "flights.yaml")
    source = tables_of(pipeline, settings.warehouse)
    windows = source.of("hourly")
    rows = Grid("table", "rows", "a row", box=box.SIMPLE, title="The tables")
    for table in (*source.of_source, *windows.of_every_definition):
        rows.add_row(table.name, f"{table.count(spark):,}", table.description)
    console.print(rows)
    console.print(_worst(windows.episodes.read(spark)))
    # Not wrapped, as users copy the commands.
    console.print(
        f"The tables lie under {Path(settings.warehouse).relative_to(root)}/{pipeline.name}/ "
        "(Delta).\n"
        "What to try next:\n"
        "  make ui                      the Dagster UI with this run: its checks, and the\n"
        "                               alerts' plot with the metadata of the last day\n"
        "  flights/by_hour in the UI    early warnings: materialize it for some days\n"
        "  flights/carrier_half_hour    windows by carrier of the same records\n"
        "  .venv/bin/windows-pipeline episodes flights --windows hourly --rule quiet\n"
        "  .venv/bin/windows-pipeline trace flights --alert 0e7eab8e53fb",
        soft_wrap=True,
    )


def _worst(episodes: DataFrame) -> Grid:
    grid = Grid(
        Column("day", no_wrap=True),
        "airport", "from", "to", "alerts", "worst hour", "flights", "avg delay",
        box=box.SIMPLE,
        title=f"The {_WORST} disruptions of {_YEAR} with the worst hour (New York time; minutes)",
    )  # fmt: skip
    by_episode = episodes.where("rule = 'disruption'").groupBy("key", "episode_start")
    newest = by_episode.agg(F.max_by(F.struct(*episodes.columns), "arrival_unit").alias("newest"))
    found = newest.select("newest.*")
    for row in found.orderBy(F.desc("severity"), "episode_start", "key").limit(_WORST).collect():
        start, end = _local(row.episode_start), _local(row.until)
        worst = _local(row.window_start)
        grid.add_row(
            f"{start:%a %d %b}", row.key, f"{start:%H:%M}", f"{end:%H:%M}", str(row.alerts),
            f"{worst:%H:%M}", str(row.worst.record_count), f"{row.severity:.0f}",
        )  # fmt: skip
    return grid


def _local(instant: datetime) -> datetime:
    """A collected timestamp in New York time; Spark collects naive times in this machine's zone."""
    return instant.astimezone(_NEW_YORK)
