"""Golden cases of Flink's firings: reads, answers in one Spark job and compares (rules E2, A5)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyspark.sql import DataFrame, Row, SparkSession

from windows_pipeline.aggregates import FUNCTIONS, Aggregate
from windows_pipeline.engine.firings.kernel import FiringSpec
from windows_pipeline.engine.firings.plan import fire
from windows_pipeline.windows import SessionWindows, TimeWindows
from windows_pipeline.windows.firing.triggers import Trigger

FIELD = "firings"
"""The field that only cases of firings have."""
_OFFSETS = Aggregate("offsets", FUNCTIONS["collect_list"], "value")


class CaseFiring(NamedTuple):
    """A firing with the fields of the cases' format; the key is JSON text."""

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
    """A case, with Flink's defaults.

    Attributes:
        id: The name of the case.
        engine: The engine whose answer is expected.
        records: The records by arrival: offset, key as JSON text, event time in ms.
        windows: The windows; the grace is out-of-orderness plus allowed lateness.
        trigger: When the windows fire.
        firings: The expected firings.
        dropped: The expected offsets of records that no window takes.
    """

    id: str
    engine: str
    records: tuple[tuple[int, str | None, int], ...]
    windows: TimeWindows | SessionWindows
    trigger: Trigger
    firings: frozenset[CaseFiring]
    dropped: tuple[int, ...]


def read_firing_case(raw: dict[str, Any]) -> FiringCase:
    """Reads a case from the JSON object of its line."""
    window, late_by_ms = raw["window"], raw["out_of_orderness_ms"]
    early = window["early"]
    grace_ms = window["allowed_lateness_ms"] + late_by_ms
    windows: TimeWindows | SessionWindows
    if window["kind"] == "session":
        windows = SessionWindows(window["gap_ms"], grace_ms)
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
            (
                record["offset"],
                _key(record["key"]) if keyed else None,
                record["timestamp"],
            )
            for record in raw["input"]
        ),
        windows,
        trigger,
        frozenset(_expected(row) for row in raw[FIELD]),
        tuple(sorted(raw["dropped"])),
    )


def _expected(row: dict[str, Any]) -> CaseFiring:
    fields = {name: row[name] for name in CaseFiring._fields}
    return CaseFiring(
        **(fields | {"key": _key(row["key"]), "offsets": tuple(sorted(row["offsets"]))})
    )


def _key(key: object) -> str | None:
    return None if key is None else json.dumps(key)


def firing_differences(
    spark: SparkSession, cases: Mapping[int, FiringCase]
) -> dict[int, list[str]]:
    """Answers cases of firings; returns one line for each difference, by the cases' numbers."""
    if not cases:
        return {}
    computed_days: dict[int, FiringSpec] = {}
    case_of_day: dict[int, int] = {}
    for number, case in cases.items():
        # A second computed day fires at each record and shows it alone: a record in none of
        # its firings was dropped.
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
    """Returns the stream time after each record (rule A2)."""
    times: list[int] = []
    for _, _, time_ms in case.records:
        times.append(max(time_ms, times[-1]) if times else time_ms)
    return times


def _differences(case: FiringCase, fired: list[Row], alone: list[Row]) -> list[str]:
    found = {_fired(case, row) for row in fired}
    missing = sorted(case.firings - found, key=repr)
    unexpected = sorted(found - case.firings, key=repr)
    lines = [f"{case.id}: firings: missing {firing}" for firing in missing]
    lines += [f"{case.id}: firings: not expected {firing}" for firing in unexpected]
    if len(found) != len(fired):
        lines.append(f"{case.id}: firings: {len(fired) - len(found)} are duplicates")
    dropped = _dropped(case, {offset for row in alone for offset in row.offsets})
    if dropped != case.dropped:
        lines.append(f"{case.id}: dropped: expected {list(case.dropped)}, got {list(dropped)}")
    return lines


def _fired(case: FiringCase, row: Row) -> CaseFiring:
    """Converts a firing to Flink's fields: watermark = stream time - out-of-orderness - 1."""
    stream_times = [None, *_stream_times(case)]
    positions = {offset: position for position, (offset, _, _) in enumerate(case.records)}
    by_record = row.cause == "RECORD"
    watermark: int | str | None = "end"
    if row["_after_offset"] is not None:
        # A record is compared with the watermark of the records before it.
        stream_time_ms = stream_times[positions[row["_after_offset"]] + (0 if by_record else 1)]
        delay_ms = case.trigger.out_of_orderness_ms + 1
        watermark = None if stream_time_ms is None else stream_time_ms - delay_ms
    end_ms = row["_window_end_ms"]
    if isinstance(case.windows, SessionWindows):
        end_ms += case.windows.gap_ms
    return CaseFiring(
        row["_after_offset"],
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
    """Returns Flink's late side output: late records in no window, but not those in a gap."""
    return tuple(
        sorted(
            offset
            for (offset, _, time_ms), stream_time_ms in zip(
                case.records, _stream_times(case), strict=True
            )
            if offset not in taken and time_ms < stream_time_ms - case.windows.grace_ms
        )
    )
