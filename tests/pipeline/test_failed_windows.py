"""An aggregate that can't be computed fails in its window alone, and says so (rule G3)."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from tests.support.small_project import SmallProject
from tests.support.stored_rows import named_rows, stored_rows
from tests.support.streams import run_until_killed
from windows_pipeline.config import definition, definition_digest
from windows_pipeline.jobs.days.chain import rebuild
from windows_pipeline.storage.table import Table, TableRebuiltError
from windows_pipeline.storage.tables import tables_of
from windows_pipeline.streaming import run_stream

MOST = 9_223_372_036_854_775_807
HEADER = "k,t,b\n"
COLUMNS = {"k": "string", "t": "bigint", "b": "bigint"}
AGGREGATES = {"s": "sum(b)", "c": "count(b)"}
ALERTS = {
    "many": {"when": "c >= 2", "severity": "c"},
    "none": {"when": "s is null", "severity": 1},
    "guessed": {"when": "coalesce(s, 100) > 50", "severity": 2},
    "rated": {"when": "c >= 1", "severity": "s"},
}
TUMBLING: dict[str, object] = {
    "kind": "tumbling",
    "size": "10 ms",
    "grace": "0 ms",
    "aggregates": AGGREGATES,
    "alerts": ALERTS,
}
OTHERS: dict[str, dict[str, object]] = {
    "sliding": {"kind": "sliding", "time_difference": "5 ms"},
    "sessions": {"kind": "session", "gap": "5 ms"},
    "rows": {"kind": "slide_rows", "preceding": "1 row"},
}
FIRES = {"trigger": {"early_every": "1 ms"}}
ADDED_UP = ("w", "rows")
"""With the firings of `w`, one of each way in which results add up."""
MESSAGE = "sum(b) overflows bigint: make the column a decimal or a double"
OVERFLOWING = f"{HEADER}a,0,{MOST}\na,1,1\nb,2,7\nb,12,3\n"
LAST = f"{HEADER}z,1000,5\n"


def ms(instant: datetime) -> int:
    return round(instant.timestamp() * 1000)


def alerts_of(project: SmallProject) -> list[tuple[str, str]]:
    rows = named_rows(project.windows.alerts)
    return sorted((row["key"], row["rule"]) for row in rows if row["retracted_by"] is None)


def failures_of(project: SmallProject) -> list[tuple[str, int, int, str, str]]:
    return sorted(
        (
            row["key"],
            ms(row["window_start"]),
            ms(row["window_end"]),
            row["aggregate"],
            row["message"],
        )
        for row in named_rows(project.windows.failed_windows)
    )


def finals_of(project: SmallProject) -> list[tuple[Any, ...]]:
    rows = named_rows(project.windows.final_windows)
    return sorted(
        (
            row["key"],
            ms(row["window_start"]),
            row["record_count"],
            row["c"],
            row["s"],
            row["failed"],
        )
        for row in rows
    )


def compute(project: SmallProject) -> None:
    project.declare(TUMBLING, COLUMNS)
    project.land(1, OVERFLOWING)
    project.land(2, LAST)
    assert project.ingest("run")[0] == 1


@pytest.fixture
def computed(project: SmallProject, shared: Path) -> SmallProject:
    """A project whose first day has a window that failed, and whose second day closes it."""
    return project.copy_of(shared / "failed_window", compute)


def with_others(
    project: SmallProject, names: Collection[str] = tuple(OTHERS), **source: object
) -> None:
    common = {"grace": "0 ms", "aggregates": AGGREGATES, "alerts": ALERTS}
    others = {name: {**common, **OTHERS[name]} for name in OTHERS if name in names}
    project.declare({**TUMBLING, **FIRES}, COLUMNS, others, None, **source)


def test_one_window_fails_and_all_else_stands_by_days_and_in_a_stream(
    project: SmallProject, tmp_path: Path
) -> None:
    """Rules A5, E5, G3, H1: in each way that results add up; `check` finds nothing else.

    tests/spark/test_dataframe_on_error.py has every kind of windows.
    """
    streamed = SmallProject(tmp_path / "q", project.base, project.capfd, project.monkeypatch)
    with_others(project, ADDED_UP)
    with_others(streamed, ADDED_UP, max_per_batch=1)
    project.land(1, OVERFLOWING)
    project.land(2, LAST)
    # In two micro-batches, whose cut goes through the window.
    header, first, *lines = (OVERFLOWING + LAST.removeprefix(HEADER)).splitlines(keepends=True)
    for turn, text in enumerate((first, "".join(lines))):
        streamed.land(1, header + text, f"{turn}.csv", turn)
    for ingested, way in ((project, "run"), (streamed, "stream")):
        status, said = ingested.ingest(way)
        assert status == 1, said
        assert "p w: closed windows with an aggregate that can't be computed: 1;" in said, said
        assert "overflows" not in said
    assert finals_of(project) == [
        ("a", 0, 2, 2, None, ["s"]),
        ("b", 0, 1, 1, 7, []),
        ("b", 10, 1, 1, 3, []),
    ]
    assert failures_of(project) == [("a", 0, 10, "s", MESSAGE)]
    assert alerts_of(project) == [("a", "many"), ("b", "rated"), ("b", "rated")]
    by_days = project.results_of(ADDED_UP)
    assert by_days == streamed.results_of(ADDED_UP)
    for name in ADDED_UP:
        assert [row for row in by_days[f"{name}/failed_windows"] if row[0] == "a"], name
    assert any(row for row in by_days["w/firings"] if ["s"] in row)
    status, said = project.call("check", "p")
    assert status == 1
    checked = said.split("FAILED")[:-1]
    assert len(checked) == len(ADDED_UP), said
    assert all(text.rstrip().endswith("aggregates_computed:") for text in checked), said


def test_a_day_may_be_blocked_until_its_file_is_mended(project: SmallProject) -> None:
    """Rule G3: `on_failed: block` publishes no window of the day."""
    project.declare({**TUMBLING, "on_failed": "block"}, COLUMNS)
    project.land(1, OVERFLOWING)
    project.land(2, LAST)
    status, said = project.ingest("run")
    assert (status, "p/w/keyed_windows: NOT published" in said) == (1, True), said
    assert "{a, 1970-01-01 00:00:00, 1970-01-01 00:00:00.01, [s], [guessed, none, rated]}" in said
    assert stored_rows(project.windows.keyed_windows) == []
    project.land(1, OVERFLOWING.replace(str(MOST), "1"))
    status, said = project.call("run", "p", "--from", "2026-11-01", "--to", "2026-11-02")
    assert status == 0, said
    assert finals_of(project)[0] == ("a", 0, 2, 2, 2, [])


def mended_file(project: SmallProject) -> None:
    project.land(1, OVERFLOWING.replace(str(MOST), "1"))
    status, said = project.call("run", "p", "--from", "2026-11-01", "--to", "2026-11-01")
    assert (status, "windows-pipeline correct p --from 2026-11-01" in said) == (1, True), said
    asked = ("correct", "p", "--windows", "w", "--from", "2026-11-01", "--cause", "mended")
    status, said = project.call(*asked)
    assert status == 0, said


def refused(project: SmallProject) -> None:
    status, said = project.call("run", "p", "--from", "2026-11-01", "--to", "2026-11-02")
    assert (status, "windows-pipeline rebuild p" in said) == (2, True), said


def changed_type(project: SmallProject) -> None:
    project.declare(TUMBLING, {**COLUMNS, "b": "decimal(20,0)"})
    refused(project)
    status, said = project.call("rebuild", "p")
    assert status == 0, said


@pytest.mark.parametrize("way_out", [mended_file, changed_type])
def test_every_way_out_of_a_failed_window_ends(
    computed: SmallProject, way_out: Callable[[SmallProject], None]
) -> None:
    """Rule G3: afterwards nothing waits, and no aggregate is failed.

    The next test has the third way out, a changed definition.
    """
    way_out(computed)
    assert failures_of(computed) == []
    assert {row["record_count"] for row in named_rows(computed.windows.final_windows)} == {1, 2}
    status, said = computed.call("status", "p")
    assert status == 0, said


@pytest.mark.parametrize(
    ("table", "names"),
    [
        ("raw_events", ("w",)),
        ("keyed_windows", ("w", "same")),
        pytest.param("raw_events", ("w", "same"), marks=pytest.mark.long),
    ],
)
def test_a_changed_definition_is_rebuilt_while_a_micro_batch_is_unfinished(
    project: SmallProject, spark: SparkSession, table: str, names: Sequence[str]
) -> None:
    """Rules E1, G3, H1: stopped before its log rows or after, no record counts twice or never.

    No window is failed whose aggregate is gone. Another definition, which did not change, gets the
    micro-batch from the stream, though the log has it already.
    """
    aggregates: dict[str, object] = {"aggregates": {"c": "count(b)"}, "alerts": {}}
    others = {name: {**TUMBLING, **aggregates} for name in names if name == "same"}
    project.declare(TUMBLING, COLUMNS, others)
    project.land(1, f"{HEADER}f,-20,{MOST}\nf,-19,1\na,0,{MOST}\nb,2,7\n", "a.csv")
    assert project.ingest("stream")[0] == 1
    assert failures_of(project) == [("f", -20, -10, "s", MESSAGE)]
    project.land(1, f"{HEADER}a,1,1\nb,12,3\nz,1000,5\nz,x,5\n", "b.csv")
    when = "after" if table == "raw_events" else "before"
    run_until_killed(spark, project.source, project.settings, table, when)
    # The stream goes on with the definition as it was, so nothing else may come first.
    status, said = project.call("rebuild", "p", "--from", "keyed_windows")
    assert (status, "resume with the pipeline's file as it was" in said) == (2, True), said

    project.declare({**TUMBLING, **aggregates}, COLUMNS, others)
    status, said = project.call("stream", "p")
    assert (status, "windows-pipeline rebuild p" in said) == (2, True), said
    status, said = project.call("rebuild", "p")
    assert status == 0, said
    status, said = project.call("stream", "p")
    assert status == 0, said
    assert failures_of(project) == []
    for project.name in names:
        found = named_rows(project.windows.final_windows)
        counted = sorted((row["key"], ms(row["window_start"]), row["c"]) for row in found)
        assert counted == [("a", 0, 2), ("b", 0, 1), ("b", 10, 1), ("f", -20, 2)], project.name


def test_a_stream_that_runs_on_adds_nothing_to_tables_rebuilt_meanwhile(
    project: SmallProject, spark: SparkSession
) -> None:
    """Rules E1, H1: its micro-batch fails, and the stream of the new definition ends it."""
    project.declare(TUMBLING, COLUMNS)
    project.land(1, f"{HEADER}a,0,{MOST}\nb,2,7\n", "a.csv")
    assert project.ingest("stream")[0] == 0
    project.land(1, f"{HEADER}a,1,1\nb,12,3\nz,1000,5\n", "b.csv")
    old = project.pipeline

    def append(to: Table, rows: DataFrame | pa.Table, batch: int, row_count: int) -> None:
        if to.name == "p/raw_events":
            to.append(rows, batch, row_count)
            project.declare({**TUMBLING, "aggregates": {"c": "count(b)"}, "alerts": {}}, COLUMNS)
            again = rebuild(spark, project.source, project.settings)
            assert all(result.published for _, result in again)
        else:
            to.append(rows, batch, row_count)

    with pytest.raises(TableRebuiltError, match=r"p/w/.* a rebuild has given .* since: .*sum\(b\)"):
        run_stream(
            spark, tables_of(old, project.settings.warehouse), project.settings, append=append
        )
    status, said = project.call("stream", "p")
    assert status == 0, said
    found = named_rows(project.windows.final_windows)
    counted = sorted((row["key"], ms(row["window_start"]), row["c"]) for row in found)
    assert counted == [("a", 0, 2), ("b", 0, 1), ("b", 10, 1)]


def test_tables_of_another_release_are_refused_and_rebuilt(
    computed: SmallProject, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule G3: tables without the column `failed`, and of another format; a way back works, too.

    A release with a newer form of tables rebuilds them, and one before refuses the new ones.
    """
    before = finals_of(computed)
    days = ("--from", "2026-11-01", "--to", "2026-11-02")
    for table in (computed.windows.keyed_windows, computed.windows.final_windows):
        rows = spark.read.format("delta").load(table.location).drop("failed")
        write = rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
        write.partitionBy("arrival_unit").save(table.location)
        old = {name: text for name, text in table.definition.items() if name != "columns.failed"}
        table.set_properties(spark, {"windows_pipeline.digest": definition_digest(old)})
    status, said = computed.call("run", "p", *days)
    assert (status, "windows-pipeline rebuild p" in said) == (2, True), said
    monkeypatch.setattr(definition, "FORMAT", "2")
    status, said = computed.call("run", "p", *days)
    assert (status, "format: was '1', is '2'" in said) == (2, True), said
    assert "windows-pipeline rebuild p" in said
    _, said = computed.call("rebuild", "p")
    assert "p/raw_events: published" in said
    assert failures_of(computed) == [("a", 0, 10, "s", MESSAGE)]
    assert finals_of(computed) == before
    monkeypatch.undo()
    status, said = computed.call("status", "p")
    assert (status, "windows-pipeline rebuild p" in said) == (1, True), said


