"""Pipelines of row windows and count windows: the chain against the oracle, batch and stream."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import reduce
from itertools import pairwise
from pathlib import Path
from random import SystemRandom
from typing import Any, NamedTuple

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.kinds import ARRIVAL_UNITS, DAYS, FIRST_DAY, Ran, line, ms, ran_in
from tests.support.oracle import alerts as oracle_alerts
from tests.support.oracle.arrival_unit_rows import (
    ArrivalUnitRow,
    CountDefinition,
    final_rows,
    in_time,
)
from tests.support.oracle.rows import CountBlock, RowDefinition, RowsAround, Session, TumblingBlock
from tests.support.oracle.windows import Record, WindowRow
from tests.support.shared_folders import made_once
from tests.support.spark_cases import instant
from windows_pipeline.engine.lateness import is_late
from windows_pipeline.engine.record_shards import cuts_since_the_first, in_record_shards
from windows_pipeline.incremental.alerts import standing
from windows_pipeline.jobs import Job, KeyedWindowsJob, RawEventsJob, check_published
from windows_pipeline.jobs.correction.run import correct
from windows_pipeline.jobs.days.chain import window_jobs
from windows_pipeline.jobs.job import run_job
from windows_pipeline.query import WindowStore
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.streaming import BatchResult, run_stream
from windows_pipeline.windows import GracedRows


class Defined(NamedTuple):
    """A definition as the oracle and as the file have it, in ms."""

    oracle: RowDefinition | CountDefinition
    fields: dict[str, object]


GRACE = 6
CHAINED = {
    "around": Defined(
        RowsAround(is_range=True, back=10, ahead=4),
        {"kind": "slide_rows", "preceding": "10 ms", "following": "4 ms"},
    ),
    "fours": Defined(CountDefinition(4, 2), {"kind": "count", "size": 4, "advance": 2}),
}
"""Those that get the whole chain."""
DEFINED = CHAINED | {
    "beside": Defined(
        RowsAround(is_range=False, back=2, ahead=2),
        {"kind": "slide_rows", "preceding": "2 rows", "following": "2 rows"},
    ),
    "visits": Defined(Session(4), {"kind": "session_rows", "gap": "4 ms"}),
    "before": Defined(
        RowsAround(is_range=True, back=10, ahead=-3),
        {"kind": "slide_rows", "preceding": "10 ms", "following": "-3 ms"},
    ),
    "after": Defined(
        RowsAround(is_range=False, back=-1, ahead=3),
        {"kind": "slide_rows", "preceding": "-1 rows", "following": "3 rows"},
    ),
    "ahead": Defined(
        RowsAround(is_range=True, back=0, ahead=5), {"kind": "slide_rows", "following": "5 ms"}
    ),
    "rows_ahead": Defined(
        RowsAround(is_range=False, back=0, ahead=2), {"kind": "slide_rows", "following": "2 rows"}
    ),
    "so_far": Defined(
        RowsAround(is_range=True, back=None, ahead=0),
        {"kind": "slide_rows", "preceding": "unbounded"},
    ),
    "rows_so_far": Defined(
        RowsAround(is_range=False, back=None, ahead=-1),
        {"kind": "slide_rows", "preceding": "unbounded rows", "following": "-1 row"},
    ),
    "tens": Defined(TumblingBlock(10), {"kind": "tumble_rows", "size": "10 ms"}),
    "threes": Defined(CountBlock(3), {"kind": "tumble_rows", "size": "3 rows"}),
    "short": Defined(
        CountDefinition(4, 3, short_first=True),
        {"kind": "count", "size": 4, "advance": 3, "short_first": True},
    ),
}
STREAMED = [*CHAINED, "beside", "visits", "tens", "threes", "ahead", "rows_ahead"]
"""One of each kind and measure."""
OF_ONE_KEY = ["fours", "short", "beside", "after", "visits", "threes", "so_far", "rows_so_far"]
"""Those whose records are cut into shards where all have one key."""
FROM_THE_FIRST = ("so_far", "rows_so_far")
"""Those whose windows begin with the first record of all."""
BUSY = {"busy": {"when": "record_count >= 3", "severity": "total"}}


def declare(settings: Settings, folder: Path, names: Sequence[str], **source: object) -> Ran:
    """A pipeline of some definitions; its landed files are the caller's."""
    columns = {
        "n": "bigint", "k": "string", "ms": "bigint", "whole": "bigint",
        "amount": "decimal(20, 2)",
    }  # fmt: skip
    roles = {"key": "k", "event_time": "ms", "arrival": "n"}
    text = {
        "name": "rows",
        "source": {"path": "data", "format": "jsonl", "columns": columns, **roles, **source},
        "partitions": {"start": FIRST_DAY.isoformat()},
        "windows": {
            name: {
                **DEFINED[name].fields,
                "grace": f"{GRACE} ms",
                "aggregates": {"total": "sum(whole)"},
                "alerts": BUSY,
            }
            for name in names
        },
    }
    declared = folder / "pipelines" / "rows.yaml"
    declared.parent.mkdir(parents=True)
    declared.write_text(json.dumps(text))
    return ran_in(settings, folder, "rows")


