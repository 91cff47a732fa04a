"""What was measured, as JSON, and from that a table and a plot."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import flink_engine, kafka_engine
from benchmarks.compare import Measured
from benchmarks.engine_process import Resources
from benchmarks.plan import Planned
from benchmarks.ways import FLOOR, OURS, WAYS

_FILE = "measurements.json"
BUSY_CORES = 0.2
"""A run beside others that use more than this is marked as disturbed."""
Entry = dict[str, Any]


def machine_folder(root: Path) -> Path:
    """The folder of this size of machine."""
    gib = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    return root / f"{os.cpu_count()}-cores-{gib}-gib"


def entry(planned: Planned, measured: Sequence[Measured], resources: Resources) -> Entry:
    """One work's measurements as JSON can hold them."""
    work = planned.work
    used = {"cores": resources.cores, "memory_gib": resources.memory_gib}
    medians = {one.way.name: one.median_s for one in measured}
    return {
        "records": work.dataset.records,
        "keys": work.dataset.keys,
        "spread": work.dataset.spread,
        "kind": work.kind,
        "aggregates": work.aggregates,
        "records_per_window": work.records_per_window,
        "length_ms": work.length_ms,
        "ways": {one.way.name: made_of() | used | _way(one, medians) for one in measured},
    }


def with_entry(entries: dict[str, Entry], name: str, found: Entry) -> dict[str, Entry]:
    """What was measured before and now; ways that were left out now stay as they were."""
    earlier = entries.get(name, {}).get("ways", {})
    return entries | {name: found | {"ways": earlier | found["ways"]}}


@cache
def made_of() -> Entry:
    """When and of what a measurement is: the same for all of one run of the command."""
    return {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("pyspark", "pyarrow", "numba", "duckdb", "polars")},
            "flink": flink_engine.VERSION,
            "kafka-streams": kafka_engine.VERSION,
        },
    }


def _commit() -> str:
    """The commit that is measured, with a plus if files were changed since; empty without git."""
    code = (".", ":!benchmarks/results")
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", *code)
    return _git("rev-parse", "--short", "HEAD") + ("+" if changed else "")


def _git(*words: str) -> str:
    git = shutil.which("git")
    if git is None:
        return ""
    asked = [git, "-C", str(Path(__file__).parent.parent), *words]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()  # noqa: S603


def _way(one: Measured, medians: dict[str, float | None]) -> Entry:
    median_s, floor_s, ours_s = one.median_s, medians.get(FLOOR.name), medians.get(OURS.name)
    seconds = [run.seconds for run in one.counted]
    if median_s is None:
        return {"failure": one.failure}
    return {
        "runs": [round(second, 3) for second in seconds],
        "median_s": round(median_s, 3),
        "min_s": round(min(seconds), 3),
        "max_s": round(max(seconds), 3),
        "to_floor": round(median_s / floor_s, 2) if floor_s else None,
        "to_ours": round(median_s / ours_s, 2) if ours_s else None,
        "peak_mib": max(run.peak_mib for run in one.counted),
        "others_cores": max(run.others_cores for run in one.counted),
        "failure": one.failure,
    }


def load(folder: Path) -> dict[str, Entry]:
    """What was measured before, by the work's name."""
    path = folder / _FILE
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def save(folder: Path, entries: dict[str, Entry]) -> None:
    """Writes everything that was measured, and the table of it."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(entries, indent=1)
    (folder / _FILE).write_text(text + "\n", encoding="utf-8")
    (folder / "table.md").write_text(_table(entries), encoding="utf-8")


def _table(entries: dict[str, Entry]) -> str:
    lines = [
        "# Measurements",
        "",
        "Seconds, warm: the runs before do not count; above 10M records each run is in a process",
        "of its own, after one run on 1M. To the floor and to ours is the ratio of medians of one",
        "command: a way that was left out of a later one keeps its row, its ratios and its commit",
        "(a plus: with changes). Peak is the resident memory of the whole process tree. A star:",
        "others used the processors as well. Of rows of earlier commits, and what was compared:",
        "docs/performance.md.",
        "",
        *(f"- {way.name}: {way.computes}." for way in WAYS.values()),
        "",
    ]
    for name, one in entries.items():
        lines += [
            f"## {name}",
            "",
            "| way | runs | median | min | max | to floor | to ours | peak MiB | measured |",
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
            *(_row(way, figures) for way, figures in one["ways"].items()),
            "",
        ]
    return "\n".join(lines)


def _row(way: str, figures: Entry) -> str:
    measured = f"{figures['measured_at'][:10]} {figures['commit']}"
    if "median_s" not in figures:
        return f"| {way} | | {figures['failure']} | | | | | | {measured} |"
    star = "\\*" if figures["others_cores"] > BUSY_CORES else ""
    seconds = " | ".join(f"{figures[name]:.2f}" for name in ("median_s", "min_s", "max_s"))
    ratios = " | ".join(
        "" if figures[name] is None else f"{figures[name]:.2f}" for name in ("to_floor", "to_ours")
    )
    runs, peak_mib = len(figures["runs"]), figures["peak_mib"]
    return f"| {way}{star} | {runs} | {seconds} | {ratios} | {peak_mib} | {measured} |"
