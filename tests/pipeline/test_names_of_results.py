"""Columns and aggregates may have any name that is not refused: none is lost or mixed up."""

from __future__ import annotations

import pytest

from tests.support.small_project import SmallProject
from tests.support.stored_rows import named_rows

# What results of other names, or a plan in between, might call a column of its own.
NAMES = (
    *("accepted", "aggregate", "all", "arrival_unit_had", "arrival_unit_rejected", "arrived_at"),
    *("back", "batch_rejected", "began_ms", "begun_on", "beyond_grace", "blocked_by", "bounds"),
    *("broken", "cell", "change", "check", "close_ms", "closed_rows", "closes_ms", "counted"),
    *("decided", "departed_on_bound", "distinct_offsets", "earlier", "end_ms", "ends_empty"),
    *("entry_ms", "episode_end", "event", "exit_ms", "expected", "expected_day", "expected_key"),
    *("file_path", "filtered", "final_breaks", "final_is_there", "first", "first_0"),
    *("first_0_power", "first_day", "first_end_ms", "first_offset", "first_undecided", "found"),
    *("found_day", "frame", "group_rows", "hash", "high", "holds", "in_order", "ingested"),
    *("is_again", "is_as_final", "is_broken", "is_firing", "is_gone", "is_open"),
    *("is_outside_windows", "is_window", "judged", "landed", "largest", "last", "last_day"),
    *("last_instant_ms", "last_offset", "last_since", "late", "length", "logged", "low"),
    *("max_event_time", "max_ms", "member", "merged_as", "message", "most_frequent_reason", "ms"),
    *("multiples", "name", "near_partly_late", "new", "newer", "newest", "notification_id"),
    *("nullable_time_ms", "number", "old", "older", "on_time", "open", "open_rows", "parsed"),
    *("part", "partition", "partly_late", "path", "pending", "pipeline", "place", "position"),
    *("position_after", "position_before", "power", "previous_end", "previous_end_ms"),
    *("previous_episode", "previous_id", "previous_reason", "previous_since", "quarantined", "r"),
    *("raised_in", "rank", "raw", "reached", "record", "records", "recount", "recount_end_ms"),
    *("recount_first_ms", "recount_last_ms", "recount_start_ms", "rejected", "result", "result_0"),
    *("resumed_as", "resumed_ms", "row_count", "row_number", "row_time_ms", "rows"),
    *("rows_in_before", "rows_in_final", "rows_in_published", "rows_in_retracted"),
    *("running_max_ms", "same_end", "same_records", "scale", "silence_ms", "since", "slowest_ms"),
    *("so_far", "source", "start_ms", "stored", "stretch", "time_ms", "times", "times_final"),
    *("too_late", "total", "undecided", "unit", "until", "value", "value_0_0", "value_power"),
    *("version", "windows", "worst", "written_ms", "wrong_running_max"),
)
MOST_IN_A_RULE = 80
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


CORRECTED = [("a", 0), ("a", 3), ("a", 12), ("b", 31)]
"""The records of day 1 without one of them, and with another one in its place."""
OF_NAME = {name: float(number) for number, name in enumerate(NAMES, start=1)}


@pytest.mark.long
@pytest.mark.parametrize("way", ["run", "stream"])
def test_names_between_are_no_names_of_users(project: SmallProject, way: str) -> None:
    """Each name is a source column, its sum, and read by a rule; no value is lost or mixed up."""
    declare(project, dict.fromkeys(NAMES, "double"))
    for day, records in LINES.items():
        project.land(day, text(records))
    status, printed = project.ingest(way)
    assert status == 0, printed
    require_values(project, EMPTY)
    if way == "stream":
        return
    project.land(1, text(CORRECTED))
    # A check refuses to change what was published.
    status, printed = project.call("run", "p", "--from", "2026-11-01", "--to", "2026-11-01")
    assert status == 1, printed
    status, printed = project.call("correct", "p", "--from", "2026-11-01", "--cause", "mended")
    assert status == 0, printed
    require_values(project, tuple(name for name in EMPTY if name != "/corrections"))
    alerts = named_rows(project.windows.alerts, ["retracted_by", "correction"])
    assert {1, None} == {row["retracted_by"] for row in alerts}
    assert {1, None} == {row["correction"] for row in alerts}


def text(records: list[tuple[str, int]]) -> str:
    header = ",".join(["k", "t", *OF_NAME])
    values = list(map(str, OF_NAME.values()))
    return "\n".join([header, *(",".join([key, str(time), *values]) for key, time in records), ""])


def require_values(project: SmallProject, empty: tuple[str, ...]) -> None:
    """Requires the sum of each name in each row of each table, and rows in all other tables."""
    for table in project.source.written:
        rows = named_rows(table)
        assert rows or table.name.endswith(empty), table.name
        for row in rows:
            if {"record_count", *NAMES} <= row.keys():
                number = row["record_count"]
                expected = {
                    name: number * value if number else None for name, value in OF_NAME.items()
                }
                assert {name: row[name] for name in NAMES} == expected, table.name


def declare(project: SmallProject, columns: dict[str, str]) -> None:
    names = list(columns)
    starts = range(0, len(names), MOST_IN_A_RULE)
    parts = [names[start : start + MOST_IN_A_RULE] for start in starts]
    windows = {
        name: {
            **fields,
            "grace": "2 ms",
            "aggregates": {column: f"sum({column})" for column in columns},
            "alerts": {
                **{
                    f"all_{part}": {
                        "when": " AND ".join(f"{column} > 0" for column in some),
                        "severity": "1",
                    }
                    for part, some in enumerate(parts)
                },
                "each": {"when": "record_count > 0", "severity": NAMES[0]},
            },
        }
        for name, fields in KINDS.items()
    }
    project.declare(
        windows.pop("slid"),
        columns={"k": "string", "t": "bigint"} | columns,
        others=windows,
        top={"notify": {"everybody": {"file": "sent"}}},
    )
