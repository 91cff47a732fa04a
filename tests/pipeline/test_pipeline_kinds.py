"""Pipelines of every kind of window: the whole chain against the oracle, and its checks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.kinds import (
    AGGREGATES,
    ARRIVAL_UNITS,
    DAYS,
    DECIMALS,
    DEFINITIONS,
    FIRST_DAY,
    LARGE,
    POLICIES,
    RECORDS_A_DAY,
    WINDOWS,
    Ran,
    declare,
    ms,
    ran_in,
    run_all,
)
from tests.support.oracle import alerts as oracle_alerts
from tests.support.oracle import notifications as oracle_notifications
from tests.support.oracle.firings import Firing
from tests.support.oracle.firings import firings as oracle_firings
from tests.support.oracle.windows import (
    WindowRow,
    final_windows,
    keyed_windows,
    late_records,
    windows_after,
)
from tests.support.shared_folders import made_once
from tests.support.spark_cases import EPOCH, texts
from tests.support.streams import run_until_killed
from windows_pipeline.checks.run import validate
from windows_pipeline.incremental.early_warnings import as_they_stand
from windows_pipeline.incremental.lookback import lookback_from_ms
from windows_pipeline.jobs.days.chain import window_jobs
from windows_pipeline.jobs.job import run_job
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.query import WindowStore
from windows_pipeline.settings import Settings
from windows_pipeline.streaming import BatchResult, run_stream
from windows_pipeline.windows import SessionWindows

SAME = (
    *("late_records", "final_windows", "alerts", "firings", "early_warnings"),
    "notifications",
)
MILLISECOND = timedelta(milliseconds=1)
BREAKS: dict[str, dict[str, dict[str, Any]]] = {
    "hops": {
        "bounds_aligned": {"window_start": -MILLISECOND},
        "holds_its_records": {"record_count": 1},
        "one_window_per_key_and_bounds": {},
        "no_empty_window": {"record_count": -10},
    },
    "sessions": {
        "bounds_are_records": {"window_end": MILLISECOND},
        "session_holds_its_records": {"record_count": 1},
        "sessions_apart": {"window_start": -100 * MILLISECOND},
        "one_window_per_key_and_bounds": {},
        "no_empty_window": {"record_count": -10},
    },
    "forwards": {
        "starts_at_a_record": {"window_start": -MILLISECOND},
        "holds_its_records": {"record_count": 1},
        "one_window_per_key_and_bounds": {},
        "no_empty_window": {"record_count": -10},
    },
}
"""What is added to a row for a check to find it; nothing where the row is there twice."""


@pytest.fixture(scope="module")
def ran(
    spark: SparkSession,
    short_shards: Settings,
    shared: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Ran:
    """All windows of one pipeline, computed as one range of days; this process's own copy."""
    made = made_once(shared / "kinds", lambda folder: run_all(spark, short_shards, folder))
    own = shutil.copytree(made, tmp_path_factory.mktemp("kinds") / "own")
    return ran_in(short_shards, own, "kinds")


def ms_if_any(instant: datetime | None) -> int | None:
    """A silence has none."""
    return None if instant is None else ms(instant)


