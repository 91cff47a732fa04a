"""A user's function of each firing in a pipeline: a table of its rows (rules E3, E4, H1)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from definitions import build_definitions
from tests.support.oracle.firings import Policy, firings
from tests.support.small_project import SmallProject
from tests.support.stored_rows import named_rows
from windows_pipeline.storage.tables import tables_of

CODE = """def warn(key, window, content, context):
    if content["total"] == 666:
        raise ValueError("the number of the beast")
    if content["record_count"] >= 2:
        yield window.end_ms - window.start_ms, f"{key} {context.reason}", content["total"]
        if context.is_final or context.reason == "LATE":
            yield {"level": "late", "total": content["total"], "length": 0}


def listed(key, window, content, context):
    return [(str(key), record["s"], record["v"]) for record in content]


def settled(key, window, content, context):
    if context.is_final:
        yield context.cause, content["record_count"], content["total"]


def members(key, window, content, context):
    yield context.is_final, [record["v"] for record in content]
"""
COLUMNS = {"k": "string", "t": "bigint", "v": "double", "s": "string"}
WARN = {
    "function": "my_module:warn",
    "columns": {"length": "bigint", "level": "string", "total": "double"},
}
LISTED = {
    "function": "my_module:listed",
    "columns": {"of_key": "string", "s": "string", "v": "double"},
    "records": ["v", "s"],
}
SETTLED = {
    "function": "my_module:settled",
    "columns": {"cause": "string", "n": "bigint", "total": "double"},
}
MEMBERS = {
    "function": "my_module:members",
    "columns": {"is_last": "boolean", "listed": "array<double>"},
    "records": ["v"],
}
SIZE, GRACE, EVERY = 10, 6, 2
POLICY = Policy(size=SIZE, advance=SIZE, lateness=GRACE, every_n=EVERY)
FINAL: dict[str, object] = {"final": True}
COMMON: dict[str, object] = {
    "grace": f"{GRACE} ms",
    "trigger": {"early_every": f"{EVERY} records"},
    "aggregates": {"total": "sum(v)"},
    "alerts": {"many": {"when": "record_count >= 3", "severity": "total"}},
}
TUMBLING = {**COMMON, "kind": "tumbling", "size": f"{SIZE} ms"}
WINDOWS: dict[str, dict[str, object]] = {
    "w": {**TUMBLING, "process": WARN},
    "lists": {**TUMBLING, "process": LISTED},
    "sessions": {**COMMON, "kind": "session", "gap": "4 ms", "process": WARN},
    "slides": {**COMMON, "kind": "sliding", "time_difference": "5 ms", "process": LISTED},
    "pairs": {**TUMBLING, "key": ["k", "s"], "process": WARN},
    "all": {**TUMBLING, "key": [], "process": WARN, "where": "v > 1"},
    "once": {**TUMBLING, "trigger": FINAL, "process": SETTLED},
    "often": {
        **TUMBLING,
        "trigger": {"early_every": f"{EVERY} records", "late": True, **FINAL},
        "process": SETTLED,
    },
    "grown": {
        **COMMON,
        "kind": "session",
        "gap": "4 ms",
        "trigger": {"early_every": "3 ms", **FINAL},
        "process": SETTLED,
    },
    "ahead": {**COMMON, "kind": "forward", "size": "5 ms", "trigger": FINAL, "process": MEMBERS},
    "counts": {**COMMON, "kind": "count", "size": 2, "trigger": FINAL, "process": MEMBERS},
}
FEW = ("w", "lists", "once")
FINALS = ("once", "often", "grown", "ahead", "counts")
"""Those with final firings."""
HEADER = "k,t,v,s\n"
RECORDS = [
    *("a,0,2.5,x", "a,1,7.5,y", "b,2,1,x", "a,9,4,x", "b,12,4,y", "a,3,1,x", "b,13,5,"),
    *("a,17,2,y", "b,11,8,x", "a,21,3,x", "b,22,6,y", "a,16,9,x"),
]
CUT = 8
"""How many of the records the first day brings."""
LAST = "z,1000,1,x"
CHANGED = "a,2,32,y"


def declare(
    project: SmallProject,
    names: Sequence[str],
    code: str = CODE,
    *,
    process: bool = True,
    **source: object,
) -> None:
    left_out = () if process else ("process",)
    windows = {
        name: {field: value for field, value in WINDOWS[name].items() if field not in left_out}
        for name in names
    }
    first, *others = windows
    project.declare(
        windows[first], COLUMNS, {name: windows[name] for name in others}, None, **source
    )
    settings = project.folder / "settings.yaml"
    declared = yaml.safe_load(settings.read_text()) | {"modules": ["my_module"]}
    settings.write_text(yaml.safe_dump(declared))
    (project.folder / "my_module.py").write_text(code)


def land(project: SmallProject, records: Sequence[str]) -> None:
    text = "".join(f"{line}\n" for line in records)
    project.land(1, HEADER + text)


def ms(instant: Any) -> int:
    found: int = round(instant.timestamp() * 1000)
    return found


def processed(project: SmallProject, name: str) -> list[dict[str, Any]]:
    tables = tables_of(project.pipeline, project.settings.warehouse).of(name)
    assert tables is not None
    assert tables.processed is not None
    return named_rows(tables.processed)


def found_in(project: SmallProject) -> list[tuple[Any, ...]]:
    return sorted(
        (
            *(row["key"], ms(row["window_start"]), row["firing_id"], row["reason"]),
            *(row["row_number"], row["level"], row["total"], row["length"]),
        )
        for row in processed(project, "w")
    )


def wanted_of(records: Sequence[str]) -> list[tuple[Any, ...]]:
    """What `warn` makes of the oracle's firings, of tumbling windows."""
    split = [line.split(",") for line in records]
    wanted: list[tuple[Any, ...]] = []
    for firing in firings([(row[0], int(row[1])) for row in split], POLICY):
        total = sum(float(split[record][2]) for record in firing.records)
        rows = [(f"{firing.key} {firing.reason}", total, SIZE)] if len(firing.records) > 1 else []
        if rows and (firing.is_final or firing.reason == "LATE"):
            rows.append(("late", total, 0))
        of = (firing.key, firing.start, firing.id, firing.reason)
        wanted += [(*of, number, *row) for number, row in enumerate(rows)]
    return sorted(wanted)


