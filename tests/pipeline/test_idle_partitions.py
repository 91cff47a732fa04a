"""Source partitions, some of them idle, give the rows of the oracle in any order of runs."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path

from pyspark.sql import SparkSession

from tests.support.idle_cases import drawn_case
from tests.support.oracle.arrival import frontier_after
from tests.support.oracle.windows import final_windows, late_records
from tests.support.spark_cases import instant, texts
from tests.support.stored_rows import named_rows
from tests.support.streams import declared_pipeline, sliding_fields
from windows_pipeline.jobs import RawEventsJob
from windows_pipeline.jobs.days.chain import rebuild, window_jobs
from windows_pipeline.jobs.job import run_job
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import tables_of

FIRST_DAY = date(2026, 11, 1)


def test_an_idle_partition_blocks_no_window_and_reopens_none_when_it_resumes(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    """Rules A2, A4, E4: for all days at once, then the last days again, by a new log."""
    case = drawn_case()
    definition = case.definition
    source = {
        "format": "jsonl",
        "path": "data",
        "columns": dict.fromkeys(("n", "ms", "whole"), "bigint")
        | dict.fromkeys(("k", "part"), "string"),
        "arrival": "n",
        "source_partition": "part",
        "idle_after": f"{definition.idle_after} ms",
        "max_ahead": "40000 days",
    }
    fields = {**sliding_fields(definition), "trigger": {"final": True}}
    pipeline, own = declared_pipeline(tmp_path, settings, source, fields)
    days = [FIRST_DAY + timedelta(days=arrival_unit) for arrival_unit in range(case.arrival_units)]
    for arrival_unit, day in enumerate(days):
        folder = tmp_path / "data" / day.isoformat()
        folder.mkdir(parents=True)
        lines = [
            json.dumps(
                {
                    "n": one.offset,
                    "part": str(one.source_partition),
                    "k": one.key,
                    "ms": one.event_time,
                    "whole": one.values["whole"],
                }
            )
            for one in case.records
            if one.arrival_unit == arrival_unit
        ]
        (folder / "records.jsonl").write_text("\n".join(lines))
    jobs = [
        RawEventsJob(tables_of(pipeline, own.warehouse), own),
        *window_jobs(tables_of(pipeline, own.warehouse), "sums", own),
    ]
    tables = tables_of(pipeline, own.warehouse).of("sums")

    def run(some: Sequence[date]) -> tuple[list[str], list[str]]:
        for job in jobs:
            result = run_job(job, spark, some)
            broken = {one.check.name for one in result.checks if not one.passed}
            assert broken <= {"late_within_limit", "closed_through"}
        final = texts(
            (
                (row["arrival_unit"] - FIRST_DAY).days, row["key"], row["window_start"].timestamp(),
                row["window_end"].timestamp(), row["record_count"], row["total"],
            )
            for row in named_rows(tables.final_windows)
        )  # fmt: skip
        late = texts(
            (
                (row["arrival_unit"] - FIRST_DAY).days,
                (row["record_arrival_unit"] - FIRST_DAY).days,
                row["source_partition"], row["key"], row["event_time"].timestamp(), row["reason"],
            )
            for row in named_rows(tables.late_records)
        )  # fmt: skip
        return final, late

    asked = (case.records, case.arrival_units, definition)
    record_of = {record.id: record for record in case.records}
    wanted = (
        texts(
            (row.arrival_unit, row.key, row.start / 1000, row.end / 1000, row.record_count,
             row.values["total"])
            for row in final_windows(*asked, {"total": ("sum", "whole")})
        ),
        texts(
            (row.arrival_unit, record_of[row.record].arrival_unit, str(row.record.source_partition),
             record_of[row.record].key, record_of[row.record].event_time / 1000, row.reason)
            for row in late_records(*asked)
        ),
    )  # fmt: skip
    assert all(wanted)
    assert run(days) == wanted
    decided = [
        None if time == -math.inf else instant(int(time))
        for time, _ in (
            frontier_after(case.records, arrival_unit, definition)
            for arrival_unit in range(len(days))
        )
    ]
    log = tables_of(pipeline, own.warehouse).arrival_log
    assert stored(log) == dict(zip(days, decided, strict=True))
    # A missing day decides on nothing, nor does a later one; once it is in, both do.
    log.withdraw(spark, days[:1])
    assert run_job(jobs[0], spark, days[1:2]).published
    assert stored(log) == dict.fromkeys(days[1:])
    assert run_job(jobs[0], spark, days[:1]).published
    assert stored(log) == dict(zip(days, decided, strict=True))
    assert run(days[1:]) == wanted
    # Other days are idle now.
    never_idle = pipeline.source.model_copy(update={"idle_after": None})
    changed = pipeline.model_copy(update={"source": never_idle})
    assert all(
        result.published for _, result in rebuild(spark, tables_of(changed, own.warehouse), own)
    )
    with_none = replace(definition, idle_after=None)
    slowest = [
        frontier_after(case.records, arrival_unit, with_none)[0]
        for arrival_unit in range(len(days))
    ]
    assert list(stored(log).values()) == [
        None if time == -math.inf else instant(int(time)) for time in slowest
    ]


def stored(arrival_log: Table) -> dict[date, datetime | None]:
    """The decision that is stored with each day, in order; the same in all its rows."""
    rows = {(row["arrival_unit"], row["watermark"]) for row in named_rows(arrival_log)}
    decisions = dict(sorted(rows, key=lambda one: one[0]))
    assert len(decisions) == len(rows)
    return decisions