def land(folder: Path, name: str, records: Sequence[Record]) -> Path:
    landed = folder / "data" / DAYS[records[0].arrival_unit].isoformat() / name
    landed.parent.mkdir(parents=True, exist_ok=True)
    landed.write_text("".join(map(line, records)))
    return landed


def published(spark: SparkSession, jobs: Sequence[Job], days: Sequence[date]) -> None:
    for job in jobs:
        result = run_job(job, spark, days)
        assert result.published, [check for check in result.checks if not check.passed]


@pytest.fixture(scope="module")
def ran(
    spark: SparkSession,
    short_shards: Settings,
    shared: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Ran:
    """The chain of some definitions, computed as one range of days; this process's own copy."""

    def make(folder: Path) -> None:
        made = declare(short_shards, folder, list(DEFINED))
        for arrival_unit in range(ARRIVAL_UNITS):
            land(
                folder,
                "all.jsonl",
                [one for one in made.records if one.arrival_unit == arrival_unit],
            )
        published(
            spark,
            [RawEventsJob(made.source, made.settings)],
            DAYS,
        )
        for name in CHAINED:
            published(
                spark,
                window_jobs(made.source, name, made.settings),
                DAYS,
            )

    made = made_once(shared / "rows", make)
    return ran_in(
        short_shards, shutil.copytree(made, tmp_path_factory.mktemp("rows") / "own"), "rows"
    )


def arrival_unit_row(row: Any) -> ArrivalUnitRow:
    """A row of keyed_windows or final_windows, as the oracle writes it."""
    return ArrivalUnitRow(
        (row.arrival_unit - FIRST_DAY).days, row.key, ms(row.window_start), ms(row.window_end),
        row.first_event_time and ms(row.first_event_time),
        row.last_event_time and ms(row.last_event_time),
        row.record_count, row.total, ms(row.event_time), (row.record_arrival_unit - FIRST_DAY).days,
        row.offset,
    )  # fmt: skip


def wanted_of(records: Sequence[Record], name: str) -> list[ArrivalUnitRow]:
    return final_rows(records, ARRIVAL_UNITS, DEFINED[name].oracle, GRACE)


def require_the_oracles(
    spark: SparkSession, ran: Ran, names: Sequence[str], records: Sequence[Record]
) -> None:
    """Requires the rows of the oracle, of all days at once and of the last alone, and checks."""
    log = KeyedWindowsJob(ran.source, names[0], ran.settings).arrived(spark)
    staged: list[DataFrame] = []
    failing: list[DataFrame] = []
    cached: list[DataFrame] = []
    for name in names:
        job = KeyedWindowsJob(ran.source, name, ran.settings)
        for days in (DAYS, DAYS[2:]):
            stage = job.stage(spark, days, log)
            cached += stage.cached
            of_run = {"of": F.lit(f"{name} {len(days)}")}
            staged.append(stage.rows["keyed_windows"].withColumns(of_run))
            if days == DAYS:
                for batch in job.check_batches(spark, days, stage.rows, log):
                    broken = batch.rows.where(" OR ".join(check.breaks for check in batch.checks))
                    failing.append(broken.select(F.lit(f"{name} {batch.name}")))
    found = reduce(DataFrame.unionByName, staged).collect()
    assert reduce(DataFrame.union, failing).collect() == []
    for frame in cached:
        frame.unpersist()
    for name in names:
        wanted = wanted_of(records, name)
        assert {row.arrival_unit for row in wanted} == set(range(ARRIVAL_UNITS)), name
        at_once = [arrival_unit_row(row) for row in found if row.of == f"{name} {ARRIVAL_UNITS}"]
        assert sorted(map(repr, at_once)) == sorted(map(repr, wanted)), name
        alone = [arrival_unit_row(row) for row in found if row.of == f"{name} 1"]
        of_them = [row for row in wanted if row.arrival_unit == ARRIVAL_UNITS - 1]
        assert sorted(map(repr, alone)) == sorted(map(repr, of_them)), name


def test_each_kind_is_the_oracles_whatever_days_are_run_at_once(
    ran: Ran, spark: SparkSession
) -> None:
    """Rules E4, F1, F2, F5, H1: all days at once, and the last alone; no check fails."""
    require_the_oracles(spark, ran, list(DEFINED), ran.records)


def of_one_key(records: Sequence[Record]) -> list[Record]:
    return [replace(one, key=None) for one in records]


def test_records_of_one_key_are_cut_into_shards(
    spark: SparkSession, short_shards: Settings, tmp_path: Path
) -> None:
    """Rules A9, F1, F2, F5, H1: the same rows."""
    ran = declare(short_shards, tmp_path, OF_ONE_KEY, key=[])
    for arrival_unit in range(ARRIVAL_UNITS):
        land(
            tmp_path, "all.jsonl", [one for one in ran.records if one.arrival_unit == arrival_unit]
        )
    published(spark, [RawEventsJob(ran.source, ran.settings)], DAYS)
    for name in OF_ONE_KEY:
        job = KeyedWindowsJob(ran.source, name, ran.settings)
        spec = job.windows.spec
        assert isinstance(spec, GracedRows)
        records = job.raw_records(spark, DAYS, job.arrived(spark)).where(~is_late(spec))
        records = records.withColumn("record_arrival_unit", F.col("arrival_unit"))
        if name in FROM_THE_FIRST:
            assert cuts_since_the_first(records, spec, job.definition.tuning) is not None, name
        else:
            assert in_record_shards(records, spec, job.definition.tuning) is not records, name
    require_the_oracles(spark, ran, OF_ONE_KEY, of_one_key(ran.records))


@pytest.mark.parametrize("name", CHAINED)
def test_the_tables_are_the_oracles(ran: Ran, spark: SparkSession, name: str) -> None:
    """Rules A5, E1, E5, F5: three arrival units at once, every check passed."""
    tables = ran.tables(name)
    final = tables.final_windows.read(spark).collect()
    wanted = wanted_of(ran.records, name)
    assert sorted(map(repr, map(arrival_unit_row, final))) == sorted(map(repr, wanted))
    late = tables.late_records.read(spark).collect()
    came = {one.id for one in in_time(ran.records, GRACE)}
    assert sorted(
        (row.arrival_unit, row.record_arrival_unit, row.offset, row.reason) for row in late
    ) == sorted(
        (DAYS[one.arrival_unit], DAYS[one.arrival_unit], one.offset, "late")
        for one in ran.records
        if one.id not in came
    )
    alerts = [
        ((row.arrival_unit - FIRST_DAY).days, row.key, ms(row.window_start), ms(row.window_end),
         ms(row.episode_start))
        for row in tables.alerts.read(spark).collect()
    ]  # fmt: skip
    by_start = sorted(wanted, key=lambda row: (row.end, row.start))
    rows = [WindowRow(*row[:7], {"total": row.total}, closed=True) for row in by_start]
    raised = oracle_alerts.alerts(
        rows, lambda row: row.record_count >= 3, lambda row: row.values["total"]
    )
    assert len({alert.episode for alert in raised}) > 1
    assert sorted(alerts) == sorted(alert[:5] for alert in raised)


@pytest.mark.long
def test_the_last_days_first_give_the_same(ran: Ran, spark: SparkSession) -> None:
    """Rules E5, H1: episodes that began earlier are found before these days are computed."""
    jobs = window_jobs(ran.source, "fours", ran.settings)
    before = ran.rows("fours")
    for job in jobs:
        for table in job.tables:
            table.withdraw(spark, DAYS)
    for days in (DAYS[1:], DAYS[:1]):
        published(spark, jobs, days)
    assert ran.rows("fours") == before


BREAKS: list[tuple[str, str, dict[str, str]]] = [
    ("one_result_a_row", "around", {"offset": "offset + 1000"}),
    ("bounds_inclusive", "around", {"window_start": "window_start - INTERVAL 1 MILLISECOND"}),
    ("row_holds_its_records", "around", {"record_count": "record_count + 1"}),
    (
        "every_record_accounted_for",
        "fours",
        {"record_arrival_unit": "record_arrival_unit - INTERVAL 9 DAYS"},
    ),
]
"""A check, a definition, and what breaks it."""


def test_broken_rows_fail_their_checks(ran: Ran, spark: SparkSession) -> None:
    """Rule F5: recounted by other code than the engine's."""
    failing: list[DataFrame] = []
    for fails, name, change in BREAKS:
        job = KeyedWindowsJob(ran.source, name, ran.settings)
        rows = {
            table.short_name: table.read(spark).where(F.col("arrival_unit") == DAYS[1])
            for table in job.tables
        }
        broken = {column: F.expr(how) for column, how in change.items()}
        rows["keyed_windows"] = rows["keyed_windows"].withColumns(broken)
        log = job.arrived(spark)
        for batch in job.check_batches(spark, DAYS[1:2], rows, log):
            own = (check.breaks for check in batch.checks if check.name == fails)
            failing.extend(batch.rows.where(breaks).select(F.lit(fails)) for breaks in own)
    found = {row[0] for row in reduce(DataFrame.union, failing).collect()}
    assert found == {fails for fails, *_ in BREAKS}


def test_trace_finds_the_records_of_row_windows(ran: Ran) -> None:
    """Rule E5: of count windows, between whose bounds others of its key may lie."""
    window = next(
        row for row in wanted_of(ran.records, "fours") if row.arrival_unit == ARRIVAL_UNITS - 1
    )
    alike = [row for row in wanted_of(ran.records, "fours") if row[1:4:2] == window[1:4:2]]
    own = [one for one in in_time(ran.records, GRACE) if one.key == window.key]
    ends = [[(one.arrival_unit, one.offset) for one in own].index(row[9:]) for row in alike]
    wanted = {(one.arrival_unit, one.offset) for end in ends for one in own[end - 3 : end + 1]}
    store = WindowStore(ran.pipeline, "fours", ran.settings.warehouse)
    end = instant(window.end)
    alone = {
        ((row["arrival_unit"] - FIRST_DAY).days, row["offset"])
        for each in store.bounded(window.key, end, end)
        if each.end == end
        for row in store.trace(each).records.to_pylist()
    }
    assert alone == wanted


def stream(
    spark: SparkSession, settings: Settings, folder: Path, names: Sequence[str], **source: object
) -> tuple[Ran, int]:
    """The definitions of a stream, cut at random within the middle day; and where."""
    streamed = declare(settings, folder, names, max_per_batch=2, **source)
    cut = SystemRandom().randrange(1, sum(one.arrival_unit == 1 for one in streamed.records))
    written_at = 1_000_000_000
    for arrival_unit in range(ARRIVAL_UNITS):
        of_arrival_unit = [one for one in streamed.records if one.arrival_unit == arrival_unit]
        cuts = [cut] if arrival_unit == 1 else []
        for first, last in pairwise([0, *cuts, len(of_arrival_unit)]):
            landed = land(folder, f"{first}.jsonl", of_arrival_unit[first:last])
            os.utime(landed, (written_at, written_at))  # what was written first is read first
            written_at += 1
    results: list[BatchResult] = []
    run_stream(spark, streamed.source, streamed.settings, on_batch=results.append)
    assert [result.arrival_units for result in results] == [DAYS[:2], DAYS[1:]]
    return streamed, cut


@pytest.mark.long
def test_a_stream_gives_what_the_batch_gives_whatever_its_cuts(
    ran: Ran, spark: SparkSession, short_shards: Settings, tmp_path: Path
) -> None:
    """Rules E4, F4, H1: cut at random within the middle day."""
    streamed, cut = stream(spark, short_shards, tmp_path, STREAMED)
    for name in STREAMED:
        final = streamed.tables(name).final_windows.read(spark).collect()
        wanted = wanted_of(streamed.records, name)
        assert sorted(map(repr, map(arrival_unit_row, final))) == sorted(map(repr, wanted)), (
            name,
            cut,
        )
    for name in CHAINED:
        assert streamed.rows(name) == ran.rows(name), (name, cut)
    job = window_jobs(streamed.source, "fours", streamed.settings)[0]
    assert [one for one in check_published(job, spark, DAYS) if not one.passed] == []


@pytest.mark.long
def test_a_stream_of_one_key_gives_the_same(
    spark: SparkSession, short_shards: Settings, tmp_path: Path
) -> None:
    """Rules A9, H1: shards are cut again in each micro-batch."""
    streamed, cut = stream(spark, short_shards, tmp_path, OF_ONE_KEY, key=[])
    for name in OF_ONE_KEY:
        final = streamed.tables(name).final_windows.read(spark).collect()
        wanted = wanted_of(of_one_key(streamed.records), name)
        assert sorted(map(repr, map(arrival_unit_row, final))) == sorted(map(repr, wanted)), (
            name,
            cut,
        )
        job = KeyedWindowsJob(streamed.source, name, streamed.settings)
        assert [one for one in check_published(job, spark, DAYS) if not one.passed] == []


@pytest.mark.long
def test_a_correction_lists_changed_rows(ran: Ran, spark: SparkSession) -> None:
    """Rule E1: by what names them. The last of these tests, as it changes the raw records."""
    latest = max(one.event_time for one in ran.records if one.arrival_unit == 1)
    added = Record(1, 0, 26, "c", latest, {"whole": 100, "amount": None})
    after = [*ran.records, added]
    land(Path(ran.settings.landing), "all.jsonl", [one for one in after if one.arrival_unit == 1])
    published(
        spark,
        [RawEventsJob(ran.source, ran.settings)],
        DAYS[1:2],
    )
    result = correct(
        spark,
        tables_of(ran.pipeline, ran.settings.warehouse, grace_may_differ=True),
        "fours",
        ran.settings,
        DAYS[1],
        None,
        "a record was missing",
    )
    assert result.published
    wanted = wanted_of(after, "fours")
    rows = ran.tables("fours").final_windows.read(spark).collect()
    assert sorted(map(repr, map(arrival_unit_row, rows))) == sorted(map(repr, wanted))
    old, new = (
        {(*row[:4], *row[8:]): row for row in wanted_of(of, "fours")} for of in (ran.records, after)
    )
    changes = {
        **dict.fromkeys(old.keys() - new.keys(), "retracted"),
        **dict.fromkeys(new.keys() - old.keys(), "added"),
        **{
            row_key: "changed"
            for row_key in old.keys() & new.keys()
            if old[row_key] != new[row_key]
        },
    }
    assert {"retracted", "added"} <= set(changes.values())
    found = {
        (
            (row.arrival_unit - FIRST_DAY).days, row.key, ms(row.window_start), ms(row.window_end),
            ms(row.event_time), (row.record_arrival_unit - FIRST_DAY).days, row.offset,
        ): row.change
        for row in ran.tables("fours").corrections.read(spark).collect()
    }  # fmt: skip
    assert found == changes
    alerts = standing(ran.tables("fours").alerts.read(spark))
    assert alerts.count() == sum(row.record_count >= 3 for row in wanted)