def window_rows(name: str, rows: Iterable[Any], *, closed: bool | None = None) -> list[str]:
    """Rows of keyed_windows or final_windows, as the oracle writes them."""
    return texts(
        WindowRow(
            (row.arrival_unit - FIRST_DAY).days, row.key, ms(row.window_start), ms(row.window_end),
            ms_if_any(row.first_event_time), ms_if_any(row.last_event_time), row.record_count,
            {of: row[of] for of in AGGREGATES[name]}, row.closed if closed is None else closed,
        )
        for row in rows
    )  # fmt: skip


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_tables_are_the_oracles(ran: Ran, spark: SparkSession, name: str) -> None:
    """Rules A4, A5, B3, B7, B8, C1, D1, D2, E1, E4, E5: three arrival units at once."""
    definition, tables = DEFINITIONS[name], ran.tables(name)
    found = tables.keyed_windows.read(spark).collect()
    wanted = keyed_windows(ran.records, ARRIVAL_UNITS, definition, AGGREGATES[name])
    assert window_rows(name, found) == texts(wanted)
    assert {row.closed for row in wanted} == {True, False}
    final = final_windows(ran.records, ARRIVAL_UNITS, definition, AGGREGATES[name])
    rows = tables.final_windows.read(spark).collect()
    assert window_rows(name, rows, closed=True) == texts(final)
    late = tables.late_records.read(spark).collect()
    listed = late_records(ran.records, ARRIVAL_UNITS, definition)
    assert listed
    assert sorted(
        (
            (row.arrival_unit - FIRST_DAY).days,
            (row.record_arrival_unit - FIRST_DAY).days,
            row.offset,
            row.reason,
        )
        for row in late
    ) == [
        (row.arrival_unit, row.record.arrival_unit, row.record.offset, row.reason) for row in listed
    ]
    alerts = [
        ((row.arrival_unit - FIRST_DAY).days, row.key, *map(ms, row[3:5]), ms(row.episode_start))
        for row in tables.alerts.read(spark).where("rule = 'busy'").collect()
    ]
    raised = oracle_alerts.alerts(
        final, lambda row: row.record_count >= 2, lambda row: row.values["total"]
    )
    assert raised
    assert sorted(alerts) == sorted(alert[:5] for alert in raised)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_notifications_are_the_oracles(ran: Ran, spark: SparkSession, name: str) -> None:
    """Rules E4, E6: when each episode opens, worsens and ends, with its worst window."""
    definition = DEFINITIONS[name]
    final = final_windows(ran.records, ARRIVAL_UNITS, definition, AGGREGATES[name])
    raised = oracle_alerts.alerts(
        final, lambda row: row.record_count >= 2, lambda row: row.values["total"]
    )
    delay = definition.grace + getattr(definition, "gap", 0)
    closes = [
        max(one.event_time for one in ran.records if one.arrival_unit <= arrival_unit) - delay
        for arrival_unit in range(ARRIVAL_UNITS)
    ]
    wanted = oracle_notifications.events(raised, closes, definition, final)
    rows = ran.notifications(name).read(spark).where("rule = 'busy'").collect()
    found = [
        (
            (row.arrival_unit - FIRST_DAY).days, row.key, ms(row.episode_start), row.event,
            *map(ms, (row.window_start, row.window_end, row.until)), row.severity,
        )
        for row in rows
    ]  # fmt: skip
    assert {row.event for row in wanted} >= {"opened", "ended"}
    assert sorted(found) == sorted(map(tuple, wanted))
    values = {(row.key, row.start, row.end): row for row in final}
    for row in rows:
        window = values[row.key, ms(row.window_start), ms(row.window_end)]
        assert row.record_count == window.record_count
        assert json.loads(row.aggregates)["total"] == window.values["total"] == row.severity
        assert (row.since, row.correction, row.retracted_by) == (row.episode_start, None, None)
    assert len({row.notification_id for row in rows}) == len(rows)


@pytest.mark.parametrize("name", DEFINITIONS)
def test_the_key_of_a_table_identifies_its_rows(ran: Ran, spark: SparkSession, name: str) -> None:
    """Corrections tell by it which rows are the same."""
    of_pipeline = ran.source
    for table in (*of_pipeline.of_source, of_pipeline.landed_files, *of_pipeline.of(name).written):
        rows = table.read(spark)
        if table.key:
            assert rows.select(*table.key).distinct().count() == rows.count(), table.name


def fired(ran: Ran, name: str) -> list[Firing]:
    """The oracle's firings, of windows that the definition has."""
    first = WINDOWS[name].get("first_window_start") and -18
    found = oracle_firings([(one.key, one.event_time) for one in ran.records], POLICIES[name])
    return [firing for firing in found if first is None or firing.start >= int(str(first))]


def total(ran: Ran, firing: Firing, of: str) -> Any:
    """The sum of a pane's values, null of none (rule G1)."""
    values = [ran.records[number].values[of] for number in firing.records]
    return (
        sum(value for value in values if value is not None)
        if any(value is not None for value in values)
        else None
    )


@pytest.mark.parametrize("name", POLICIES)
def test_the_firings_are_the_oracles(ran: Ran, spark: SparkSession, name: str) -> None:
    """Rules E2, E4: in the arrival unit of the record that made it fire, numbers going on."""
    gap = POLICIES[name].gap
    wanted = []
    for firing in fired(ran, name):
        assert firing.after is not None
        after = ran.records[firing.after]
        cause = "RECORD" if firing.cause == "record" else "STREAM_TIME"
        ids = (firing.start, firing.end - gap, firing.id, firing.reason, cause)
        held = (len(firing.records), total(ran, firing, "whole"), firing.is_final)
        wanted.append(
            (after.arrival_unit, firing.key, *ids, firing.stream_time, after.offset, *held)
        )
    found = [
        (
            (row.arrival_unit - FIRST_DAY).days, row.key, ms(row.window_start), ms(row.window_end),
            row.firing_id, row.reason, row.cause, ms(row.stream_time), row.fired_after,
            row.record_count, row.total, row.is_final,
        )
        for row in ran.tables(name).firings.read(spark).collect()
    ]  # fmt: skip
    assert {row[5] for row in found} == {"EARLY", "ON_TIME", "LATE"}
    assert (0 in {row[9] for row in found}) == (name == "slides")  # silences
    assert sorted(found) == sorted(wanted)