def require_final_firings(project: SmallProject, name: str, records: Sequence[str]) -> None:
    """Requires one row of each final window, with its values, and of no other firing."""
    tables = project.source.of(name)
    final = {
        (row["key"], *map(row.get, tables.final_windows.key[1:])): row
        for row in named_rows(tables.final_windows)
    }
    rows = {
        (row["key"], *map(row.get, tables.final_windows.key[1:])): row
        for row in processed(project, name)
    }
    assert rows.keys() == final.keys()
    assert len(rows) == len(processed(project, name)) > 3
    for window, row in rows.items():
        assert row["arrival_unit"] == final[window]["arrival_unit"]
        if "listed" in row:
            assert row["is_last"]
            assert len(row["listed"]) == final[window]["record_count"]
            assert sum(row["listed"]) == final[window]["total"]
        else:
            assert (row["total"], row["n"]) == (
                final[window]["total"],
                final[window]["record_count"],
            )
            assert row["cause"] == "STREAM_TIME"
    if name in ("once", "often"):
        split = [line.split(",") for line in records]
        policy = POLICY._replace(final=True, final_only=name == "once")
        of_oracle = firings([(line[0], int(line[1])) for line in split], policy)
        assert sorted(
            (row["key"], ms(row["window_start"]), row["firing_id"], row["reason"])
            for row in rows.values()
        ) == [(f.key, f.start, f.id, f.reason) for f in of_oracle if f.is_final]


