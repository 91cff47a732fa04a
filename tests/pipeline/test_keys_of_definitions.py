"""Definitions with keys and filters of their own: by days, as a stream, rebuilt, corrected."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.sql import Row, SparkSession

from tests.support.kinds import (
    ARRIVAL_UNITS,
    DAYS,
    DEFINITIONS,
    FIRST_DAY,
    POLICIES,
    TRIGGERS,
    WINDOWS,
    Ran,
    arrived,
    ms,
    ran_in,
)
from tests.support.oracle import alerts as oracle_alerts
from tests.support.oracle.arrival_unit_rows import CountDefinition, final_rows, in_time
from tests.support.oracle.firings import firings as oracle_firings
from tests.support.oracle.keys import FILTERED_OUT, asked_for, seen_by
from tests.support.oracle.rows import RowsAround
from tests.support.oracle.windows import (
    Definition,
    Key,
    Record,
    TimeDefinition,
    WindowRow,
    final_windows,
    keyed_windows,
    late_records,
    windows_after,
)
from tests.support.shared_folders import made_once
from tests.support.spark_cases import EPOCH, SHORT_SHARDS
from windows_pipeline.jobs import (
    FiringsJob,
    Job,
    KeyedWindowsJob,
    RawEventsJob,
    check_published,
)
from windows_pipeline.jobs.correction.run import correct
from windows_pipeline.jobs.days.chain import rebuild, window_jobs
from windows_pipeline.jobs.job import run_job
from windows_pipeline.query import WindowStore
from windows_pipeline.query.records.spark_filter import spark_filter
from windows_pipeline.settings import Settings
from windows_pipeline.storage.maintenance import maintain
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.streaming import run_stream

SHOPS = ("x", "y", None, "x")
"""The shop of each record, by its number in the order of arrival."""
DEFINITION: dict[str, Definition] = {
    **DEFINITIONS,
    "hops": TimeDefinition(size=10, advance=4, grace=4),
}
ROW_GRACE = 6
ROWS: dict[str, tuple[CountDefinition | RowsAround, dict[str, object]]] = {
    "counts": (CountDefinition(3, 2), {"kind": "count", "size": 3, "advance": 2}),
    "around": (
        RowsAround(is_range=True, back=10, ahead=4),
        {"kind": "slide_rows", "preceding": "10 ms", "following": "4 ms"},
    ),
}
AGGREGATES = {"total": ("sum", "whole"), "sources": ("count_distinct", "k")}
LARGE = 999_999_999_999_999_999
"""Of a bigint's largest number a ninth."""
BUSY = {"busy": {"when": "record_count >= 2", "severity": "total"}}


class Defined(NamedTuple):
    """A definition as the file has it, and what its key and filter make of a record."""

    kind: str
    fields: dict[str, object]
    key: Callable[[Record], Key]
    passes: Callable[[Record], bool] = lambda _: True


def shop(record: Record) -> Key:
    value = record.values["shop"]
    assert value is None or isinstance(value, str)
    return value


def pair(record: Record) -> Key:
    return f"{shop(record) or '-'}|{record.key}"


def source_key(record: Record) -> Key:
    return record.key


def swapped(record: Record) -> Key:
    return f"{record.key}|{shop(record) or '-'}"


def whole_key(_record: Record) -> Key:
    return None


def in_x(record: Record) -> bool:
    return shop(record) == "x"


def whole(record: Record) -> int:
    value = record.values["whole"]
    assert isinstance(value, int)
    return value