def test_a_forward_window_fires_once_as_it_closes(ran: Ran, spark: SparkSession) -> None:
    """Rules B7, E1, E2: with its final result, at the first record that closes it."""
    tables, grace = ran.tables("forwards"), DEFINITIONS["forwards"].grace
    fired = tables.firings.read(spark)
    assert fired.where("firing_id <> 0 OR reason <> 'ON_TIME' OR NOT is_final").isEmpty()
    columns = [name for name in tables.final_windows.schema.names if name in fired.columns]
    final = tables.final_windows.read(spark).select(columns)
    assert texts(fired.select(columns).collect()) == texts(final.collect())
    so_far = [max(one.event_time for one in ran.records[: n + 1]) for n in range(len(ran.records))]
    for row in fired.collect():
        after = next(n for n, s in enumerate(so_far) if s > ms(row.window_end) + grace)
        assert (ms(row.stream_time), row.fired_after) == (so_far[after], ran.records[after].offset)
    assert not tables.early_warnings.is_written


def test_final_results_confirm_or_withdraw_early_warnings(ran: Ran, spark: SparkSession) -> None:
    """Rules E2, E5, H1: raised by the first firing that breaks the rule, in its arrival unit."""
    breaks: dict[str, Callable[[int, Decimal | None], bool]] = {
        "busy": lambda count, _: count >= 2,
        "large": lambda _, exact: exact is not None and exact >= LARGE,
    }
    first: dict[tuple[Any, ...], Firing] = {}
    for firing in fired(ran, "hops"):
        for rule, broken in breaks.items():
            if broken(len(firing.records), total(ran, firing, "amount")) and not firing.is_final:
                first.setdefault((rule, firing.key, firing.start), firing)
    wanted = [
        (ran.records[firing.after or 0].arrival_unit, *row_key, firing.id, "open")
        for row_key, firing in first.items()
    ]
    for row in final_windows(ran.records, ARRIVAL_UNITS, DEFINITIONS["hops"], AGGREGATES["hops"]):
        for rule, broken in breaks.items():
            row_key = (rule, row.key, row.start)
            if row_key in first:
                holds = broken(row.record_count, row.values["exact"])
                state = "confirmed" if holds else "withdrawn"
                wanted.append((row.arrival_unit, *row_key, first[row_key].id, state))
    table = ran.tables("hops").early_warnings
    assert table is not None
    rows = table.read(spark)
    found = [
        ((row.arrival_unit - FIRST_DAY).days, row.rule, row.key, ms(row.window_start),
         row.firing_id, row.state)
        for row in rows.collect()
    ]  # fmt: skip
    assert {row[-1] for row in found} == {"open", "confirmed", "withdrawn"}
    assert sorted(found) == sorted(wanted)
    states = {row[1:4]: row[-1] for row in wanted if row[-1] != "open"}
    raised = {row[1:4]: row[0] for row in wanted if row[-1] == "open"}
    stand = {
        (row.rule, row.key, ms(row.window_start)): ((row.arrival_unit - FIRST_DAY).days, row.state)
        for row in as_they_stand(rows).collect()
    }
    assert stand == {row_key: (raised[row_key], states.get(row_key, "open")) for row_key in raised}
    assert not ran.tables("sessions").early_warnings.is_written


def test_decimals_stay_exact_from_landed_text_to_alerts(ran: Ran, spark: SparkSession) -> None:
    """Rules A6 and G2: what does not fit the type is rejected; nothing is rounded."""
    source = ran.source
    (rejected,) = source.rejected_records.read(spark).collect()
    assert rejected.reason == "wrong_type: amount"
    assert json.loads(rejected.original)["amount"] == 0.005
    tables = ran.tables("hops")
    final = tables.final_windows.read(spark)
    assert {name: final.schema[name].dataType.simpleString() for name in DECIMALS} == DECIMALS
    aggregates = AGGREGATES["hops"]
    large = [
        row.values["exact"]
        for row in final_windows(ran.records, ARRIVAL_UNITS, DEFINITIONS["hops"], aggregates)
        if row.values["exact"] is not None and row.values["exact"] >= LARGE
    ]
    assert len(large) > 1
    raised = tables.alerts.read(spark).where("rule = 'large'").collect()
    assert sorted(row.exact for row in raised) == sorted(large)


