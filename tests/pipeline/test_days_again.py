"""Days that come again, late or by mistake, and the days that depend on them (A2, E1)."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.small_project import HEADER, TUMBLING, SmallProject
from tests.support.stored_rows import stored_rows

LONG = {**TUMBLING, "grace": "1000 ms"}
FAR = f"{HEADER}z,1000000,0\n"


def test_days_that_depend_on_a_changed_day_wait_for_a_correction(project: SmallProject) -> None:
    """A later day closes the window; days whose look-back ends before it do not depend on it."""
    project.declare(LONG)
    project.land(1, f"{HEADER}a,0,1\na,1,2\n")
    project.land(2, f"{HEADER}a,5,4\n")
    project.land(3, FAR)
    project.land(4, f"{HEADER}z,2000000,0\n")
    project.land(5, f"{HEADER}z,3000000,0\n")
    assert project.call("run", "p")[0] == 0
    project.land(1, f"{HEADER}a,0,100\na,1,2\n")
    status, said = project.call("run", "p")
    assert (status, "2026-11-01/a.csv has 20 bytes, and had 18" in said) == (1, True), said
    assert "windows-pipeline run p --from 2026-11-01 --to 2026-11-01" in said
    status, said = project.call("run", "p", "--from", "2026-11-01")
    assert (
        status,
        "2026-11-02 to 2026-11-03: computed again, too" in said,
    ) == (1, True), said
    assert "final_never_changed: FAILED" in said
    command = "windows-pipeline correct p --from 2026-11-01 --cause TEXT"
    waits = "2026-11-01 to 2026-11-03: ingested and not computed to the end, as final windows would"
    assert (command in said, waits in said) == (True, True), said
    # No command sends back to one that refuses.
    assert "resume with" not in said
    cause = ("--from", "2026-11-01", "--cause", "mended")
    status, said = project.call("correct", "p", "--windows", "w", *cause)
    assert (status, "1 changed, 0 retracted, 0 added" in said) == (0, True), said
    status, said = project.call("run", "p")
    assert (status, "nothing to do" in said) == (0, True), said
    assert [row for row in project.sums("key", "s", "closed") if row[2]][:1] == [("a", 106.0, True)]
    # Without a new day, too, a run says that the tables follow another definition.
    project.declare({**LONG, "grace": "2000 ms"})
    status, said = project.call("run", "p")
    assert (status, "rebuild the tables" in said) == (2, True), said
    status, said = project.call("rebuild", "p")
    assert (status, "The rows of 1 earlier correction, and alerts" in said) == (0, True), said
    assert stored_rows(project.windows.corrections) == []


def compute(project: SmallProject) -> None:
    project.declare(LONG)
    project.land(1, f"{HEADER}a,0,1\n")
    project.land(2, f"{HEADER}a,5,4\n")
    assert project.call("run", "p")[0] == 0


@pytest.fixture
def computed(project: SmallProject, shared: Path) -> SmallProject:
    """A project of two days, whose window is open."""
    return project.copy_of(shared / "open_window", compute)


def test_open_windows_of_later_days_are_computed_again(computed: SmallProject) -> None:
    computed.land(1, f"{HEADER}a,0,100\n")
    status, said = computed.call("run", "p", "--from", "2026-11-01")
    assert (status, "1 day, 2026-11-02: computed again, too" in said) == (
        0,
        True,
    ), said
    assert computed.sums("s", "closed") == [(100.0, False), (104.0, False)]
    status, said = computed.call("run", "p", "--from", "2026-11-01")  # the same again
    assert (status, "hang on" in said) == (0, False), said


def test_check_sees_values_that_do_not_follow_from_the_records(
    computed: SmallProject, spark: SparkSession
) -> None:
    """Simulates raw days that were ingested again without the later steps."""
    table = computed.windows.keyed_windows
    rows = table.read(spark).toArrow()
    at = rows.column_names.index("s")
    changed = rows.set_column(at, "s", pa.array([7.0] * len(rows)))
    table.publish(spark.createDataFrame(changed), rows["arrival_unit"].to_pylist(), len(rows))
    status, said = computed.call("check", "p")
    assert (status, "values_are_those_of_records: FAILED" in said) == (1, True), said


def test_a_new_definition_gets_all_ingested_days(project: SmallProject) -> None:
    project.declare()
    for day in (1, 2):
        project.land(day, f"{HEADER}a,{100 * day},1\n")
    assert project.call("run", "p")[0] == 0
    project.declare(others={"more": TUMBLING})
    status, said = project.call("check", "p")
    assert (status, "p more: 2 days, 2026-11-01 to 2026-11-02" in said) == (1, True), said
    project.land(3, f"{HEADER}a,300,1\n")
    assert project.call("run", "p")[0] == 0
    rows = project.sums("s", "c", "window_end", "arrival_unit")
    project.name = "more"
    assert project.sums("s", "c", "window_end", "arrival_unit") == rows
    assert len(rows) == 5


def test_a_stream_computes_no_result_if_raw_rows_are_missing(project: SmallProject) -> None:
    """Rule A2: the log remains, but the rows of raw_events are gone."""
    project.declare(LONG)
    project.land(1, f"{HEADER}a,0,1\n")
    assert project.call("stream", "p")[0] == 0
    project.land(2, f"{HEADER}a,5,4\n", "b.csv")
    before = project.sums()
    shutil.rmtree(project.source.raw_events.location)
    status, said = project.call("stream", "p")
    named = "p/raw_events must hold the 1 row of 2026-11-01 that arrival_log names, and holds 0"
    assert (status, named in said) == (2, True), said
    assert "windows-pipeline rebuild p --from raw_events" in said
    assert project.sums() == before


def test_tables_of_a_run_and_a_stream_can_be_rebuilt(
    project: SmallProject, spark: SparkSession
) -> None:
    project.declare()
    project.land(1, f"{HEADER}a,1,1\n")
    assert project.call("stream", "p")[0] == 0
    project.land(2, f"{HEADER}a,2,1\n")
    status, said = project.call("run", "p")
    assert (status, "windows-pipeline stream p" in said) == (2, True), said
    assert project.call("status", "p")[0] == 0
    # A run and a stream wrote at once: both are refused, and both name the way out.
    log = project.source.arrival_log
    whole = log.read(spark).selectExpr(
        "* EXCEPT (arrival_unit, batch, stream)", "DATE'2026-11-02' AS arrival_unit"
    )
    named = whole.selectExpr("*", "CAST(NULL AS bigint) AS batch", "CAST(NULL AS string) AS stream")
    days = [row.arrival_unit for row in named.collect()]
    log.publish(named, days)
    raw = project.source.raw_events
    row = raw.read(spark).selectExpr(
        "* EXCEPT (arrival_unit, batch)", "DATE'2026-11-02' AS arrival_unit"
    )
    raw.publish(row.selectExpr("*", "CAST(NULL AS bigint) AS batch"), days)
    rebuild = "windows-pipeline rebuild p --from raw_events"
    for way in ("run", "stream"):
        status, said = project.ingest(way)
        assert (status, rebuild in said) == (2, True), said
    assert project.call("rebuild", "p", "--from", "raw_events")[0] == 0
    assert project.call("check", "p")[0] == 0


def test_a_day_that_came_by_mistake_is_taken_away(project: SmallProject) -> None:
    project.declare()
    project.land(1, f"{HEADER}a,1,1\n")
    project.land(5, f"{HEADER}a,5,1\n")
    status, said = project.call("run", "p")
    assert (status, "2026-11-05: blocked by a missing day" in said) == (1, True), said
    status, said = project.call("forget", "p", "2026-11-05")
    assert (status, "its folder is still there" in said) == (0, True), said
    shutil.rmtree(project.folder / "data" / "2026-11-05")
    status, said = project.call("run", "p")
    assert (status, "blocked by" in said) == (0, False), said
    assert len(project.raw("key")) == 1
    project.land(2, FAR)
    assert project.call("run", "p")[0] == 0
    for day, why in (("2026-11-01", "later days follow"), ("2026-11-02", "closed windows of w")):
        status, said = project.call("forget", "p", day)
        assert (status, why in said) == (2, True), said
    status, said = project.call("run", "p", "--from", "9999-12-31")
    assert (status, "at most tomorrow" in said) == (2, True), said