DEFINED = {
    "shop_hops": Defined(
        "hops",
        {"key": "shop", "where": f"whole * {LARGE:d} * 2 is not null and k <> 'b'"},
        shop,
        lambda record: whole(record) <= 4 and record.key != "b",
    ),
    "shop_sessions": Defined(
        "sessions", {"key": "shop", "where": "k <> 'c'"}, shop, lambda record: record.key != "c"
    ),
    "shop_slides": Defined("slides", {"key": "shop"}, shop),
    "odd_slides": Defined(
        "slides",
        {"where": "whole % 2 = 1 and ms >= '1969-01-01'"},
        source_key,
        lambda one: whole(one) % 2 == 1,
    ),
    "shop_counts": Defined(
        "counts", {"key": "shop", "where": "n % 3 > 0"}, shop, lambda record: record.offset % 3 > 0
    ),
    "pair_hops": Defined(
        "hops",
        {"key": ["shop", "k"], "where": "shop <> 'y' or k = 'a' or shop is null"},
        pair,
        lambda record: shop(record) != "y" or record.key == "a",
    ),
    "pair_sessions": Defined("sessions", {"key": ["k", "shop"]}, swapped),
    "pair_counts": Defined("counts", {"key": ["shop", "k"]}, pair),
    "all_hops": Defined("hops", {"key": [], "where": "shop <> 'y'"}, whole_key, in_x),
    "all_slides": Defined("slides", {"key": [], "where": "shop <> 'y'"}, whole_key, in_x),
    "all_sessions": Defined("sessions", {"key": [], "where": "shop = 'x'"}, whole_key, in_x),
    "all_counts": Defined("counts", {"key": [], "where": "shop <> 'y'"}, whole_key, in_x),
    "all_around": Defined("around", {"key": []}, whole_key),
    "shop_around": Defined("around", {"key": "shop", "where": "shop = 'x'"}, shop, in_x),
    "source_sessions": Defined("sessions", {}, swapped),
    "part_slides": Defined("slides", {"key": "k", "where": "shop <> 'y'"}, source_key, in_x),
}
OF_ANOTHER_SOURCE = ("source_sessions", "part_slides")
"""Those whose source has the key [k, shop]."""
ALWAYS = ("pair_hops", "all_slides")
"""Those of which `make test` runs the whole chain."""


def records() -> list[Record]:
    """The records of every kind, each with a shop, which is no function of its key."""
    return [
        Record(
            one.arrival_unit, 0, one.offset, one.key, one.event_time,
            {**one.values, "shop": SHOPS[number * number % 7 % 4], "k": one.key},
        )
        for number, one in enumerate(arrived())
    ]  # fmt: skip


def line(record: Record) -> str:
    fields = {"n": record.offset, "ms": record.event_time}
    return json.dumps(fields | {name: record.values[name] for name in ("k", "shop", "whole")})


def declare(settings: Settings, folder: Path, names: Sequence[str], **source: object) -> Ran:
    """A pipeline of some definitions, and its landed records, each day in two files."""
    windows: dict[str, object] = {}
    for name in names:
        kind, fields, *_ = DEFINED[name]
        common = {**(ROWS[kind][1] if kind in ROWS else WINDOWS[kind])}
        common.pop("first_window_start", None)
        common.setdefault("grace", f"{ROW_GRACE} ms")
        if kind == "hops":
            common["trigger"] = TRIGGERS["hops"]
        if kind in ROWS:
            common["trigger"] = {"final": True}
        aggregates = {of: f"{how}({what})" for of, (how, what) in aggregates_of(name).items()}
        alerts = BUSY
        if name.startswith("pair"):  # a part of the key, which is at least 'a' in all records
            alerts = {"busy": {**BUSY["busy"], "when": "record_count >= 2 and k >= 'a'"}}
        windows[name] = {**common, **fields, "aggregates": aggregates, "alerts": alerts}
    text = {
        "name": "keys",
        "source": {
            "path": "data", "format": "jsonl", "key": "k", "event_time": "ms", "arrival": "n",
            "columns": {
                "n": "bigint", "k": "string", "ms": "bigint", "whole": "bigint", "shop": "string",
            },
            **source,
        },
        "partitions": {"start": FIRST_DAY.isoformat()},
        "limits": {"late": "100 %"},
        "windows": windows,
    }  # fmt: skip
    landed = records()
    written_at = 1_000_000_000
    for arrival_unit, day in enumerate(DAYS):
        of_day = [one for one in landed if one.arrival_unit == arrival_unit]
        for number, piece in enumerate((of_day[:11], of_day[11:])):
            file = folder / "data" / day.isoformat() / f"{number}.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{line(one)}\n" for one in piece))
            written_at += 1
            os.utime(file, (written_at, written_at))  # what was written first is read first
    declared = folder / "pipelines" / "keys.yaml"
    declared.parent.mkdir(parents=True, exist_ok=True)
    declared.write_text(json.dumps(text))
    return ran_in(settings, folder, "keys")