@pytest.mark.long
@pytest.mark.smoke
def test_the_last_day_alone_gives_the_same(ran: Ran, spark: SparkSession) -> None:
    """Rule H1: what lies further back is found again; what was published is not changed."""
    steps_of = {
        "hops": (0, 3),
        "sessions": (0, 1, 2, 3),
        "slides": (3,),
        "forwards": (0, 1, 2),
    }
    for name, steps in steps_of.items():
        before = ran.rows(name)
        jobs = window_jobs(ran.source, name, ran.settings)
        for job in (jobs[step] for step in steps):
            result = run_job(job, spark, DAYS[-1:])
            assert result.published, [check for check in result.checks if not check.passed]
        assert ran.rows(name) == before


@pytest.mark.parametrize("name", ["hops", "sessions"])
def test_if_all_arrival_units_are_blocked_the_results_are_empty(
    ran: Ran, spark: SparkSession, name: str
) -> None:
    """Rule A2: nothing closes past a missing arrival unit, be it the first."""
    keyed = window_jobs(ran.source, name, ran.settings)[0]
    log = tuple(row for row in keyed.arrived(spark) if row.arrival_unit != DAYS[0])
    staged = keyed.stage(spark, DAYS[1:], log).rows
    assert [rows.count() for rows in staged.values()] == [0, 0, 0]
    batches = keyed.check_batches(spark, DAYS[1:], staged, log)
    failed = {found.check.name for found in validate(batches) if not found.passed}
    assert failed == {"no_arrival_missing"}


