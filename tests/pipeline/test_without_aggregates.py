"""A pipeline needs no aggregates, and no value column: each result has its record_count (E1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.small_project import SmallProject
from tests.support.stored_rows import named_rows
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import tables_of

GRACE = {"grace": "0 ms"}
BUSY = {"busy": {"when": "record_count >= 2", "severity": "record_count"}}
TUMBLING = {"kind": "tumbling", "size": "10 ms", **GRACE, "alerts": BUSY}
OTHERS: dict[str, dict[str, object]] = {
    "hopping": {"kind": "hopping", "size": "20 ms", "advance": "10 ms", **GRACE},
    "sliding": {"kind": "sliding", "time_difference": "10 ms", "emit_empty": True, **GRACE},
    "visit": {"kind": "session", "gap": "10 ms", **GRACE},
    "last_two": {"kind": "slide_rows", "preceding": "1 row", **GRACE},
    "pairs": {"kind": "tumble_rows", "size": 2, **GRACE},
    "visit_so_far": {"kind": "session_rows", "gap": "10 ms", **GRACE},
    "twos": {"kind": "count", "size": 2, **GRACE},
}
# Of the records at 0, 5, 12 and 30 ms, each final window's end and number of records.
FINAL = {
    "w": [(10, 2), (20, 1)],  # C1
    "hopping": [(10, 2), (20, 3), (30, 1)],  # C1
    "sliding": [(0, 1), (5, 2), (11, 1), (12, 2), (16, 1), (23, 0)],  # B3, B8
    "visit": [(12, 3)],  # D1, D2
    "last_two": [(0, 1), (5, 2), (12, 2)],  # F2
    "pairs": [(0, 1), (5, 2), (12, 1)],  # F2
    "visit_so_far": [(0, 1), (5, 2), (12, 3)],  # F2
    "twos": [(5, 2)],  # F1
}
# E2: each record fires its window, and stream time does once it reaches the end.
FIRINGS = [
    (10, 0, "EARLY", 1),
    (10, 1, "EARLY", 2),
    (10, 2, "ON_TIME", 2),
    (20, 0, "EARLY", 1),
    (20, 1, "ON_TIME", 1),
    (40, 0, "EARLY", 1),
]


def rows_of(table: Table, *columns: str) -> list[tuple[Any, ...]]:
    """Columns of a table's rows, sorted; times in milliseconds."""

    def plain(value: object) -> object:
        if isinstance(value, datetime):
            return round(value.replace(tzinfo=value.tzinfo or UTC).timestamp() * 1_000)
        return value

    return sorted(tuple(plain(row[name]) for name in columns) for row in named_rows(table))


@pytest.mark.parametrize(
    ("way", "names"),
    [
        ("run", ("w", "sliding", "visit", "last_two", "twos")),
        ("stream", ("w", "sliding", "pairs")),
        pytest.param("run", tuple(FINAL), marks=pytest.mark.long),
    ],
    ids=["run", "stream", "run-all"],
)
def test_every_kind_of_window_counts_its_records(
    project: SmallProject, way: str, names: Sequence[str]
) -> None:
    """Rules B to F, E2, E5, H1: windows of each kernel by days, silences and rows as a stream."""
    columns = {"k": "string", "t": "bigint"}
    firing = {**TUMBLING, "trigger": {"early_every": "update"}}
    project.declare(firing, columns, {name: OTHERS[name] for name in OTHERS if name in names})
    project.land(1, "k,t\na,0\na,5\na,12\n")
    project.land(2, "k,t\na,30\n")
    status, said = project.ingest(way)
    assert status == 0, said
    for name in names:
        final = replace(project, name=name).windows.final_windows
        assert rows_of(final, "window_end", "record_count") == FINAL[name], name
    alerts = rows_of(project.windows.alerts, "window_end", "rule", "severity", "record_count")
    assert alerts == [(10, "busy", 2.0, 2)]
    tables = tables_of(project.pipeline, project.settings.warehouse).of("w")
    fired = ("window_end", "firing_id", "reason", "record_count")
    assert rows_of(tables.firings, *fired) == FIRINGS
    warned = rows_of(tables.early_warnings, "window_end", "state", "record_count")
    assert warned == [(10, "confirmed", 2), (10, "open", 2)]
    if way == "run":
        status, said = project.call("check", "p")
        assert (status, "FAILED" in said) == (0, False), said


def test_a_correction_lists_the_counts(project: SmallProject) -> None:
    """Rule E1."""
    project.declare(TUMBLING, {"k": "string", "t": "bigint"})
    project.land(1, "k,t\na,0\na,12\n")
    assert project.call("run", "p")[0] == 0
    project.land(1, "k,t\na,0\na,5\na,12\n")
    assert project.call("run", "p", "--from", "2026-11-01")[0] == 1
    cause = ("--from", "2026-11-01", "--cause", "mended")
    status, said = project.call("correct", "p", "--windows", "w", *cause)
    assert (status, "1 changed, 0 retracted, 0 added" in said) == (0, True), said
    (changed,) = named_rows(project.windows.corrections)
    assert (changed["old"]["record_count"], changed["new"]["record_count"]) == (1, 2)
    assert rows_of(project.windows.alerts, "window_end", "record_count") == [(10, 2)]