def published(spark: SparkSession, jobs: Sequence[Job], days: Sequence[Any]) -> None:
    for job in jobs:
        result = run_job(job, spark, days)
        failed = [check for check in result.checks if not check.passed]
        assert (result.published, failed) == (True, []), failed


def computed(spark: SparkSession, settings: Settings, folder: Path, names: Sequence[str]) -> Ran:
    """Some definitions, computed as one range of days; every check passes."""
    ran = declare(settings, folder, names)
    published(spark, [RawEventsJob(ran.source, ran.settings)], DAYS)
    for name in names:
        published(
            spark,
            window_jobs(ran.source, name, ran.settings),
            DAYS,
        )
    return ran


@pytest.fixture(scope="module")
def ran(
    spark: SparkSession,
    short_shards: Settings,
    shared: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Ran:
    """The definitions of `ALWAYS`; this process's own copy."""
    made = made_once(shared / "keys", lambda folder: computed(spark, short_shards, folder, ALWAYS))
    own = shutil.copytree(made, tmp_path_factory.mktemp("keys") / "own")
    return ran_in(short_shards, own, "keys")


def key_text(key: object) -> Key:
    """A key as the oracle has it: the parts of a struct with a bar between them."""
    if isinstance(key, Row):
        return "|".join("-" if part is None else str(part) for part in key)
    return None if key is None else str(key)


def seen(name: str, arrived_records: Sequence[Record] | None = None) -> list[Record]:
    """The records as a definition sees them."""
    of_source = records() if arrived_records is None else arrived_records
    return seen_by(of_source, DEFINED[name].key, DEFINED[name].passes)


def aggregates_of(name: str) -> dict[str, tuple[str, str]]:
    is_plain = DEFINED[name].fields.get("key") == "shop"
    return AGGREGATES if is_plain else {"total": AGGREGATES["total"]}


def window_rows(name: str, rows: Sequence[Any], *, closed: bool | None = None) -> list[str]:
    """Rows of keyed_windows or final_windows, as the oracle writes them."""
    return sorted(
        repr(WindowRow(
            (row.arrival_unit - FIRST_DAY).days, key_text(row.key), ms(row.window_start),
            ms(row.window_end), row.first_event_time and ms(row.first_event_time),
            row.last_event_time and ms(row.last_event_time), row.record_count,
            {of: row[of] for of in aggregates_of(name)},
            row.closed if closed is None else closed,
        ))
        for row in rows
    )  # fmt: skip


def require_the_oracles(
    spark: SparkSession, ran: Ran, name: str, arrived_records: Sequence[Record] | None = None
) -> None:
    """Requires the windows, late records, alerts and firings that the rules give."""
    kind, own, tables = DEFINED[name].kind, seen(name, arrived_records), ran.tables(name)
    final = tables.final_windows.read(spark).collect()
    late = sorted(
        (
            (row.arrival_unit - FIRST_DAY).days, (row.record_arrival_unit - FIRST_DAY).days,
            row.offset, row.reason,
        )
        for row in tables.late_records.read(spark).collect()
    )  # fmt: skip
    passing = {one.id for one in own if one.key != FILTERED_OUT}
    if kind in ROWS:
        require_the_oracles_rows(kind, final, late, own)
        require_a_firing_of_each_row(tables.firings.read(spark).collect(), final, own)
        return
    definition, aggregates = DEFINITION[kind], aggregates_of(name)
    wanted = asked_for(final_windows(own, ARRIVAL_UNITS, definition, aggregates))
    assert window_rows(name, final, closed=True) == sorted(map(repr, wanted))
    keyed = tables.keyed_windows.read(spark).collect()
    every = asked_for(keyed_windows(own, ARRIVAL_UNITS, definition, aggregates))
    assert window_rows(name, keyed) == sorted(map(repr, every))
    assert late == [
        (row.arrival_unit, row.record.arrival_unit, row.record.offset, row.reason)
        for row in late_records(own, ARRIVAL_UNITS, definition)
        if row.record in passing
    ]
    raised = oracle_alerts.alerts(
        wanted, lambda row: row.record_count >= 2, lambda row: row.values["total"]
    )
    assert raised
    alerts = [
        ((row.arrival_unit - FIRST_DAY).days, key_text(row.key), ms(row.window_start),
         ms(row.window_end), ms(row.episode_start))
        for row in tables.alerts.read(spark).collect()
    ]  # fmt: skip
    assert sorted(map(repr, alerts)) == sorted(repr(tuple(alert[:5])) for alert in raised)
    if kind == "hops":
        require_the_oracles_firings(ran.tables(name).firings.read(spark).collect(), own)


def require_the_oracles_rows(
    kind: str, final: Sequence[Any], late: Sequence[object], own: Sequence[Record]
) -> None:
    """Rules F1, F2, F5: windows of rows, and the late ones."""
    rows = [
        ((row.arrival_unit - FIRST_DAY).days, key_text(row.key), ms(row.window_start),
         ms(row.window_end), row.record_count, row.total, row.offset)
        for row in final
    ]  # fmt: skip
    wanted = [
        (row.arrival_unit, row.key, row.start, row.end, row.record_count, row.total, row.offset)
        for row in asked_for(final_rows(own, ARRIVAL_UNITS, ROWS[kind][0], ROW_GRACE))
    ]
    assert sorted(map(repr, rows)) == sorted(map(repr, wanted))
    came = {one.id for one in in_time(own, ROW_GRACE)}
    assert late == [
        (one.arrival_unit, one.arrival_unit, one.offset, "late")
        for one in own
        if one.id not in came and one.key != FILTERED_OUT
    ]


def require_a_firing_of_each_row(
    fired: Sequence[Any], final: Sequence[Any], own: Sequence[Record]
) -> None:
    """Rules E2, F5: once, as it becomes final, after the first record that closes it."""
    so_far = [max(one.event_time for one in own[: n + 1]) for n in range(len(own))]
    wanted = []
    for row in final:
        after = next(n for n, s in enumerate(so_far) if s > ms(row.window_end) + ROW_GRACE)
        result = (row.arrival_unit, key_text(row.key), row.offset, row.record_count, row.total)
        wanted.append((*result, 0, "ON_TIME", True, so_far[after], own[after].offset))
    found = [
        (row.arrival_unit, key_text(row.key), row.offset, row.record_count, row.total,
         row.firing_id, row.reason, row.is_final, ms(row.stream_time), row.fired_after)
        for row in fired
    ]  # fmt: skip
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def require_the_oracles_firings(fired: Sequence[Any], own: Sequence[Record]) -> None:
    """Rules A9, E2: a record that is filtered out still advances stream time."""
    wanted = [
        (firing.key, firing.start, firing.id, firing.reason, firing.stream_time,
         own[firing.after or 0].offset, len(firing.records), firing.is_final)
        for firing in asked_for(
            oracle_firings([(one.key, one.event_time) for one in own], POLICIES["hops"])
        )
    ]  # fmt: skip
    found = [
        (key_text(row.key), ms(row.window_start), row.firing_id, row.reason, ms(row.stream_time),
         row.fired_after, row.record_count, row.is_final)
        for row in fired
    ]  # fmt: skip
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


@pytest.mark.parametrize("name", ALWAYS)
def test_the_tables_are_the_oracles(ran: Ran, spark: SparkSession, name: str) -> None:
    """Rules A5, A9, E1, E2, E5: all days at once, every check passed."""
    require_the_oracles(spark, ran, name)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [name for name in DEFINED if name not in (*ALWAYS, *OF_ANOTHER_SOURCE)]
)
def test_the_tables_of_every_kind_are_the_oracles(
    spark: SparkSession, short_shards: Settings, tmp_path: Path, name: str
) -> None:
    """Rules A5, A9, E1, E2, E5."""
    require_the_oracles(spark, computed(spark, short_shards, tmp_path, [name]), name)


