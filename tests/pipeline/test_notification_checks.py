"""Each check of notifications finds the row that breaks its rule, and no sound row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import dagster as dg
import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tests.support.pipelines import failed_checks
from tests.support.small_project import HEADER, SmallProject
from tests.support.stored_rows import named_rows
from windows_pipeline.checks.notification_rules import notification_checks
from windows_pipeline.checks.run import validate
from windows_pipeline.dagster import build_definitions
from windows_pipeline.jobs import published_days
from windows_pipeline.jobs.days.chain import window_jobs
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import tables_of

SLIDES = {
    "kind": "sliding",
    "time_difference": "10 ms",
    "grace": "0 ms",
    "aggregates": {"s": "sum(v)"},
    "alerts": {"busy": {"when": "record_count >= 2", "severity": "s"}},
}
SESSIONS = {
    "kind": "session",
    "gap": "10 ms",
    "grace": "0 ms",
    "aggregates": {"s": "sum(v)"},
    "alerts": {"busy": {"when": "record_count >= 2", "severity": "s"}},
}
ROWS = {
    "kind": "slide_rows",
    "preceding": "1 rows",
    "grace": "0 ms",
    "aggregates": {"s": "sum(v)"},
    "alerts": {"busy": {"when": "record_count >= 2", "severity": "s"}},
}
SILENCES = {
    "kind": "sliding",
    "time_difference": "10 ms",
    "grace": "0 ms",
    "emit_empty": True,
    "aggregates": {"s": "sum(v)"},
    "alerts": {"quiet": {"when": "record_count = 0", "severity": "1"}},
}
NOTIFY = {"notify": {"people": {"file": "sent.jsonl"}}}
# Sliding: an episode of `a` that worsens on each day and ends on the second, which has one of `b`.
DAYS = (
    f"{HEADER}a,0,1\na,4,1\na,8,5\na,10,9\n",
    f"{HEADER}b,41,1\nb,42,1\nz,120,1\n",
)
# `a` is silent from 1 to 70, and after that.
SILENT_DAYS = (f"{HEADER}a,0,1\nz,60,1\n", f"{HEADER}a,70,1\nz,120,1\n")


class Damage(NamedTuple):
    """A change of one row of notifications.

    Attributes:
        where: SQL: the row.
        do: SQL by column, `delete`, or `copy`.
        fails: The checks that must find the row.
    """

    where: str
    do: Mapping[str, str] | str
    fails: set[str]


def table_of(project: SmallProject) -> Table:
    table = tables_of(project.pipeline, project.settings.warehouse).of("w").notifications
    assert table is not None
    return table


def run(project: SmallProject, windows: Mapping[str, object], days: Sequence[str] = DAYS) -> None:
    project.declare(windows, top=NOTIFY)
    for number, text in enumerate(days, 1):
        project.land(number, text)
    status, said = project.ingest("run")
    assert status == 0, said


@pytest.fixture
def of_slides(project: SmallProject, shared: Path) -> SmallProject:
    """Two days of sliding windows with notifications."""
    return project.copy_of(shared / "notified", lambda made: run(made, SLIDES))


def events(project: SmallProject) -> list[tuple[str, str, int]]:
    """Key, event and day of what happened, in order."""
    rows = named_rows(table_of(project))
    in_order = sorted(rows, key=lambda row: (row["key"], row["until"], row["event"] == "ended"))
    return [(row["key"], row["event"], row["arrival_unit"].day) for row in in_order]


def damaged(rows: DataFrame, how: Damage) -> DataFrame:
    """The notifications with one of them damaged."""
    assert rows.where(how.where).count() == 1, how
    if how.do == "copy":
        return rows.unionByName(rows.where(how.where))
    others = rows.where(~F.coalesce(F.expr(how.where), F.lit(False)))
    if how.do == "delete":
        return others
    assert not isinstance(how.do, str)
    changes = {name: F.expr(sql).cast(rows.schema[name].dataType) for name, sql in how.do.items()}
    return others.unionByName(rows.where(how.where).withColumns(changes))


def failed(project: SmallProject, spark: SparkSession, how: Damage | None = None) -> set[str]:
    """The checks of all notifications that find broken rows, once they are damaged."""
    job = window_jobs(project.source, "w", project.settings)[2]
    days = published_days(job, spark)
    rows = {table.short_name: table.of_arrival_units(spark, days) for table in job.tables}
    if how is not None:
        rows["notifications"] = damaged(rows["notifications"], how)
    (batch,) = (
        batch
        for batch in job.check_batches(spark, days, rows, job.arrived(spark))
        if batch.name == "notifications"
    )
    return {result.check.name for result in validate([batch]) if not result.passed}


OF_A = "key = 'a' AND event = "
DAMAGES = [
    Damage(
        f"{OF_A}'worsened' AND severity > 10", "copy", {"notification_once", "worsened_is_worse"}
    ),
    Damage(f"{OF_A}'opened'", "delete", {"alert_is_opened"}),
    Damage(f"{OF_A}'ended'", {"event": "'opened'"}, {"opened_once_and_first"}),
    Damage(
        f"{OF_A}'opened'", {"until": "until + INTERVAL '1' SECOND"},
        {"opened_once_and_first", "ended_once_and_last"},
    ),
    Damage(f"{OF_A}'opened'", {"severity": "1000.0"}, {"worsened_is_worse"}),
    Damage(f"{OF_A}'worsened' AND severity > 10", {"severity": "NULL"}, {"worsened_is_worse"}),
    Damage(
        f"{OF_A}'ended'", {"until": "timestamp_millis(unix_millis(until) - 6)"},
        {"ended_once_and_last"},
    ),
    Damage(
        f"{OF_A}'ended'", {"arrival_unit": "DATE'2026-11-01'"},
        {"ended_once_and_last", "ended_with_a_window"},
    ),
    Damage(
        f"{OF_A}'ended'", {"until": "timestamp_millis(unix_millis(until) + 1)"},
        {"ended_with_a_window"},
    ),
    Damage(f"{OF_A}'worsened' AND severity > 10", {"event": "'ended'"}, {"ended_once_and_last"}),
    Damage(f"{OF_A}'ended'", {"retracted_by": "0"}, {"retractions_hold"}),
    Damage(f"{OF_A}'ended'", {"event": "'retracted'", "correction": "1"}, {"retractions_hold"}),
    Damage(f"{OF_A}'opened'", {"retracted_by": "1"}, {"alert_is_opened"}),
]  # fmt: skip


def test_each_check_finds_its_damage(of_slides: SmallProject, spark: SparkSession) -> None:
    """Rule E6."""
    project = of_slides
    happened = events(project)
    assert happened[0] == ("a", "opened", 1)
    assert happened[1:4] == [("a", "worsened", 1), ("a", "worsened", 2), ("a", "ended", 2)]
    assert happened[4:] == [("b", "opened", 2), ("b", "ended", 2)]
    assert failed(project, spark) == set()
    assert {how.do for how in DAMAGES if isinstance(how.do, str)} == {"copy", "delete"}
    for how in DAMAGES:
        assert failed(project, spark, how) == how.fails, how
    checks = {check.name for check in notification_checks(project.pipeline.windows["w"].spec)}
    assert set().union(*(how.fails for how in DAMAGES)) == checks


@pytest.mark.parametrize(
    ("windows", "how"),
    [
        (
            SESSIONS,
            Damage(
                f"{OF_A}'ended'",
                {"until": "until + INTERVAL '1' SECOND"},
                {"ended_once_and_last", "ended_with_a_window"},
            ),
        ),
        (ROWS, Damage(f"{OF_A}'opened'", {"event": "'ended'"}, {"ended_once_and_last"})),
    ],
    ids=["sessions", "rows"],
)
def test_an_end_is_that_of_the_kind(
    project: SmallProject, spark: SparkSession, windows: Mapping[str, object], how: Damage
) -> None:
    """Rule E6: a session ends its episode when it opens it; no end of rows is known."""
    run(project, windows)
    assert failed(project, spark) == set()
    assert failed(project, spark, how) == how.fails


def test_a_silence_ends_at_a_record(project: SmallProject, spark: SparkSession) -> None:
    """Rules B8, E6: neither between records nor at the end of an empty window."""
    run(project, SILENCES, SILENT_DAYS)
    assert events(project) == [
        ("a", "opened", 1), ("a", "ended", 2), ("a", "opened", 2), ("z", "opened", 2),
    ]  # fmt: skip
    assert failed(project, spark) == set()
    for until_ms in (65, 81):
        moved = {"until": f"timestamp_millis({until_ms})"}
        how = Damage(f"{OF_A}'ended'", moved, {"ended_with_a_window"})
        assert failed(project, spark, how) == how.fails, until_ms


def test_the_shell_and_dagster_find_damage(
    of_slides: SmallProject, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = of_slides
    status, said = project.call("check", "p")
    assert status == 0, said
    assert "opened_once_and_first: passed" in said
    DeltaTable.forPath(spark, table_of(project).location).update(
        f"{OF_A}'ended'", {"event": F.lit("opened")}
    )
    status, said = project.call("check", "p")
    assert status == 1, said
    assert "p/w/alerts opened_once_and_first: FAILED" in said
    monkeypatch.chdir(project.folder)
    definitions = build_definitions([project.pipeline], project.settings)
    with dg.DagsterInstance.ephemeral() as instance:
        result = definitions.resolve_job_def("p_check").execute_in_process(
            instance=instance, raise_on_error=False
        )
    assert failed_checks(result) == {"opened_once_and_first"}
