"""A pipeline with columns in the long form equals one whose records hold the values already.

By days, as a stream of files and of a Delta table, and rebuilt (rules A6 and H1).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
import yaml
from deltalake import write_deltalake
from pyspark.sql import SparkSession

from tests.support.pipelines import settings_in
from tests.support.spark_cases import texts
from tests.support.stored_rows import named_rows, stored_rows
from windows_pipeline.config import Pipeline, load_pipeline
from windows_pipeline.config.definition import DefinitionChangedError
from windows_pipeline.jobs import RawEventsJob, check_published
from windows_pipeline.jobs.days.chain import rebuild, window_jobs
from windows_pipeline.jobs.job import run_job
from windows_pipeline.settings import Settings
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.streaming import BatchResult, run_stream

DAYS = [date(2026, 3, 7), date(2026, 3, 8), date(2026, 3, 9)]
SINCE = DAYS[1]
LONG: dict[str, Any] = {
    "currency": "string",
    "card": {"type": "bigint", "from": "$.card.number"},
    "pair": {"type": "string", "as": "concat(currency, ':', cast(card as string))"},
    "paid_at": {"type": "timestamp", "zone": "America/New_York"},
    "sent_at": {"type": "timestamp_ms"},
    "set_at": {
        "type": "timestamp",
        "format": "dd.MM.yyyy HH:mm:ss,S",
        "zone": "America/New_York",
        "ambiguous": "later",
    },
    "due": "string",
    "due_at": {
        "type": "timestamp",
        "as": "replace(due, ' at ', ' ')",
        "format": "M/d/yyyy h:mm a",
        "zone": "America/New_York",
        "ambiguous": "reject",
    },
    "weight": {"type": "double", "decimal": ",", "thousands": "."},
    "cents": {"type": "bigint", "since": SINCE},
    "total": {"type": "bigint", "as": "coalesce(cents, 0) * 922337203685477"},
}
PLAIN = {
    "pair": "string",
    "paid_at": "timestamp",
    "sent_at": "timestamp",
    "set_at": "timestamp",
    "due_at": "timestamp",
    "weight": "double",
    "cents": "bigint",
    "total": "bigint",
}
WINDOWS = {
    "hours": {
        "kind": "hopping",
        "size": "2 hours",
        "advance": "1 hour",
        "grace": "1 hour",
        "aggregates": {
            "cents": "sum(cents)",
            "totals": "count_distinct(total)",
            "set_at": "max(set_at)",
            "weight": "sum(weight)",
        },
        "alerts": {"busy": {"when": "record_count >= 3", "severity": "record_count"}},
    }
}

AMBIGUOUS = {DAYS[0]: 1, DAYS[1]: 23, DAYS[2]: 1}


def records(day: date) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """A day's records, each with what it means, or None if it is to be rejected."""
    zone = ZoneInfo("America/New_York")
    for number in range(30):
        local = datetime(day.year, day.month, day.day) + timedelta(minutes=11 * number)
        instant = local.replace(tzinfo=zone).astimezone(UTC)
        occurs = instant.astimezone(zone).replace(tzinfo=None) == local
        cents = 10_001 if number % 10 == 8 else number
        counts = day >= SINCE
        is_lost = counts and cents == 10_001  # its total overflows
        sent_ms = int(instant.timestamp() * 1000) + number
        found = {
            "currency": "EUR" if number % 3 else "USD",
            "card": {"number": number % 2},
            "paid_at": local.isoformat(" ") if number % 4 else instant.isoformat(),
            "sent_at": sent_ms,
            # The clocks were put back at 02:00.
            "set_at": f"02.11.2025 0{1 if day == SINCE else 2}:{number:02}:00,5",
            "due": "11/2/2025 at 1:30 AM" if number == 29 else "11/2/2025 at 2:30 am",
            "weight": f"{number + 1}.2{number % 10}0,25",
            "cents": cents,
        }
        means = {
            "pair": f"{found['currency']}:{number % 2}",
            "paid_at": instant.isoformat(),
            "sent_at": datetime.fromtimestamp(sent_ms / 1000, UTC).isoformat(),
            "set_at": f"2025-11-02T0{6 if day == SINCE else 7}:{number:02}:00.5Z",
            "due_at": "2025-11-02T07:30:00Z",
            "weight": (number + 1) * 1_000 + 200 + (number % 10) * 10 + 0.25,
            "cents": cents if counts else None,
            "total": (cents if counts else 0) * 922_337_203_685_477,
        }
        is_read = occurs or number % 4 == 0
        yield found, means if is_read and not is_lost and number < 29 else None


def declare(folder: Path, columns: object, **source: Any) -> Pipeline:
    fields = {
        "columns": columns,
        "key": "pair",
        "event_time": "paid_at",
        "arrival": "sent_at",
        **source,
    }
    text = {
        "name": "payments",
        "source": {"path": "data", "format": "jsonl", **fields},
        "partitions": {"start": DAYS[0]},
        "windows": WINDOWS,
    }
    file = folder / "pipelines" / "payments.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(text))
    return load_pipeline(file)


def land(folder: Path, *, plain: bool) -> None:
    for index, day in enumerate(DAYS):
        lines = [
            json.dumps(means if plain else found)
            for found, means in records(day)
            if means or not plain
        ]
        file = folder / "data" / str(day) / "a.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text("\n".join(lines))
        os.utime(file, (1_000_000_000 + index, 1_000_000_000 + index))


