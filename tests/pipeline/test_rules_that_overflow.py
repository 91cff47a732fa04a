"""No number of a window ends a run through a rule, a filter or a check (rules A6, E5, G3, H1)."""

from __future__ import annotations

from pathlib import Path

from tests.support.small_project import SmallProject
from tests.support.stored_rows import named_rows

MOST = 9_223_372_036_854_775_807
LEAST = -MOST - 1
COLUMNS = {"k": "string", "t": "bigint", "b": "bigint"}
RULES = {
    "rounded": "round(m, -1) > 5",
    "added": "m + 1 > 5",
    "far": "abs(m) > 5",
    "guessed": "coalesce(m + 1, 9) > 5",
    "either": "m > 5 or m + 1 > 5",
    "ranked": "m > 5",
}
"""The condition of each rule over `m`, the largest value of a window."""
BROKEN = {
    "a": {"far", "either", "ranked"},
    "b": set(RULES),
}
"""By hand, for keys whose largest values are MOST, 8 and, of `c` without an alert, LEAST."""
PASSING = "k in ('a', 'b') or round(b, -1) < 100 or b + 1 < 0"
"""A filter that is unknown for the record of `d`, and holds for that of `c`, whose sum fits."""
UNDECIDED = "{a, 1970-01-01 00:00:00, 1970-01-01 00:00:00.01, [], [added, guessed, rounded]}"
"""How a check shows the first window with rules that can't be evaluated."""
LINES = f"k,t,b\na,0,{MOST}\nb,1,8\nc,2,{LEAST}\nd,3,{MOST}\n"
LAST = "k,t,b\nz,1000,0\n"


def declare(project: SmallProject) -> None:
    alerts = {name: {"when": when, "severity": 1} for name, when in RULES.items()}
    alerts["ranked"]["severity"] = "m + 1"
    windows = {
        "kind": "tumbling",
        "size": "10 ms",
        "grace": "0 ms",
        "aggregates": {"m": "max(b)"},
        "alerts": alerts,
        "trigger": {"early_every": "1 record"},
        "where": PASSING,
    }
    checks = {"small": {"that": "round(b, -1) < 5 and b + 1 < 5"}}
    project.declare(windows, COLUMNS, top={"checks": checks})
    project.land(1, LINES)
    project.land(2, LAST)


def test_a_number_that_does_not_fit_ends_no_run(project: SmallProject, tmp_path: Path) -> None:
    """By days and in a stream, of windows that fire early; `check` finds the same."""
    streamed = SmallProject(tmp_path / "q", project.base, project.capfd, project.monkeypatch)
    found = []
    for ingested, way in ((project, "run"), (streamed, "stream")):
        declare(ingested)
        status, said = ingested.ingest(way)
        assert (status, "overflow" in said.lower()) == (1, False), said
        assert "aggregates_computed" in said, said
        rows = named_rows(ingested.windows.alerts)
        broken = {(row["key"], row["rule"]) for row in rows}
        assert broken == {(key, rule) for key, rules in BROKEN.items() for rule in rules}
        severities = {row["key"]: row["severity"] for row in rows if row["rule"] == "ranked"}
        assert severities == {"a": None, "b": 9}
        found.append(ingested.results_of(["w"]))
    assert found[0] == found[1]
    status, said = project.call("check", "p")
    assert (status, UNDECIDED in said) == (1, True), said
    passed = [(row["key"], row["m"]) for row in named_rows(project.windows.final_windows)]
    assert sorted(passed) == [("a", MOST), ("b", 8), ("c", LEAST)]
