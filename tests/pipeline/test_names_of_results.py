"""Columns and aggregates may have any name that is not refused: none is lost or mixed up."""

from __future__ import annotations

import pytest

from tests.support.small_project import SmallProject
from tests.support.stored_rows import named_rows
from windows_pipeline.storage.tables import all_tables

# What results of other names, or a plan in between, might call a column of its own.
NAMES = (
    *("all", "back", "beyond_grace", "broken", "change", "closed_rows", "counted", "earlier"),
    *("ends_empty", "entry_ms", "event", "exit_ms", "final_breaks", "final_is_there", "first"),
    *("found", "frame", "hash", "holds", "in_order", "is_as_final", "is_firing", "is_gone"),
    *("is_outside_windows", "is_window", "last", "last_since", "late", "merged_as"),
    *("new", "newest", "number", "old", "on_time", "open_rows", "partly_late", "place", "position"),
    *("position_after", "position_before", "previous_end", "previous_end_ms", "previous_episode"),
    *("previous_id", "previous_reason", "previous_since", "raised_in", "rank", "recount"),
    *("recount_end_ms", "recount_first_ms", "record", "rejected", "result", "resumed_as"),
    *("resumed_ms", "rows", "rows_in_final", "since", "so_far", "stored", "times", "times_final"),
    *("undecided", "arrival_unit_had", "until", "value", "worst", "written_ms"),
)
EMPTY = ("/late_records", "/corrections", "/failed_windows", "/rejected_records")
KINDS: dict[str, dict[str, object]] = {
    "slid": {"kind": "sliding", "time_difference": "5 ms", "emit_empty": True},
    "fired": {
        "kind": "hopping",
        "size": "10 ms",
        "advance": "5 ms",
        "trigger": {"early_every": "3 ms"},
    },
    "sessions": {"kind": "session", "gap": "4 ms"},
    "counted": {"kind": "count", "size": 2, "advance": 1},
    "rows": {"kind": "slide_rows", "preceding": "1 rows", "following": "0 rows"},
}
LINES = {
    1: [("a", 0), ("b", 2), ("a", 3), ("a", 12), ("b", 30)],
    2: [("a", 26), ("b", 45), ("a", 61)],
    3: [("c", 150)],
}


@pytest.mark.long
@pytest.mark.parametrize("way", ["run", "stream"])
def test_names_between_are_no_names_of_users(project: SmallProject, way: str) -> None:
    """Each name is a source column, its sum, and read by a rule; no value is lost or mixed up."""
    of_name = {name: float(number) for number, name in enumerate(NAMES, start=1)}
    declare(project, dict.fromkeys(NAMES, "double"))
    header = ",".join(["k", "t", *of_name])
    for day, records in LINES.items():
        lines = [",".join([key, str(time), *map(str, of_name.values())]) for key, time in records]
        project.land(day, "\n".join([header, *lines, ""]))
    status, printed = project.ingest(way)
    assert status == 0, printed
    for table in all_tables(project.pipeline, project.settings.warehouse):
        rows = named_rows(table)
        assert rows or table.name.endswith(EMPTY), table.name
        for row in rows:
            if {"record_count", *NAMES} <= row.keys():
                number = row["record_count"]
                expected = {
                    name: number * value if number else None for name, value in of_name.items()
                }
                assert {name: row[name] for name in NAMES} == expected, table.name


def declare(project: SmallProject, columns: dict[str, str]) -> None:
    windows = {
        name: {
            **fields,
            "grace": "2 ms",
            "aggregates": {column: f"sum({column})" for column in columns},
            "alerts": {
                "all": {
                    "when": " AND ".join(f"{column} > 0" for column in columns),
                    "severity": "1",
                },
                "each": {"when": "record_count > 0", "severity": NAMES[0]},
            },
        }
        for name, fields in KINDS.items()
    }
    project.name = "slid"
    project.declare(
        windows.pop("slid"),
        columns={"k": "string", "t": "bigint"} | columns,
        others=windows,
        top={"notify": {"everybody": {"file": "sent"}}},
    )