def rows(pipeline: Pipeline, settings: Settings) -> dict[str, list[str]]:
    """All rows but those of rejected records, of the columns that both pipelines have."""
    of_log = ("batch", "watermark", "stream", "arrival_unit_rejected", "ambiguous")
    left_out = (*of_log, "currency", "card", "due")
    return {
        table.name: texts(stored_rows(table, *left_out))
        for table in tables_of(pipeline, settings.warehouse).written
        if not table.name.endswith("rejected_records")
    }


def run_days(
    spark: SparkSession, pipeline: Pipeline, settings: Settings, *ranges: list[date]
) -> None:
    raw = RawEventsJob(tables_of(pipeline, settings.warehouse), settings)
    for days in ranges:
        assert run_job(raw, spark, days).published
    for job in window_jobs(tables_of(pipeline, settings.warehouse), "hours", settings):
        result = run_job(job, spark, DAYS)
        assert result.published, [check for check in result.checks if not check.passed]


def ambiguous_on_days(
    spark: SparkSession, pipeline: Pipeline, settings: Settings
) -> dict[date, int]:
    """How many local times occur twice on each day, by the only check that fails."""
    jobs = [
        RawEventsJob(tables_of(pipeline, settings.warehouse), settings),
        *window_jobs(tables_of(pipeline, settings.warehouse), "hours", settings),
    ]
    days = sorted({row["arrival_unit"] for row in named_rows(jobs[0].tables[0])})
    found = [one for job in jobs for one in check_published(job, spark, days) if not one.passed]
    assert [one.check.name for one in found] == ["no_ambiguous_time"]
    assert [one.check.is_warning for one in found] == [True]
    return {day: numbers["ambiguous"] for day, numbers in found[0].numbers.items()}


@pytest.fixture(scope="module")
def expected(
    spark: SparkSession, settings: Settings, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, list[str]]:
    """The rows of the pipeline whose records hold the values."""
    folder = tmp_path_factory.mktemp("plain")
    own = settings_in(folder, settings)
    pipeline = declare(folder, PLAIN)
    land(folder, plain=True)
    run_days(spark, pipeline, own, DAYS)
    found = rows(pipeline, own)
    assert all(found[name] for name in found if name.endswith(("final_windows", "alerts")))
    return found


def test_days_in_any_order_and_a_rebuild_equal_plain_records(
    spark: SparkSession, settings: Settings, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    """Rules A6, H1: a column that comes later, and a changed expression, too."""
    own = settings_in(tmp_path, settings)
    pipeline = declare(tmp_path, LONG)
    land(tmp_path, plain=False)
    run_days(spark, pipeline, own, [DAYS[2]], [DAYS[0]], [DAYS[1]])
    assert rows(pipeline, own) == expected
    rejected = named_rows(tables_of(pipeline, own.warehouse).rejected_records)
    reasons = sorted(row["reason"] for row in rejected)
    lost = [means for day in DAYS for _, means in records(day)].count(None)
    assert len(reasons) == lost
    assert set(reasons) == {
        *("ambiguous_time: due_at", "failed_expression: total", "unreadable_event_time")
    }
    assert ambiguous_on_days(spark, pipeline, own) == AMBIGUOUS

    # Another expression: the tables are refused, and rebuilt.
    other = LONG | {"pair": {"type": "string", "as": "concat(currency, '/', cast(card as string))"}}
    changed = declare(tmp_path, other)
    with pytest.raises(DefinitionChangedError, match=r"source.columns.pair.as: was .*rebuild pay"):
        run_job(RawEventsJob(tables_of(changed, own.warehouse), own), spark, DAYS[:1])
    assert all(
        result.published for _, result in rebuild(spark, tables_of(changed, own.warehouse), own)
    )
    # The same rows, of keys in the other form; alerts have names that are digests of keys.
    in_first_form = {
        table: sorted(row.replace("EUR/", "EUR:").replace("USD/", "USD:") for row in found)
        for table, found in rows(changed, own).items()
        if not table.endswith("alerts")
    }
    assert in_first_form == {table: expected[table] for table in in_first_form}


def test_a_stream_of_files_equals_plain_records(
    spark: SparkSession, settings: Settings, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    """Rule H1."""
    own = settings_in(tmp_path, settings)
    pipeline = declare(tmp_path, LONG, stream=True, max_per_batch=1)
    land(tmp_path, plain=False)
    batches: list[BatchResult] = []
    run_stream(spark, tables_of(pipeline, own.warehouse), own, on_batch=batches.append)
    assert [batch.ambiguous for batch in batches] == list(AMBIGUOUS.values())
    assert ambiguous_on_days(spark, pipeline, own) == {
        batch.arrival_units[0]: batch.ambiguous for batch in batches
    }
    found = rows(pipeline, own)
    for table in ("final_windows", "late_records", "alerts"):
        assert found[f"payments/hours/{table}"] == expected[f"payments/hours/{table}"], table


def test_a_delta_table_has_the_values_of_plain_records(
    spark: SparkSession, settings: Settings, tmp_path: Path
) -> None:
    """Rule A6: structs and local times of a Delta table; its records come today."""
    own = settings_in(tmp_path, settings)
    pipeline = declare(tmp_path, LONG, path="table", format="delta")
    both = [pair for day in DAYS[1:] for pair in records(day)]
    table = pa.Table.from_pylist([found for found, _ in both])
    write_deltalake(tmp_path / "table", table)
    run_stream(spark, tables_of(pipeline, own.warehouse), own)
    raw = named_rows(tables_of(pipeline, own.warehouse).raw_events)
    assert sorted(
        (row["key"], row["event_time"].isoformat(), row["cents"], row["total"]) for row in raw
    ) == sorted(
        (means["pair"], means["paid_at"], means["cents"], means["total"])
        for _, means in both
        if means is not None
    )