@pytest.mark.parametrize("name", BREAKS)
def test_broken_windows_fail_their_checks(ran: Ran, spark: SparkSession, name: str) -> None:
    """Rules B7, C1, D1, D2: each check finds the window that was broken for it."""
    job = window_jobs(ran.source, name, ran.settings)[0]
    log = job.arrived(spark)
    stored = {table.short_name: table.read(spark) for table in job.tables}
    keyed = stored["keyed_windows"]
    windows = [row.asDict() for row in keyed.orderBy("key", "window_end", "arrival_unit").collect()]
    # The second and later ones of a key: a session's neighbour is one before it.
    fitting = [
        now
        for before, now in pairwise(windows)
        if before["key"] == now["key"] and now["record_count"] < 10
    ]
    broken: dict[str, tuple[object, ...]] = {}
    for number, (check, change) in enumerate(BREAKS[name].items()):
        window = fitting[number * len(fitting) // len(BREAKS[name])]
        if not change:
            windows.append(dict(window))
        for column, more in change.items():
            window[column] += more
        broken[check] = (window["key"], ms(window["window_start"]))
    rows = spark.createDataFrame(
        [tuple(row[column] for column in keyed.columns) for row in windows], keyed.schema
    )
    failing = {
        check.name: {
            (row.key, row["_window_start_ms"]) for row in batch.rows.where(check.breaks).collect()
        }
        for batch in job.check_batches(spark, DAYS, {**stored, "keyed_windows": rows}, log)
        for check in batch.checks
        if check.name in broken
    }
    assert [check for check, row_key in broken.items() if row_key not in failing[check]] == []


@pytest.mark.long
def test_a_broken_firing_or_warning_fails_its_check(ran: Ran, spark: SparkSession) -> None:
    """Rules E1, E2: each check finds the window that was broken for it."""
    job = window_jobs(ran.source, "hops", ran.settings)[-1]
    log = job.arrived(spark)
    firings, warnings = (
        [row.asDict() for row in table.read(spark).collect()] for table in job.tables
    )
    final = ran.tables("hops").final_windows.read(spark).collect()
    closed = {(row.key, row.window_start) for row in final}
    firings.sort(key=lambda row: row["firing_id"])
    last = {(row["key"], row["window_start"]): row for row in firings}
    late = [
        row_key for row_key, row in last.items() if row_key in closed and row["reason"] == "LATE"
    ]
    numbered, in_order, once, shown, ended, unfinished = late[:6]
    last[numbered]["firing_id"] += 1
    last[in_order]["reason"] = "EARLY"
    last[once]["reason"] = "ON_TIME"
    last[shown]["record_count"] += 1
    last[ended]["record_count"] = 0
    last[unfinished]["is_final"] = False
    raised = [row for row in warnings if row["state"] == "open" and row["rule"] == "busy"]
    confirmed = next(row for row in warnings if row["state"] == "confirmed")
    confirmed["state"] = "withdrawn"
    raised[0]["record_count"] = 1
    warnings.append(dict(raised[1]))
    broken = {
        "firings_numbered": numbered,
        "firing_reasons_in_order": in_order,
        "on_time_once": once,
        "last_firing_shows_final": shown,
        "final_firing_is_final": ended,
        "final_firing_once": unfinished,
        "early_warning_breaks_its_rule": (raised[0]["key"], raised[0]["window_start"]),
        "early_warning_agrees_with_final": (confirmed["key"], confirmed["window_start"]),
        "early_warning_once": (raised[1]["key"], raised[1]["window_start"]),
    }
    rows = {
        table.short_name: spark.createDataFrame(
            [tuple(row[name] for name in table.schema.names) for row in of], table.schema
        )
        for table, of in zip(job.tables, (firings, warnings), strict=True)
    }
    failing = {
        check.name: {
            (row.key, row.window_start) for row in batch.rows.where(check.breaks).collect()
        }
        for batch in job.check_batches(spark, DAYS, rows, log)
        for check in batch.checks
    }
    assert set(failing) == set(broken) == {check.name for check in job.checks}
    assert [name for name, row_key in broken.items() if row_key not in failing[name]] == []


def test_trace_finds_the_records_of_a_session(ran: Ran) -> None:
    """Rules D2, E5: also where another's records or late ones lie between its bounds."""
    last = windows_after(ran.records, ARRIVAL_UNITS - 1, DEFINITIONS["sessions"])
    window = max((one for one in last if one.closed), key=lambda one: len(one.records))
    store = WindowStore(ran.pipeline, "sessions", ran.settings.warehouse)
    start, end = (EPOCH + timedelta(milliseconds=ms) for ms in (window.start, window.end))
    session = store.session(window.key, start, end)
    assert session is not None
    found = store.trace(session).records.to_pylist()
    listed = [((row["arrival_unit"] - FIRST_DAY).days, row["offset"]) for row in found]
    assert sorted(listed) == sorted(
        (record.arrival_unit, record.offset) for record in window.records
    )


def test_the_look_back_of_a_session_covers_all_its_records(spark: SparkSession) -> None:
    """Rule D1: over more days than one, to where a longer gap begins; each close time by itself."""
    hour = 3_600_000
    gap = 3 * hour
    times = {
        "a": [-20 * hour, *range(0, 60 * hour, gap)],
        "b": [50 * hour, 53 * hour + 1],
        None: [58 * hour],
    }
    rows = [(key, EPOCH + timedelta(milliseconds=time)) for key, of in times.items() for time in of]
    records = spark.createDataFrame(rows, "key string, event_time timestamp")
    closes = [-10 * hour, 55 * hour, 59 * hour]
    spec = SessionWindows(gap, 0)
    found = lookback_from_ms(records, spec, closes[1:])
    assert found == {NEVER_MS: NEVER_MS, 55 * hour: 0, 59 * hour: 59 * hour}
    assert lookback_from_ms(records, spec, closes[:1])[closes[0]] == closes[0]


@pytest.mark.long
def test_a_stream_of_every_kind_is_the_same(
    ran: Ran, spark: SparkSession, short_shards: Settings, tmp_path: Path
) -> None:
    """Rules E1, E2, E4, E5, H1: a micro-batch begins with one half of a day, and ends with one."""
    halves = (range(RECORDS_A_DAY // 2), range(RECORDS_A_DAY // 2, RECORDS_A_DAY))
    fields = {"stream": True, "max_per_batch": 3}
    streamed = declare(short_shards, tmp_path, halves, **fields)
    results: list[BatchResult] = []
    of_pipeline = (spark, streamed.source, streamed.settings)
    run_until_killed(*of_pipeline, "firings", "after", on_batch=results.append)
    run_stream(*of_pipeline, on_batch=results.append)
    assert [(one.arrival_units, one.rejected) for one in results] == [(DAYS[:2], 0), (DAYS[1:], 1)]
    for name in DEFINITIONS:
        found, wanted = streamed.rows(name), ran.rows(name)
        same = [table for table in found if table.rsplit("/", 1)[1] in SAME]
        assert len(same) == len(streamed.tables(name).of_firings) + 4
        for table in same:
            assert found[table] == wanted[table], table
