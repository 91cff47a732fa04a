"""Episodes and notifications are the same by days, as a stream, rebuilt and after a correction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from pyspark.sql import Row, SparkSession

from tests.support.oracle import episodes as oracle_episodes
from tests.support.oracle.aggregates import Number
from tests.support.oracle.alerts import alerts, lasting
from tests.support.oracle.notifications import events
from tests.support.oracle.windows import Record, SlidingDefinition, WindowRow, final_windows
from tests.support.small_project import HEADER, SmallProject
from tests.support.stored_rows import named_rows, stored_rows
from windows_pipeline.checks.run import validate
from windows_pipeline.incremental.definition import Definition
from windows_pipeline.incremental.definition_records import passing
from windows_pipeline.incremental.whole_episodes import WholeEpisodes
from windows_pipeline.jobs import AlertsJob, check_published
from windows_pipeline.jobs.days.chain import window_jobs
from windows_pipeline.jobs.job import cache_rows
from windows_pipeline.settings import Settings
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import tables_of

SLIDES = {
    "kind": "sliding",
    "time_difference": "10 ms",
    "grace": "2 ms",
    "emit_empty": True,
    "aggregates": {"s": "sum(v)"},
    "alerts": {
        "busy": {"when": "record_count >= 2", "severity": "s"},
        "huge": {"when": "s > 50", "severity": "1"},
        "lasting": {"when": "record_count < 2", "severity": "episode_ms"},
        "quiet": {
            "when": "record_count = 0 AND window_start < TIMESTAMP '1970-01-01 00:00:00.4'",
            "severity": "1",
        },
    },
}
DEFINITION = SlidingDefinition(time_difference=10, grace=2, emit_empty=True)
NOTIFY = {"notify": {"people": {"file": "sent.jsonl"}}}
RECORDS = {
    1: [("a", 0, 1), ("a", 4, 1), ("b", 5, 9), ("a", 6, 3), ("a", 9, 1)],
    # The episode of `a` goes on into day 2, where one record joins the last of day 1.
    2: [("a", 16, 4), ("b", 14, 60), ("a", 23, 4), ("a", 30, 1)],
    # A day that raises no alert, and ends the episodes.
    3: [("c", 70, 1)],
    # A record ends the silence of `a`.
    4: [("a", 90, 1), ("a", 95, 2), ("c", 140, 1)],
}


def scattered() -> dict[int, list[tuple[str, int, int]]]:
    """The records of days 5 to 9: of many keys, some of them late or partly late.

    Their silences have any length. Of the silences after 400 ms none breaks the rule quiet.
    """
    chance = Random(7)
    keys = [f"k{number}" for number in range(24)]

    def record(day: int, step: int) -> tuple[str, int, int]:
        time = 80 * (day - 5) + 4 * step - chance.choice((0, 0, 3, 11))
        return chance.choice(keys), 200 + max(0, time), step

    records = {day: [record(day, step) for step in range(20)] for day in range(5, 10)}
    records[9].append(("k0", 1_100, 1))
    return records


def project(
    folder: Path,
    settings: Settings,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    **source: Any,
) -> SmallProject:
    made = SmallProject(folder, settings, capfd, monkeypatch)
    made.declare(SLIDES, top=NOTIFY, **source)
    return made


def text(records: Iterable[tuple[str, int, int]]) -> str:
    return HEADER + "".join(f"{key},{time},{value}\n" for key, time, value in records)


def table_of(made: SmallProject) -> Table:
    return tables_of(made.pipeline, made.settings.warehouse).of("w").notifications


def sent(made: SmallProject, *more: str) -> list[tuple[object, ...]]:
    """What happened, in order.

    Day, rule, key, episode, worst window's end, event, until, worst window's severity, id.
    """
    return sorted(
        (
            row["arrival_unit"].day, row["rule"], row["key"],
            *(round(row[name].timestamp() * 1000) for name in ("episode_start", "window_end")),
            row["event"], _ms(row["until"]),
            row["severity"], row["notification_id"],
            *(row[name] for name in more),
        )
        for row in named_rows(table_of(made))
    )  # fmt: skip


def listed(made: SmallProject) -> list[tuple[object, ...]]:
    """What the days list of episodes, in order: the oracle's columns, with day and rule."""
    names = ("until", "open_until", "has_alert", "alerts", "severity", "window_start", "window_end")
    return sorted(
        (
            row["arrival_unit"].day, row["rule"], row["key"], _ms(row["episode_start"]),
            *(_ms(row[name]) if isinstance(row[name], datetime) else row[name] for name in names),
        )
        for row in named_rows(made.windows.episodes)
    )  # fmt: skip


