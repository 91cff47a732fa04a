"""Flink's firings as golden cases: read, answered in one Spark job, compared (rules E2, A5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession

from windows_pipeline.aggregates import Aggregate, Function
from windows_pipeline.conformance.fields import instant_ms, whole_number
from windows_pipeline.engine.firings.kernel import FiringSpec
from windows_pipeline.engine.firings.plan import fire
from windows_pipeline.windows import SessionWindows, TimeWindows
from windows_pipeline.windows.triggers import Trigger

FIELD = "firings"
"""The field by which a case is one of these."""
_OFFSETS = Aggregate("offsets", Function.COLLECT_LIST, "value")


class Fired(NamedTuple):
    """A firing as the cases have it; the key as JSON text."""

    after: int | None
    key: str | None
    start: int
    end: int
    id: int
    reason: str
    watermark: int | str | None
    cause: str
    offsets: tuple[int, ...]


@dataclass(frozen=True)
class FiringCase:
    """A case, read as Flink means it.

    Attributes:
        id: Its name.
        engine: Whose answer is expected.
        records: The records by arrival: offset, key as JSON text, event time in ms.
        windows: The windows: their grace covers the out-of-orderness and allowed lateness.
        trigger: When they fire.
        firings: The firings that are expected.
        dropped: The offsets of those that no window is to take.
    """

    id: str
    engine: str
    records: tuple[tuple[int, str | None, int], ...]
    windows: TimeWindows | SessionWindows
    trigger: Trigger
    firings: frozenset[Fired]
    dropped: tuple[int, ...]


def read_firing_case(raw: dict[str, Any]) -> FiringCase:
    """Reads a case from its line.

    Raises:
        KeyError: It lacks a field.
        ValueError: Its windows, its trigger or a record are refused.
    """
    window, late_by_ms = raw["window"], raw["out_of_orderness_ms"]
    early = window["early"]
    if early["kind"] not in {"none", "every_n", "event_time"}:
        raise ValueError(f"unknown kind of early firings {early['kind']!r}")
    grace_ms = window["allowed_lateness_ms"] + late_by_ms
    windows: TimeWindows | SessionWindows
    if window["kind"] == "session":
        windows = SessionWindows(window["gap_ms"], grace_ms)
    elif window["kind"] not in {"hopping", "tumbling"}:
        raise ValueError(f"unknown kind of window {window['kind']!r} that fires")
    else:
        advance_ms = window.get("advance_ms", window["size_ms"])
        windows = TimeWindows(window["size_ms"], advance_ms, grace_ms)
    trigger = Trigger(
        early_every_records=early.get("n"),
        early_every_ms=early.get("interval_ms"),
        discards=window["purge"],
        out_of_orderness_ms=late_by_ms,
        as_in_flink=True,
    )
    keyed = raw.get("keyed", True)
    return FiringCase(
        raw["id"],
        raw["engine"].split(" ", maxsplit=1)[0],
        tuple(
            (whole_number(each, "offset"), _key(each["key"]) if keyed else None, instant_ms(each))
            for each in raw["input"]
        ),
        windows,
        trigger,
        frozenset(_expected(row) for row in raw[FIELD]),
        tuple(sorted(raw["dropped"])),
    )


def _expected(row: dict[str, Any]) -> Fired:
    named = {name: row[name] for name in Fired._fields}
    return Fired(**(named | {"key": _key(row["key"]), "offsets": tuple(sorted(row["offsets"]))}))


def _key(key: object) -> str | None:
    return None if key is None else json.dumps(key)


def firing_differences(
    spark: SparkSession, cases: Mapping[int, FiringCase]
) -> dict[int, list[str]]:
    """What the engine answers otherwise, a line each, by the cases' numbers."""
    if not cases:
        return {}
    computed_days: dict[int, FiringSpec] = {}
    case_of_day: dict[int, int] = {}
    for number, case in cases.items():
        # Where each update fires alone, what no firing shows was dropped.
        alone = replace(case.trigger, early_every_records=1, early_every_ms=None, discards=True)
        for trigger in (case.trigger, alone):
            case_of_day[len(computed_days)] = number
            computed_days[len(computed_days)] = FiringSpec(case.windows, trigger)
    records = _records(spark, cases, case_of_day).persist()
    try:
        fired = fire(records, computed_days, ["key"], [_OFFSETS], ["offset"], input_ends=True)
        rows = fired.collect()
    finally:
        records.unpersist()
    got: dict[int, list[Row]] = {day: [] for day in computed_days}
    for row in rows:
        got[row["_computed_day"]].append(row)
    return {
        number: _differences(cases[number], got[day], got[day + 1])
        for day, number in case_of_day.items()
        if day % 2 == 0
    }


def _records(
    spark: SparkSession, cases: Mapping[int, FiringCase], case_of_day: Mapping[int, int]
) -> DataFrame:
    rows = []
    for day, number in case_of_day.items():
        for record, stream_time_ms in zip(
            cases[number].records, _stream_times(cases[number]), strict=True
        ):
            offset, key, time_ms = record
            rows.append((day, offset, key, time_ms, stream_time_ms, offset))
    columns = "_computed_day int, offset bigint, key string, _event_time_ms bigint, "
    columns += "_stream_time_ms bigint, value bigint"
    return spark.createDataFrame(rows, columns)


def _stream_times(case: FiringCase) -> list[int]:
    """Stream time after each record (rule A2)."""
    times: list[int] = []
    for _, _, time_ms in case.records:
        times.append(max(time_ms, times[-1]) if times else time_ms)
    return times


def _differences(case: FiringCase, fired: list[Row], alone: list[Row]) -> list[str]:
    found = {_fired(case, row) for row in fired}
    lines = [f"{case.id}: firings: missing {one}" for one in sorted(case.firings - found, key=repr)]
    lines += [
        f"{case.id}: firings: not expected {one}" for one in sorted(found - case.firings, key=repr)
    ]
    if len(found) != len(fired):
        lines.append(f"{case.id}: firings: some came twice")
    dropped = _dropped(case, {offset for row in alone for offset in row.offsets})
    if dropped != case.dropped:
        lines.append(f"{case.id}: dropped: expected {list(case.dropped)}, got {list(dropped)}")
    return lines


def _fired(case: FiringCase, row: Row) -> Fired:
    """A firing in Flink's words: its watermark is stream time less out-of-orderness less 1."""
    stream_times = [None, *_stream_times(case)]
    places = {offset: place for place, (offset, _, _) in enumerate(case.records)}
    by_record = row.cause == "RECORD"
    watermark: int | str | None = "end"
    if row.after_offset is not None:
        # A record is judged by the watermark that those before it left.
        met_ms = stream_times[places[row.after_offset] + (0 if by_record else 1)]
        watermark = None if met_ms is None else met_ms - case.trigger.out_of_orderness_ms - 1
    end_ms = row["_window_end_ms"]
    if isinstance(case.windows, SessionWindows):
        end_ms += case.windows.gap_ms
    return Fired(
        row.after_offset,
        row.key,
        row["_window_start_ms"],
        end_ms,
        row.firing_id,
        row.reason,
        watermark,
        "record" if by_record else "watermark",
        tuple(sorted(row.offsets)),
    )


def _dropped(case: FiringCase, taken: set[int]) -> tuple[int, ...]:
    """The late side output: in no window, and late itself, not in a gap between hops (rule 4)."""
    return tuple(
        sorted(
            offset
            for (offset, _, time_ms), stream_time_ms in zip(
                case.records, _stream_times(case), strict=True
            )
            if offset not in taken and time_ms < stream_time_ms - case.windows.grace_ms
        )
    )
