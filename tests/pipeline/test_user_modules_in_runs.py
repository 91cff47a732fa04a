"""A user's aggregate in a pipeline, in Spark's workers and in Dagster (rules G1, G3, H1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from definitions import build_definitions
from tests.support.small_project import SmallProject
from tests.support.stored_rows import named_rows

CODE = """from windows_pipeline import UserAggregate


def update(bounds, value):
    if value == 666:
        raise ValueError("the number of the beast")
    return merge(bounds, (value, value))


def merge(first, second):
    if first is None or second is None:
        return first or second
    return min(first[0], second[0]), max(first[1], second[1])


def result(bounds):
    return None if bounds is None else bounds[1] - bounds[0]


spread = UserAggregate(lambda: None, update, merge, result, "double")


def named(texts, of):
    return [*texts, f"{of['k']} {of['v']} {of['s']}"]


parts = UserAggregate(list, named, list.__add__, ", ".join, "string")
"""
COLUMNS = {"k": "string", "t": "bigint", "v": "double", "s": "string"}
AGGREGATES = {
    "spread": "my_module:spread(v)",
    "doubled": "my_module:spread(v * 2) where s = 'ok'",
    "parts": "my_module:parts(struct(k, v, s))",
}
ALERTS = {"wide": {"when": "spread > 3 or spread is null", "severity": "record_count"}}
COMMON: dict[str, object] = {"grace": "0 ms", "aggregates": AGGREGATES, "alerts": ALERTS}
WINDOWS: dict[str, dict[str, object]] = {
    "w": {"kind": "tumbling", "size": "10 ms"},
    "slides": {"kind": "sliding", "time_difference": "5 ms"},
    "sessions": {"kind": "session", "gap": "5 ms"},
    "rows": {"kind": "slide_rows", "preceding": "1 row"},
    "counts": {"kind": "count", "size": "2 rows"},
    "fires": {"kind": "tumbling", "size": "10 ms", "trigger": {"early_every": "1 ms"}},
}
FEW = ("w",)
HEADER = "k,t,v,s\n"
RECORDS = "a,0,2.5,ok\na,1,7.5,ok\nb,2,1,ok\nb,3,666,no\nb,12,4,ok\nb,13,333,ok\nb,14,5,\n"
LAST = f"{HEADER}z,1000,1,ok\n"


def declare(project: SmallProject, names: Sequence[str], code: str = CODE) -> None:
    windows = {name: {**COMMON, **WINDOWS[name]} for name in names}
    first, *others = windows
    project.declare(windows[first], COLUMNS, {name: windows[name] for name in others})
    settings = project.folder / "settings.yaml"
    declared = yaml.safe_load(settings.read_text()) | {"modules": ["my_module"]}
    settings.write_text(yaml.safe_dump(declared))
    (project.folder / "my_module.py").write_text(code)


@pytest.mark.parametrize(
    "names", [FEW, pytest.param(tuple(WINDOWS), marks=pytest.mark.long)], ids=["few", "all"]
)
def test_it_is_the_same_by_days_in_a_stream_and_rebuilt(
    project: SmallProject, tmp_path: Path, names: Sequence[str]
) -> None:
    """Rules G1, G3, H1: by hand for tumbling windows; an edited function is a new definition."""
    streamed = SmallProject(tmp_path / "q", project.base, project.capfd, project.monkeypatch)
    for each in (project, streamed):
        declare(each, names)
    project.land(1, HEADER + RECORDS)
    project.land(2, LAST)
    lines = RECORDS.splitlines(keepends=True)
    for number, some in enumerate((lines[:3], lines[3:])):
        streamed.land(1, HEADER + "".join(some), f"{number}.csv")
        if number == 1:
            streamed.land(2, LAST)
        status, said = streamed.ingest("stream")
    assert status == 1, said
    status, said = project.ingest("run")
    assert status == 1, said
    found = {
        (row["key"], round(row["window_start"].timestamp() * 1000)): (
            *(row[name] for name in AGGREGATES),
            row["failed"],
        )
        for row in named_rows(project.windows.final_windows)
    }
    assert found == {
        ("a", 0): (5.0, 10.0, "a 2.5 ok, a 7.5 ok", []),
        ("b", 0): (None, 0.0, "b 1.0 ok, b 666.0 no", ["spread"]),
        ("b", 10): (329.0, None, "b 4.0 ok, b 333.0 ok, b 5.0 None", ["doubled"]),
    }
    line = CODE[: CODE.index("raise ValueError")].count("\n") + 1
    location = f"ValueError('the number of the beast') ({project.folder}/my_module.py, line {line}"
    failed = {
        (row["key"], row["aggregate"]): row["message"]
        for row in named_rows(project.windows.failed_windows)
    }
    assert failed == {
        ("b", "spread"): (
            "spread: my_module:spread(v) failed in the window of key 'b' from 0 to 10 (ms): "
            f"{location}, in update)"
        ),
        ("b", "doubled"): (
            "doubled: my_module:spread(v * 2) where s = 'ok' failed in the window of key 'b' from "
            f"10 to 20 (ms): {location}, in update)"
        ),
    }
    alerts = {(row["key"], row["spread"]) for row in named_rows(project.windows.alerts)}
    assert alerts == {("a", 5.0), ("b", 329.0)}
    by_days = project.results_of(names)
    assert by_days == streamed.results_of(names)
    for name in names:
        assert by_days[f"{name}/failed_windows"], name
    if "fires" in names:
        assert any(["doubled"] in row for row in by_days["fires/firings"])
    jobs = build_definitions(project.settings).resolve_all_job_defs()
    assert "p_all" in {job.name for job in jobs}

    edited = CODE.replace("bounds[1] - bounds[0]", "bounds[1] - bounds[0] + 1")
    declare(project, names, edited)
    status, said = project.call("run", "p", "--from", "2026-11-01", "--to", "2026-11-02")
    assert status == 2, said
    assert re.search(r"windows\.\w+\.modules\.my_module: was 'SHA-256 ", said), said
    status, said = project.call("rebuild", "p")
    spreads = {row["spread"] for row in named_rows(project.windows.final_windows)}
    assert spreads == {6.0, None, 330.0}, said