VALUES = st.sampled_from([MOST, MOST - 1, -MOST, 1, 2, None])
RECORDS = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 30), VALUES), min_size=4, max_size=12
)


@pytest.mark.long
@settings(
    max_examples=4,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(records=RECORDS, cuts=st.lists(st.integers(1, 11), max_size=3, unique=True))
def test_the_same_windows_fail_by_days_in_any_cut_and_in_a_backfill(
    project: SmallProject,
    tmp_path_factory: pytest.TempPathFactory,
    records: list[tuple[str, int, int | None]],
    cuts: list[int],
) -> None:
    """Rules G3, H1: windows, row windows and firings of any records, in any micro-batches."""
    lines = [f"{key},{time},{'' if value is None else value}\n" for key, time, value in records]
    bounds = [0, *sorted(cut for cut in cuts if cut < len(lines)), len(lines)]
    pieces = [lines[start:end] for start, end in itertools.pairwise(bounds)]
    found = []
    for way in ("days", "backfill", "stream"):
        folder = tmp_path_factory.mktemp(way)
        ran = SmallProject(folder, project.base, project.capfd, project.monkeypatch)
        with_others(ran)
        for number, piece in enumerate(pieces):
            ran.land(1, HEADER + "".join(piece), f"{number}.csv")
            if way == "stream":
                assert ran.ingest("stream")[0] in (0, 1)
        if way == "backfill":  # the later day first
            ran.land(2, LAST)
            shutil.move(folder / "data" / "2026-11-01", folder / "later")
            assert ran.ingest("run")[0] == 1
            shutil.move(folder / "later", folder / "data" / "2026-11-01")
        ran.land(2, LAST)
        assert ran.ingest("stream" if way == "stream" else "run")[0] in (0, 1)
        found.append(ran.results_of(("w", *OTHERS)))
    assert found[0] == found[1]
    assert found[0] == found[2]