def test_the_check_counts_what_is_filtered_out(ran: Ran, spark: SparkSession) -> None:
    """Rules A5, A9: a record that is in no table fails it, whether or not it passes the filter."""
    job = KeyedWindowsJob(ran.source, "all_slides", ran.settings)
    log = job.arrived(spark)
    rows = {table.short_name: table.of_arrival_units(spark, DAYS) for table in job.tables}
    late = rows["late_records"]

    def accounts(of_late: Any) -> dict[int, Any]:
        batches = job.check_batches(spark, DAYS, {**rows, "late_records": of_late}, log)
        (found,) = (batch for batch in batches if batch.name == "accounting")
        check = next(one for one in found.checks if one.name == "every_record_accounted_for")
        judged = found.rows.selectExpr("*", f"({check.breaks}) AS broken").collect()
        return {(row.arrival_unit - FIRST_DAY).days: row for row in judged}

    own, found = seen("all_slides"), accounts(late)
    filtered = [
        sum(one.key == FILTERED_OUT for one in own if one.arrival_unit == arrival_unit)
        for arrival_unit in range(ARRIVAL_UNITS)
    ]
    assert [found[arrival_unit].filtered for arrival_unit in range(ARRIVAL_UNITS)] == filtered
    assert [row.broken for row in found.values()] == [False] * ARRIVAL_UNITS
    on_arrival = late.where("arrival_unit = record_arrival_unit")
    arrival_units = {(row.arrival_unit - FIRST_DAY).days for row in on_arrival.collect()}
    without = accounts(late.limit(0))
    assert {arrival_unit for arrival_unit, row in without.items() if row.broken} == arrival_units


