"""Golden cases: input records, a window's definition, and the answer that is expected."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from windows_pipeline.conformance.count_cases import COUNT_KINDS, count_spec, count_updates
from windows_pipeline.conformance.fields import instant_ms, whole_number
from windows_pipeline.conformance.firing_cases import FIELD, FiringCase, read_firing_case
from windows_pipeline.conformance.row_cases import ROW_KINDS, row_answers
from windows_pipeline.windows import (
    CountWindows,
    ForwardSlidingWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    WindowSpec,
)
from windows_pipeline.windows.row_windows import RowWindow

AnySpec = WindowSpec | CountWindows | RowWindow

_KAFKA, _FLINK = "kafka-streams", "flink"
_NO_CASE = (ValueError, KeyError, TypeError, AttributeError)
"""What reading a line raises that holds no case."""


class CaseError(Exception):
    """A file can't be read; the message says which and why."""


class Record(NamedTuple):
    """An input record; the key as JSON text, null for none."""

    offset: int
    partition: int
    key: str | None
    timestamp: int


class Answer(NamedTuple):
    """A window of an answer, with the offsets of its records."""

    key: str | None
    start: int
    end: int
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class Case:
    """A case, read as its engine means it.

    Attributes:
        id: Its name.
        engine: Whose answer is expected; `contract` for the contract's own.
        records: The records in the order of arrival; those that count.
        spec: The windows; None where an argument is refused, or the case could not be read.
        refusal: Why it is refused.
        expected: What is compared, by field: lists of `Answer`, of `Update`, of `RowAnswer` or
            of offsets.
        refusal_expected: Whether the engine that answered refused it as well.
    """

    id: str
    engine: str
    records: tuple[Record, ...]
    spec: AnySpec | None
    refusal: str | None
    expected: Mapping[str, list[Any]]
    refusal_expected: bool

    @property
    def is_batch(self) -> bool:
        """Whether it is one of Flink's batch answers.

        Then every record is on time, every window closed, and a session ends a gap after its
        last record.
        """
        return self.engine == _FLINK


AnyCase = Case | FiringCase


def read_cases(path: Path) -> list[AnyCase]:
    """Reads a file of cases, one JSON object a line; what can't be read is a case that fails.

    Raises:
        CaseError: The file can't be read.
    """
    return [
        _any_case_or_failure(line, f"{path}:{number}") for number, line in _numbered_lines(path)
    ]


def agreements(path: Path) -> set[tuple[str, str]]:
    """By the contract's cases, which engine gave the same answer to which id (`agrees_with`).

    Raises:
        CaseError: The file can't be read, or a line is no case.
    """
    found = set()
    for number, line in _numbered_lines(path):
        try:
            raw = json.loads(line)
            if raw.get("agrees_with"):
                found.add((_engine(raw["agrees_with"]), str(raw["id"])))
        except _NO_CASE as error:
            raise CaseError(f"{path}:{number}: no case: {error!r}") from None
    return found


def _numbered_lines(path: Path) -> list[tuple[int, str]]:
    """The lines that hold something: text in a JSON line may hold what Python takes for an end."""
    try:
        lines = path.read_text(encoding="utf-8-sig").split("\n")
    except OSError as error:
        raise CaseError(f"{path}: can't be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CaseError(f"{path}: is no UTF-8: {error}") from None
    return [(number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _any_case_or_failure(line: str, place: str) -> AnyCase:
    raw: Any = None
    try:
        raw = json.loads(line)
        return read_firing_case(raw) if FIELD in raw else _case(raw)
    except _NO_CASE as error:
        told = str(error) if type(error) is ValueError else f"no case: {error!r}"
        known = raw if isinstance(raw, dict) else {}
        name, engine = known.get("id", place), known.get("engine", "unknown")
        return Case(str(name), _engine(str(engine)), (), None, f"{place}: {told}", {}, False)


def _engine(text: str) -> str:
    """An engine's name without its version."""
    return text.split(" ", maxsplit=1)[0]


def _case(raw: dict[str, Any]) -> Case:
    engine = _engine(raw["engine"])
    window = dict(raw["window"])
    if engine == _KAFKA:  # its windows start at 0 (rules B6, C1)
        window.setdefault("first_window_start_ms", 0)
    spec, refusal = _spec(window)
    unusable = set(raw.get("unusable", []))
    keyed = raw.get("keyed", True)
    records = tuple(
        Record(
            whole_number(record, "offset"),
            whole_number({"partition": 0, **record}, "partition"),
            _key(record["key"]) if keyed else None,
            instant_ms(record),
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
    final, still_open = _answers(raw["final"]), _answers(raw.get("open", []))
    if engine == _KAFKA:  # which of them are final differs: its suppression emits one step early
        if raw["window"]["kind"] == "sliding":  # its default retention forgets windows early
            final = _answers(raw.get("long_retention", {}).get("final", raw["final"]))
        return {"windows": sorted(final + still_open, key=repr)}
    expected = {"final": final, "open": still_open}
    expected |= {name: raw[name] for name in ("dropped", "partially_late") if name in raw}
    return expected


def _answers(rows: list[dict[str, Any]]) -> list[Answer]:
    found = [
        Answer(_key(row["key"]), row["start"], row["end"], tuple(row["offsets"])) for row in rows
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
    kind = window["kind"]
    if kind not in kinds:  # no engine's refusal is expected of what isn't known
        raise ValueError(f"unknown kind of window {kind!r}; known are {', '.join(kinds)}")
    try:
        return kinds[kind](window), None
    except ValueError as error:
        return None, str(error)


def _sliding(window: dict[str, Any]) -> WindowSpec:
    if "size_ms" in window:  # the KIP's first draft (rule B7)
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
