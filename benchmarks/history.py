"""What one more day costs after a month and after ten years: `python -m benchmarks.history`."""

from __future__ import annotations

import json
import random
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table as Grid

from windows_pipeline.compat.spark_session import start_session
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.jobs import Job, RawEventsJob, run_job
from windows_pipeline.jobs.days.chain import STEPS, window_jobs
from windows_pipeline.settings import Settings, load_settings

_PIPELINE = """
name: {name}
source:
  path: {name}
  format: jsonl
  columns: {{sensor: string, at: timestamp, came: timestamp, value: bigint}}
  key: sensor
  event_time: at
  arrival: came
partitions: {{start: 2016-01-01}}
windows:
  ten_minutes:
    kind: sliding
    time_difference: 10 minutes
    grace: 1 hour
    aggregates: {{total: sum(value), most: max(value)}}
    alerts:
      busy: {{when: record_count >= 5, severity: record_count}}
"""
_FIRST = date(2016, 1, 1)
_HISTORIES = {"month": 30, "decade": 3650}

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@app.command()
def main(
    records: Annotated[int, typer.Option(help="Records a day.", min=1)] = 2_000,
    runs: Annotated[int, typer.Option(help="How often the day is computed again.", min=1)] = 5,
) -> None:
    """Computes a day again and again, in turns after a month and after ten years of days."""
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        settings = _settings(Path(folder))
        spark = start_session(settings)
        chains = {}
        for name, days in _HISTORIES.items():
            pipeline = _land(Path(folder), name, days + 1, records)
            chains[name] = _jobs(pipeline, settings)
            console.print(f"{name}: {days} days of {records} records ...")
            _run(chains[name], spark, [_day(number) for number in range(days)])
        taken: dict[str, list[dict[str, float]]] = {name: [] for name in chains}
        for _ in range(runs + 1):
            for name, days in _HISTORIES.items():
                taken[name].append(_run(chains[name], spark, [_day(days)]))
        # The first run of each makes the day, the others make it again.
        _show(console, {name: found[1:] for name, found in taken.items()})


def _settings(folder: Path) -> Settings:
    base = load_settings(Path(__file__).parent.parent)
    folders = {"warehouse": str(folder / "warehouse"), "landing": str(folder), "pipelines": folder}
    return base.model_copy(update=folders)


def _day(number: int) -> date:
    return _FIRST + timedelta(days=number)


def _land(folder: Path, name: str, days: int, records: int) -> Pipeline:
    """Lands random records of 20 sensors, up to half an hour out of order."""
    random_ = random.Random(450)  # noqa: S311  a seeded generator is wanted
    for number in range(days):
        day = _day(number)
        start = datetime(day.year, day.month, day.day, tzinfo=UTC)
        day_folder = folder / name / day.isoformat()
        day_folder.mkdir(parents=True)
        came = sorted(random_.uniform(0, 86_399) for _ in range(records))
        lines = [
            json.dumps(
                {
                    "sensor": f"s{random_.randrange(20)}",
                    "at": _text(start + timedelta(seconds=second - random_.uniform(0, 1_800))),
                    "came": _text(start + timedelta(seconds=second)),
                    "value": random_.randrange(100),
                }
            )
            for second in came
        ]
        (day_folder / "records.jsonl").write_text("\n".join(lines))
    file = folder / f"{name}.yaml"
    file.write_text(_PIPELINE.format(name=name))
    return load_pipeline(file)


def _text(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds")


def _jobs(pipeline: Pipeline, settings: Settings) -> list[Job]:
    return [RawEventsJob(pipeline, settings), *window_jobs(pipeline, "ten_minutes", settings)]


def _run(jobs: list[Job], spark: SparkSession, days: list[date]) -> dict[str, float]:
    """Seconds of each step."""
    return {step: _seconds(job, spark, days) for step, job in zip(STEPS, jobs, strict=False)}


def _seconds(job: Job, spark: SparkSession, days: list[date]) -> float:
    started = time.monotonic()
    if not run_job(job, spark, days).published:
        raise RuntimeError("a check failed, nothing was published")
    return time.monotonic() - started


def _show(console: Console, taken: dict[str, list[dict[str, float]]]) -> None:
    grid = Grid("step", *(f"after a {name} (s)" for name in taken), "ratio")
    steps = next(iter(taken.values()))[0]
    for step in (*steps, "all"):
        medians = [
            median(sum(run.values()) if step == "all" else run[step] for run in runs)
            for runs in taken.values()
        ]
        grid.add_row(step, *(f"{one:.2f}" for one in medians), f"{medians[1] / medians[0]:.2f}")
    console.print(grid)


if __name__ == "__main__":
    app()
