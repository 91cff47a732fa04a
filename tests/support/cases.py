"""Reads the golden cases, the answers of real engines and of the contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.oracle.batch import BatchRecord
from tests.support.oracle.windows import (
    Definition,
    SessionDefinition,
    SlidingDefinition,
    TimeDefinition,
)

GOLDEN = Path(__file__).parents[1] / "golden"
KINDS = ("sliding", "hopping", "tumbling", "session")

Case = dict[str, Any]


def read_cases(engine: str, name: str) -> dict[str, Case]:
    """The cases of one file by their id."""
    lines = (GOLDEN / engine / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return {case["id"]: case for case in map(json.loads, lines)}


def definition_of(window: Case, grace_ms: int) -> Definition:
    """The windows that a case asks for."""
    first = window.get("first_window_start_ms")
    match window["kind"]:
        case "sliding":
            return SlidingDefinition(window["time_difference_ms"], grace_ms, first)
        case "session":
            return SessionDefinition(window["gap_ms"], grace_ms)
    size: int = window["size_ms"]
    return TimeDefinition(size, window.get("advance_ms", size), grace_ms, first)


def batch_of(case: Case) -> list[BatchRecord]:
    """A case's records in arrival order."""
    return [
        BatchRecord(each["partition"], each["offset"], each["key"], each["timestamp"])
        for each in case["input"]
    ]