class Expected(NamedTuple):
    """The oracle's events of all rules, as `sent` has them but for the ids, and its episodes."""

    events: list[tuple[object, ...]]
    episodes: list[tuple[object, ...]]


def expected(records: Mapping[int, Sequence[tuple[str, int, int]]]) -> Expected:
    """What the records give by the oracle."""
    arrived = [
        Record(day - 1, 0, offset, key, time, {"v": value})
        for day, of_day in records.items()
        for offset, (key, time, value) in enumerate(of_day)
    ]
    final = final_windows(arrived, len(records), DEFINITION, {"s": ("sum", "v")})
    closes = [
        max(one.event_time for one in arrived if one.arrival_unit <= arrival_unit)
        - DEFINITION.grace
        for arrival_unit in range(len(records))
    ]
    lasts = lasting(alerts(final, lambda row: row.record_count < 2, lambda _: None))
    rules: dict[str, tuple[Callable[[WindowRow], bool], Callable[[WindowRow], Number | None]]] = {
        "busy": (lambda row: row.record_count >= 2, lambda row: row.values["s"]),
        "huge": (lambda row: (row.values["s"] or 0) > 50, lambda _: 1),
        "quiet": (lambda row: row.record_count == 0 and row.start < 400, lambda _: 1),
    }
    raised = {rule: alerts(final, *functions) for rule, functions in rules.items()}
    found: list[tuple[object, ...]] = []
    of_episodes: list[tuple[object, ...]] = []
    for rule, of_rule in {**raised, "lasting": lasts}.items():
        severity_of = float if rule == "lasting" else None
        found += [
            (
                event.arrival_unit + 1, rule, event.key, event.episode, event.end, event.event,
                event.until, event.severity,
            )
            for event in events(of_rule, closes, DEFINITION, final, severity_of)
        ]  # fmt: skip
        of_episodes += [
            (one.arrival_unit + 1, rule, *one[1:])
            for one in oracle_episodes.listed(
                of_rule, closes, DEFINITION.time_difference, final, severity_of
            )
        ]
    return Expected(sorted(found), sorted(of_episodes))