def test_firings_of_time_shards_are_those_of_the_whole_key(ran: Ran, spark: SparkSession) -> None:
    """Rules E2, H1: the records of one key are cut into time shards; so these of several are."""
    one_key = ran.settings.model_copy(update={"tuning": replace(SHORT_SHARDS, one_key=True)})
    job = FiringsJob(ran.source, "pair_hops", one_key)
    new = job.stage(spark, DAYS, job.arrived(spark)).tables["firings"]
    columns = new.table.schema.names
    found, wanted = (
        sorted(map(repr, rows.select(*columns).collect()))
        for rows in (new.rows, new.table.read(spark))
    )
    assert found == wanted


@pytest.mark.long
def test_a_trace_finds_the_records_of_a_window(
    spark: SparkSession, short_shards: Settings, tmp_path: Path
) -> None:
    """Rules A9, E5: of the definition's key, null too, and only those that pass."""
    ran = computed(spark, short_shards, tmp_path, ["shop_sessions"])
    last = asked_for(
        windows_after(seen("shop_sessions"), ARRIVAL_UNITS - 1, DEFINITION["sessions"])
    )
    of_keys = {window.key: window for window in last if window.closed}
    assert set(of_keys) == set(SHOPS)
    assert set(of_keys) == set(SHOPS)
    evaluated = spark_filter(spark)
    store = WindowStore(ran.pipeline, "shop_sessions", ran.settings.warehouse, row_filter=evaluated)
    for key, window in of_keys.items():
        start, end = (EPOCH + timedelta(milliseconds=ms) for ms in (window.start, window.end))
        session = store.session(key, start, end)
        assert session is not None
        found = store.trace(session).records.to_pylist()
        assert sorted(
            ((row["arrival_unit"] - FIRST_DAY).days, row["offset"]) for row in found
        ) == sorted((record.arrival_unit, record.offset) for record in window.records)


SAME = ("late_records", "failed_windows", "final_windows", "alerts", "firings", "early_warnings")


def require_the_same(found: Ran, wanted: Ran, name: str, tables: Sequence[str]) -> None:
    rows, others = found.rows(name), wanted.rows(name)
    compared = [table for table in rows if table.rsplit("/", 1)[1] in tables]
    for table in compared:
        assert rows[table] == others[table], table


def test_a_stream_gives_the_same(
    ran: Ran, spark: SparkSession, short_shards: Settings, tmp_path: Path
) -> None:
    """Rules A9, E4, H1: a micro-batch begins with one half of a day, and ends with one."""
    streamed = declare(short_shards, tmp_path, ALWAYS, stream=True, max_per_batch=3)
    run_stream(spark, streamed.source, streamed.settings)
    for name in ALWAYS:
        require_the_same(streamed, ran, name, SAME)


