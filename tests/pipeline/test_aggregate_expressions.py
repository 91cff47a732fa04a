"""Aggregates with expressions, conditions and lists, in tables and rules (rules E5, G1, G3)."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.support.small_project import SmallProject
from tests.support.stored_rows import named_rows

MOST = 9_223_372_036_854_775_807
COLUMNS = {"k": "string", "t": "bigint", "price": "decimal(6,2)", "n": "bigint", "s": "string"}
AGGREGATES = {
    "bad": "count() where s = 'bad'",
    "cost": "sum(price * n)",
    "twice": "sum(n * 2) where s <> 'skip'",
    "most": "max(n * 2)",
    "states": "collect_list(s)",
    "costs": "collect_list(price * n) where n < 9",
}
ALERTS = {
    "bad": {"when": "bad >= 1 and size(states) >= 2", "severity": "bad"},
    "first": {"when": "states[0] = 'skip' or array_contains(states, 'bad')", "severity": 1},
    "guessed": {"when": "coalesce(twice, 100) > 50", "severity": 1},
    "dear": {"when": "element_at(costs, -1) >= 10", "severity": "cost"},
}
COMMON: dict[str, object] = {"grace": "0 ms", "aggregates": AGGREGATES, "alerts": ALERTS}
WINDOWS: dict[str, dict[str, object]] = {
    "w": {"kind": "tumbling", "size": "10 ms"},
    "hops": {"kind": "hopping", "size": "10 ms", "advance": "5 ms"},
    "numbers": {
        "kind": "hopping", "size": "10 ms", "advance": "5 ms", "alerts": {},
        "aggregates": {name: AGGREGATES[name] for name in ("bad", "cost", "twice")},
    },
    "slides": {"kind": "sliding", "time_difference": "5 ms"},
    "sessions": {"kind": "session", "gap": "5 ms"},
    "rows": {"kind": "slide_rows", "preceding": "1 row"},
    "counts": {"kind": "count", "size": "2 rows"},
    "fires": {"kind": "tumbling", "size": "10 ms", "trigger": {"early_every": "1 ms"}},
}  # fmt: skip
"""`numbers` has no list, so its records are summed up by slice."""
FEW = ("w", "numbers")
HEADER = "k,t,price,n,s\n"
RECORDS = (
    "a,0,2.50,4,ok\n"
    "a,1,0.01,3,bad\n"
    "b,2,1.00,1,skip\n"
    f"b,3,,{MOST},skip\n"
    f"b,12,1.00,{MOST},ok\n"
    "b,13,1.00,2,\n"
)
LAST = f"{HEADER}z,1000,1.00,1,ok\n"
FAILED = "a number or time of a record overflows its type in the expression"


def dec(value: object) -> Decimal:
    return Decimal(str(value)).quantize(Decimal("0.01"))


def declare(project: SmallProject, names: Sequence[str], **source: object) -> None:
    windows = {name: {**COMMON, **WINDOWS[name]} for name in names}
    first, *others = windows
    others_by_name = {name: windows[name] for name in others}
    project.declare(windows[first], COLUMNS, others_by_name, None, **source)


def finals(project: SmallProject) -> dict[tuple[str, int], list[Any]]:
    """The aggregates of the final windows, and their failed ones, by key and start."""
    return {
        (row["key"], round(row["window_start"].timestamp() * 1000)): [
            *(row[name] for name in AGGREGATES),
            row["failed"],
        ]
        for row in named_rows(project.windows.final_windows)
    }


@pytest.mark.parametrize(
    "names", [FEW, pytest.param(tuple(WINDOWS), marks=pytest.mark.long)], ids=["few", "all"]
)
def test_they_are_the_same_by_days_in_a_stream_and_rebuilt(
    project: SmallProject, tmp_path: Path, names: Sequence[str]
) -> None:
    """Rules A6, E5, G1, G3, H1: by hand for tumbling windows."""
    streamed = SmallProject(tmp_path / "q", project.base, project.capfd, project.monkeypatch)
    declare(project, names)
    project.land(1, HEADER + RECORDS)
    project.land(2, LAST)
    declare(streamed, names, max_per_batch=1)
    # In two micro-batches, whose cut goes through windows.
    lines = (RECORDS + LAST.removeprefix(HEADER)).splitlines(keepends=True)
    for turn, some in enumerate((lines[:3], lines[3:])):
        streamed.land(1, HEADER + "".join(some), f"{turn}.csv", turn)
    for each, way in ((streamed, "stream"), (project, "run")):
        status, said = each.ingest(way)
        assert status == 1, said
    assert finals(project) == {
        ("a", 0): [1, dec("10.03"), 14, 8, ["ok", "bad"], [dec("10.00"), dec("0.03")], []],
        # Of a record for which the condition is not true no expression is computed.
        ("b", 0): [0, dec("1.00"), None, None, ["skip", "skip"], [dec("1.00")], ["most"]],
        # Null is not 'skip', nor anything else. The file has the aggregates by name.
        ("b", 10): [0, dec(MOST + 2), None, None, ["ok"], [dec("2.00")], ["most", "twice"]],
    }
    failed = {
        (row["key"], row["aggregate"], row["message"].partition(": ")[2][: len(FAILED)])
        for row in named_rows(project.windows.failed_windows)
    }
    assert failed == {("b", "most", FAILED), ("b", "twice", FAILED)}
    alerts = sorted((row["key"], row["rule"]) for row in named_rows(project.windows.alerts))
    assert alerts == [("a", "bad"), ("a", "first"), ("b", "first"), ("b", "guessed")]
    by_days = project.results_of(names)
    assert by_days == streamed.results_of(names)
    for name in names:
        assert by_days[f"{name}/failed_windows"], name
    if "fires" in names:
        assert any(["most", "twice"] in row for row in by_days["fires/firings"])
    if names != FEW:
        status, said = project.call("rebuild", "p")
        assert by_days == project.results_of(names), said


def test_a_correction_lists_what_an_expression_was_and_is(project: SmallProject) -> None:
    """Rule E1: lists and conditions as all results."""
    project.declare({**COMMON, **WINDOWS["w"]}, COLUMNS)
    project.land(1, HEADER + RECORDS)
    project.land(2, LAST)
    assert project.ingest("run")[0] == 1
    project.land(1, HEADER + RECORDS.replace(str(MOST), "8").replace("bad", "good"))
    project.call("run", "p", "--from", "2026-11-01", "--to", "2026-11-01")
    asked = ("correct", "p", "--windows", "w", "--from", "2026-11-01", "--cause", "mended")
    status, said = project.call(*asked)
    assert status == 0, said
    assert finals(project) == {
        ("a", 0): [0, dec("10.03"), 14, 8, ["ok", "good"], [dec("10.00"), dec("0.03")], []],
        ("b", 0): [0, dec("1.00"), None, 16, ["skip", "skip"], [dec("1.00")], []],
        ("b", 10): [0, dec("10.00"), 16, 16, ["ok"], [dec("8.00"), dec("2.00")], []],
    }
    changes = {
        (row["key"], tuple(row["old"]["states"]), tuple(row["new"]["states"]))
        for row in named_rows(project.windows.corrections)
        if row["old"] is not None
    }
    assert ("a", ("ok", "bad"), ("ok", "good")) in changes
