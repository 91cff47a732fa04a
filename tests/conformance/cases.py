"""Golden cases: input records, a window definition and the expected answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tests.conformance.count_cases import COUNT_KINDS, count_spec, count_updates
from tests.conformance.firing_cases import FIELD, FiringCase, read_firing_case
from tests.conformance.row_cases import ROW_KINDS, row_answers
from windows_pipeline.windows import (
    CountWindows,
    ForwardSlidingWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    WindowSpec,
)
from windows_pipeline.windows.frames.row_windows import RowWindow

AnySpec = WindowSpec | CountWindows | RowWindow

_KAFKA, _FLINK = "kafka-streams", "flink"


class CaseRecord(NamedTuple):
    """An input record; the key is JSON text, None for no key."""

    offset: int
    partition: int
    key: str | None
    timestamp: int


class WindowAnswer(NamedTuple):
    """A window that an engine returns, with the offsets of its records."""

    key: str | None
    start: int
    end: int
    offsets: tuple[int, ...]


class PartialResult(NamedTuple):
    """A window as it stands after a record."""

    after: int
    window: WindowAnswer


@dataclass(frozen=True)
class Case:
    """A case, with the defaults of its engine.

    Attributes:
        id: The name of the case.
        engine: The engine whose answer is expected; `contract` for the contract.
        records: The usable records, in the order of arrival.
        spec: The windows; None if they are refused.
        refusal: Why the windows are refused.
        expected: The answers to compare, by field: lists of `WindowAnswer`, `Update`,
            `RowAnswer` or offsets.
        refusal_expected: Whether the engine refused the case as well.
        apart: Further answers of the engine, by field, each with a score of its own: of Kafka
            `final`, the windows that were final when the input ended, and `updates`, each window
            after each record that changed it.
    """

    id: str
    engine: str
    records: tuple[CaseRecord, ...]
    spec: AnySpec | None
    refusal: str | None
    expected: Mapping[str, list[Any]]
    refusal_expected: bool
    apart: Mapping[str, list[Any]] = field(default_factory=dict)

    @property
    def is_batch(self) -> bool:
        """Whether the answer is Flink's in batch mode.

        In batch mode every record is on time, every window is closed, and a session ends a gap
        after its last record.
        """
        return self.engine == _FLINK


AnyCase = Case | FiringCase


def read_cases(path: Path) -> list[AnyCase]:
    """Reads a file of cases, one JSON object per line."""
    return [read_firing_case(raw) if FIELD in raw else _case(raw) for raw in _objects(path)]


def agreements(path: Path) -> set[tuple[str, str]]:
    """Reads from the contract's cases which engine agrees on which id (`agrees_with`)."""
    agreed = (raw for raw in _objects(path) if raw.get("agrees_with"))
    return {(_engine(raw["agrees_with"]), raw["id"]) for raw in agreed}


def _objects(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _engine(text: str) -> str:
    """Returns an engine's name without its version."""
    return text.split(" ", maxsplit=1)[0]


def _case(raw: dict[str, Any]) -> Case:
    engine = _engine(raw["engine"])
    window = dict(raw["window"])
    if engine == _KAFKA:  # Kafka's first window starts at 0 (rules B6, C1)
        window.setdefault("first_window_start_ms", 0)
    spec, refusal = _spec(window)
    unusable = set(raw.get("unusable", []))
    keyed = raw.get("keyed", True)
    records = tuple(
        CaseRecord(
            record["offset"],
            record.get("partition", 0),
            _key(record["key"]) if keyed else None,
            record["timestamp"],
        )
        for record in raw["input"]
        if record["offset"] not in unusable
    )
    return Case(
        raw["id"],
        engine,
        records,
        spec,
        refusal,
        _expected(raw, engine),
        "error" in raw,
        _apart(raw) if engine == _KAFKA and isinstance(spec, WindowSpec) else {},
    )


def _expected(raw: dict[str, Any], engine: str) -> dict[str, list[Any]]:
    if "error" in raw:
        return {}
    if raw["window"]["kind"] in ROW_KINDS:
        return {"rows": row_answers(raw.get("batch_rows", raw["rows"]), _key)}
    if raw["window"]["kind"] in COUNT_KINDS:
        return dict(count_updates(raw, _key))
    if engine == _FLINK:
        return {"final": _answers(raw["batch_final"])} if "batch_final" in raw else {}
    still_open = _answers(raw.get("open", []))
    if engine == _KAFKA:  # Kafka's suppression emits one step early: compares final and open as one
        return {"windows": sorted(_final_of_kafka(raw) + still_open, key=repr)}
    expected = {"final": _answers(raw["final"]), "open": still_open}
    expected |= {name: raw[name] for name in ("dropped", "partially_late") if name in raw}
    return expected


def _apart(raw: dict[str, Any]) -> dict[str, list[Any]]:
    """What Kafka recorded beside the windows; no updates of several source partitions."""
    if "error" in raw:
        return {}
    found: dict[str, list[Any]] = {"final": _final_of_kafka(raw)}
    if "updates" in raw and len({record["partition"] for record in raw["input"]}) == 1:
        latest = {
            (update["after"], _key(update["key"]), update["start"], update["end"]): update
            for update in sorted(raw["updates"], key=lambda update: len(update["offsets"]))
            if update["kind"] == "update"
        }
        found["updates"] = sorted(
            (
                PartialResult(update["after"], answer)
                for update in latest.values()
                for answer in _answers([update])
            ),
            key=repr,
        )
    return found


def _final_of_kafka(raw: dict[str, Any]) -> list[WindowAnswer]:
    if raw["window"]["kind"] == "sliding":  # Kafka's default retention drops windows early
        return _answers(raw.get("long_retention", {}).get("final", raw["final"]))
    return _answers(raw["final"])


def _answers(rows: list[dict[str, Any]]) -> list[WindowAnswer]:
    found = [
        WindowAnswer(_key(row["key"]), row["start"], row["end"], tuple(row["offsets"]))
        for row in rows
    ]
    return sorted(found, key=repr)


def _key(key: object) -> str | None:
    return None if key is None else json.dumps(key)


def _spec(window: dict[str, Any]) -> tuple[AnySpec | None, str | None]:
    kinds: dict[str, Callable[[dict[str, Any]], AnySpec]] = {
        **ROW_KINDS,
        "sliding": _sliding,
        "hopping": _time,
        "tumbling": _time,
        "session": _session,
        **dict.fromkeys(COUNT_KINDS, count_spec),
    }
    read = kinds[window["kind"]]
    try:
        return read(window), None
    except ValueError as error:
        return None, str(error)


def _sliding(window: dict[str, Any]) -> WindowSpec:
    if "size_ms" in window:  # forward windows of KIP-450's first draft (rule B7)
        return ForwardSlidingWindows(window["size_ms"], window.get("grace_ms", 0))
    return SlidingWindows(
        window["time_difference_ms"],
        window["grace_ms"],
        window.get("first_window_start_ms"),
        window.get("emit_empty", False),
    )


def _time(window: dict[str, Any]) -> WindowSpec:
    return TimeWindows(
        window["size_ms"],
        window.get("advance_ms", window["size_ms"]),
        window.get("grace_ms", 0),
        window.get("first_window_start_ms"),
        window.get("emit_empty", False),
    )


def _session(window: dict[str, Any]) -> WindowSpec:
    return SessionWindows(window["gap_ms"], window.get("grace_ms", 0))