def test_rows_are_the_same_by_days_as_a_stream_and_rebuilt(
    spark: SparkSession,
    settings: Settings,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rules E4, E5, E6, H1: whatever the runs and the cuts; an episode's start may be long past."""
    fixtures, landed = (settings, capfd, monkeypatch), {**RECORDS, **scattered()}
    at_once = project(tmp_path / "once", *fixtures)
    for day, records in landed.items():
        at_once.land(day, text(records))
    assert at_once.ingest("run")[0] == 0
    rows = sent(at_once)
    wanted = expected(landed)
    assert [row[:-1] for row in rows] == wanted.events
    assert listed(at_once) == wanted.episodes
    # Some silences go on for a day at least, and some of these end.
    assert {(row[5] is None, row[6]) for row in wanted.episodes} >= {(True, False), (False, False)}
    assert {row[1] for row in rows if row[5] == "ended"} >= {"lasting", "quiet"}
    # Each day alone, and days with a gap between, from the raw records.
    job = window_jobs(at_once.source, "w", at_once.settings)[2]
    for days in ([1, 3, 4], [2, 3], [3], [6], [9]):
        arrival_units = [date(2026, 11, day) for day in days]
        staged = job.stage(spark, arrival_units, job.arrived(spark))
        for table, new in ((new.table, new) for new in staged.tables.values()):
            stored = [row for row in stored_rows(table) if row[0] in arrival_units]
            assert plain(new.rows.select(*table.schema.names).collect()) == plain(stored), (
                days,
                table.name,
            )
        batches = job.check_batches(spark, arrival_units, staged.rows, job.arrived(spark))
        assert [one.check.name for one in validate(batches[-1:]) if not one.passed] == [], days
    require_the_same_without_silences(spark, at_once)

    streamed = project(tmp_path / "stream", *fixtures, stream=True, max_per_batch=3)
    for day, records in landed.items():
        # The first micro-batch ends within day 2, the last but one within day 7.
        at = {1: 1, 2: 2, 7: 9}.get(day, 0)
        parts = [records[:at], records[at:]] if at else [records]
        for number, part in enumerate(parts):
            streamed.land(day, text(part), f"{day}{number}.csv")
    assert streamed.ingest("stream")[0] == 0
    assert sent(streamed) == rows
    assert listed(streamed) == wanted.episodes
    assert streamed.call("rebuild", "p", "--from", "alerts")[0] == 0
    assert sent(streamed) == rows
    assert listed(streamed) == wanted.episodes


def require_the_same_without_silences(spark: SparkSession, project: SmallProject) -> None:
    """Rule E6: episodes of a day that began windows before it, where nobody looks for silences."""
    job = AlertsJob(project.source, "w", project.settings)
    windows = job.windows.model_copy(update={"emit_empty": False})
    pipeline = project.pipeline.model_copy(update={"windows": {"w": windows}})
    tables = tables_of(pipeline, job.settings.warehouse)
    definition = Definition(tables.of("w"), job.settings.tuning)
    log = job.arrived(spark)
    records, arrivals = passing(job.logged_records(spark, log)), job.arrivals(log)
    days = [date(2026, 11, 2)]
    final = job.window_tables.final_windows.of_arrival_units(spark, days)
    final = final.where("record_count > 0")
    of_days = WholeEpisodes(definition, records, arrivals, days, final, cache_rows)
    whole = of_days.joined(definition.raise_alerts(final)).whole
    of_day = "rule in ('busy', 'huge') and arrival_unit = '2026-11-02'"
    found, wanted = (
        plain(rows.where(of_day).select("key", "rule", "window_start", "episode_start").collect())
        for rows in (whole, job.window_tables.alerts.read(spark))
    )
    assert found
    assert found == wanted


def plain(rows: Iterable[Iterable[object]]) -> list[str]:
    """Rows as texts, with instants in milliseconds, and structs as lists."""
    return sorted(repr([_plain(value) for value in row]) for row in rows)


def _plain(value: object) -> object:
    if isinstance(value, datetime):
        return _ms(value)
    fields = value.asDict() if isinstance(value, Row) else value
    return [_plain(of) for of in fields.values()] if isinstance(fields, dict) else value


def _ms(instant: datetime) -> int:
    return round((instant if instant.tzinfo else instant.astimezone()).timestamp() * 1_000)


@pytest.mark.long
def test_a_correction_takes_back_what_did_not_happen(
    spark: SparkSession,
    settings: Settings,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rules E1, E6: what stands is what there would be from the start; nothing is deleted."""
    made = project(tmp_path, settings, capfd, monkeypatch)
    for day, records in RECORDS.items():
        made.land(day, text(records))
    assert made.ingest("run")[0] == 0
    before = sent(made)
    mended = {**RECORDS, 1: [("a", 4, 1), ("a", 9, 8)]}
    made.land(1, text(mended[1]))
    # A check refuses to change what was published.
    assert made.call("run", "p", "--from", "2026-11-01", "--to", "2026-11-01")[0] == 1
    correct = ("correct", "p", "--from", "2026-11-01", "--cause", "day 1 was landed again")
    status, said = made.call(*correct)
    assert status == 0, said

    rows = sent(made, "correction", "retracted_by")
    stands = [row for row in rows if row[-1] is None and row[5] != "retracted"]
    assert [row[:8] for row in stands] == expected(mended).events
    assert listed(made) == expected(mended).episodes
    assert {row[-2] for row in stands} == {None, 1}
    # Everything that was sent is there still, and marked where it is wrong.
    kept = [row for row in rows if row[-2] is None]
    assert [row[:-2] for row in kept] == before
    assert {row[-1] for row in kept} == {None, 1}
    # The episode of `b` is gone as a whole; those that only changed are not said to be.
    gone = [row[:6] for row in rows if row[5] == "retracted"]
    opened = {row[1:4] for row in before if row[5] == "opened"}
    stand = {row[1:4] for row in stands if row[5] == "opened"}
    assert {row[1:4] for row in gone} == opened - stand
    assert ("busy", "b", 4) in opened - stand
    assert len(gone) == len(opened - stand)
    assert len({row[8] for row in rows}) == len(rows)

    # Nothing differs any more, so another one changes nothing.
    status, said = made.call(*correct)
    assert (status, sent(made, "correction", "retracted_by")) == (0, rows), said
    # What was retracted breaks no rule, of all days or of each day alone.
    job = window_jobs(made.source, "w", made.settings)[2]
    days = [date(2026, 11, day) for day in mended]
    for arrival_units in (days, *([day] for day in days)):
        checked = check_published(job, spark, arrival_units)
        assert [one.check.name for one in checked if not one.passed] == [], arrival_units

    # A rebuild starts from the records: nothing was retracted, and the command says so.
    status, said = made.call("rebuild", "p", "--from", "alerts")
    assert (status, "Alerts that 1 earlier correction retracted are left out" in said) == (0, True)
    rebuilt = sent(made, "correction", "retracted_by")
    assert [row[:8] for row in rebuilt] == expected(mended).events
    assert {row[-2:] for row in rebuilt} == {(None, None)}