@pytest.mark.long
def test_published_rows_of_a_stream_pass_and_are_rebuilt(
    spark: SparkSession, short_shards: Settings, tmp_path: Path
) -> None:
    """Rules A5, A9, H1: all checks, values computed again, and the same rows by days."""
    names = ("shop_hops", "pair_sessions", "all_around", "all_sessions", "all_hops")
    whole = computed(spark, short_shards, tmp_path / "whole", names)
    streamed = declare(short_shards, tmp_path / "streamed", names, stream=True, max_per_batch=3)
    run_stream(spark, streamed.source, streamed.settings)
    for name in names:
        require_the_same(streamed, whole, name, SAME)
        job = KeyedWindowsJob(streamed.source, name, streamed.settings)
        failed = [one.check.name for one in check_published(job, spark, DAYS) if not one.passed]
        assert failed == []
    assert all(
        result.published
        for _, result in rebuild(spark, streamed.source, streamed.settings, "keyed_windows")
    )
    for name in names:
        require_the_same(streamed, whole, name, (*SAME, "keyed_windows"))


@pytest.mark.long
def test_single_days_and_a_correction_give_the_same(
    spark: SparkSession, short_shards: Settings, tmp_path: Path
) -> None:
    """Rules A9, E1, H1: the last day first; then a day that was landed again."""
    names = ("pair_hops", "all_slides", "shop_sessions")
    whole = computed(spark, short_shards, tmp_path / "whole", names)
    single = declare(short_shards, tmp_path / "single", names)
    file = tmp_path / "single" / "data" / DAYS[1].isoformat() / "1.jsonl"
    text = file.read_text()
    file.write_text("".join(text.splitlines(keepends=True)[:-5]))
    published(
        spark,
        [RawEventsJob(single.source, single.settings)],
        DAYS,
    )
    for name in names:
        for days in (DAYS[2:], DAYS[:1], DAYS[1:2]):
            published(
                spark,
                window_jobs(single.source, name, single.settings),
                days,
            )
        rows = single.rows(name)
        assert rows != whole.rows(name)
    file.write_text(text)
    published(
        spark,
        [RawEventsJob(single.source, single.settings)],
        DAYS[1:2],
    )
    of_pipeline = tables_of(single.pipeline, single.settings.warehouse, grace_may_differ=True)
    for name in names:
        result = correct(
            spark, of_pipeline, name, single.settings, DAYS[1], None, "records were missing"
        )
        assert result.published
        require_the_same(single, whole, name, ("late_records", "final_windows", "keyed_windows"))
        standing = single.tables(name).alerts.read(spark).where("retracted_by IS NULL")
        wanted = whole.tables(name).alerts.read(spark)
        alerts = [
            sorted(map(repr, rows.drop("correction", "retracted_by").collect()))
            for rows in (standing, wanted)
        ]
        assert alerts[0] == alerts[1]
    # Files are joined and clustered by the parts of a key.
    final = single.tables("pair_hops").final_windows
    assert maintain(spark, final).arrival_units
    require_the_same(single, whole, "pair_hops", ("final_windows",))


@pytest.mark.long
def test_a_source_may_have_a_key_of_several_columns(
    spark: SparkSession, short_shards: Settings, tmp_path: Path
) -> None:
    """Rules A6, A9: a record in which a part is null is rejected; definitions may have one part."""
    names = ("source_sessions", "part_slides", "all_slides")
    ran = declare(short_shards, tmp_path, names, key=["k", "shop"])
    published(spark, [RawEventsJob(ran.source, ran.settings)], DAYS)
    rejected = ran.source.rejected_records.read(spark)
    without = [one for one in records() if shop(one) is None]
    assert [row.reason for row in rejected.collect()] == ["null_key"] * len(without)
    for name in names:
        published(
            spark,
            window_jobs(ran.source, name, ran.settings),
            DAYS,
        )
        require_the_oracles(spark, ran, name, of_shops())


def of_shops() -> list[Record]:
    """The records that have a shop, numbered by arrival."""
    found: list[Record] = []
    for arrival_unit in range(ARRIVAL_UNITS):
        of_arrival_unit = [
            one for one in records() if one.arrival_unit == arrival_unit and shop(one) is not None
        ]
        found += [replace(one, offset=offset) for offset, one in enumerate(of_arrival_unit)]
    return found