@pytest.mark.parametrize(
    "names", [FEW, pytest.param(tuple(WINDOWS), marks=pytest.mark.long)], ids=["few", "all"]
)
def test_its_rows_are_the_same_by_days_in_a_stream_and_rebuilt(
    project: SmallProject, tmp_path: Path, names: Sequence[str]
) -> None:
    """Rules E3, E4, H1: those of the oracle's firings, also of days before the function."""
    streamed = SmallProject(tmp_path / "q", project.base, project.capfd, project.monkeypatch)
    declare(project, names, process=False)
    declare(streamed, names, max_per_batch=3)
    land(project, RECORDS[:CUT])
    status, said = project.ingest("run")
    assert status == 0, said
    declare(project, names)
    project.land(2, HEADER + "".join(f"{line}\n" for line in (*RECORDS[CUT:], LAST)))
    status, said = project.ingest("run")
    assert status == 0, said
    wanted = wanted_of([*RECORDS, LAST])
    assert {row[3] for row in wanted} == {"EARLY", "ON_TIME", "LATE"}
    assert found_in(project) == wanted

    # Two micro-batches: the first has a record of the second day.
    cuts = ((0, 3), (3, CUT), (CUT, 9), (9, len(RECORDS)))
    for number, (start, end) in enumerate(cuts):
        lines = [*RECORDS[start:end], *([LAST] if end == len(RECORDS) else [])]
        text = HEADER + "".join(f"{line}\n" for line in lines)
        file = streamed.land(1 if end <= CUT else 2, text, f"{number}.csv")
        # A stream reads first what was written first.
        os.utime(file, (1_000_000_000 + number, 1_000_000_000 + number))
    status, said = streamed.ingest("stream")
    assert status == 0, said
    for name in FINALS:
        if name in names:
            require_final_firings(project, name, [*RECORDS, LAST])
    by_days = project.results_of(names)
    assert by_days == streamed.results_of(names)
    for name in names:
        assert by_days[f"{name}/processed"], name
    lists = {
        (row["key"], ms(row["window_start"]), row["firing_id"], row["row_number"]): row["v"]
        for row in processed(project, "lists")
    }
    assert [lists["a", 0, 1, number] for number in range(3)] == [2.5, 7.5, 4.0]
    for each in (streamed,) if names == FEW else (project, streamed):
        status, said = each.call("rebuild", "p", "--from", "firings")
        assert status == 0, said
        assert each.results_of(names) == by_days
    assets = build_definitions(project.settings).resolve_asset_graph().get_all_asset_keys()
    assert {"p", "w", "processed"} in [set(key.path) for key in assets]


def test_a_correction_computes_its_rows_again(project: SmallProject) -> None:
    """Rules E1, E3: a day that was landed again changes the rows as it changes firings."""
    declare(project, ("w", "often"))
    land(project, RECORDS[:CUT])
    project.land(2, HEADER + "".join(f"{line}\n" for line in (*RECORDS[CUT:], LAST)))
    status, said = project.ingest("run")
    assert status == 0, said
    changed = [*RECORDS[:3], CHANGED, *RECORDS[3:CUT]]
    land(project, changed)
    status, said = project.call("run", "p", "--from", "2026-11-01", "--to", "2026-11-01")
    assert status in (0, 1), said
    status, said = project.call("correct", "p", "--from", "2026-11-01", "--cause", "landed again")
    assert status == 0, said
    require_final_firings(project, "often", [*changed, *RECORDS[CUT:], LAST])
    wanted = wanted_of([*changed, *RECORDS[CUT:], LAST])
    assert found_in(project) == wanted
    assert wanted != wanted_of([*RECORDS, LAST])


def test_an_error_names_its_firing_and_line_and_an_edit_is_another_definition(
    project: SmallProject,
) -> None:
    """Rules E3, H1: the tables of earlier steps have the day, those of firings do not."""
    declare(project, ("pairs",))
    land(project, [*RECORDS, "c,1000,660,x", "c,1001,6,x"])
    status, said = project.ingest("run")
    line = CODE[: CODE.index("raise ValueError")].count("\n") + 1
    assert status == 2
    assert (
        "my_module:warn failed in firing 0 of the window of key ('c', 'x') from "
        "1970-01-01 00:00:01 to 1970-01-01 00:00:01.010: "
        f"ValueError('the number of the beast') ({project.folder}/my_module.py, line {line}, "
        "in warn)"
    ) in said
    assert "correct the function, then: windows-pipeline rebuild PIPELINE" in said
    assert named_rows(project.windows.final_windows)
    assert processed(project, "w") == []
    declare(project, ("pairs",), CODE.replace("== 666", "== 667"))
    status, said = project.ingest("run")
    assert status == 2, said
    assert "windows.w.modules.my_module: was 'SHA-256 " in said
    status, said = project.call("rebuild", "p")
    assert status == 0, said
    assert {tuple(row["key"].values()) for row in processed(project, "w")} >= {
        ("a", "x"),
        ("c", "x"),
    }
