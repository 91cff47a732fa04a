"""Tables of windows of rows that delta-rs writes without Spark, with the oracle's results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import yaml

from tests.support.oracle.aggregates import Value
from tests.support.oracle.arrival_unit_rows import (
    CountDefinition,
    final_rows_of_frames,
    final_rows_with_records,
)
from tests.support.oracle.rows import CountBlock, RowsAround, Session, TumblingBlock
from tests.support.oracle.windows import Record
from tests.support.pipeline_texts import FLIGHTS, load_text
from tests.support.written_cases import EPOCH, FIRST_DAY, MS, write_records
from tests.support.written_tables import write_rows
from windows_pipeline.config import Pipeline
from windows_pipeline.query.stored_window import StoredWindow
from windows_pipeline.storage.catalog import specs_of

GRACE = 6
KINDS: dict[str, tuple[Any, dict[str, object]]] = {
    "around": (
        RowsAround(is_range=True, back=10, ahead=4),
        {"kind": "slide_rows", "preceding": "10 ms", "following": "4 ms"},
    ),
    "before": (
        RowsAround(is_range=True, back=10, ahead=-3),
        {"kind": "slide_rows", "preceding": "10 ms", "following": "-3 ms"},
    ),
    "so_far": (
        RowsAround(is_range=True, back=None, ahead=0),
        {"kind": "slide_rows", "preceding": "unbounded"},
    ),
    "rows_around": (
        RowsAround(is_range=False, back=2, ahead=2),
        {"kind": "slide_rows", "preceding": "2 rows", "following": "2 rows"},
    ),
    "rows_after": (
        RowsAround(is_range=False, back=-1, ahead=3),
        {"kind": "slide_rows", "preceding": "-1 rows", "following": "3 rows"},
    ),
    "rows_before": (
        RowsAround(is_range=False, back=None, ahead=-1),
        {"kind": "slide_rows", "preceding": "unbounded rows", "following": "-1 row"},
    ),
    "sessions": (Session(4), {"kind": "session_rows", "gap": "4 ms"}),
    "tens": (TumblingBlock(10), {"kind": "tumble_rows", "size": "10 ms"}),
    "blocks": (CountBlock(3), {"kind": "tumble_rows", "size": "3 rows"}),
    "count": (CountDefinition(4, 2), {"kind": "count", "size": 4, "advance": 2}),
    "short": (
        CountDefinition(4, 3, short_first=True),
        {"kind": "count", "size": 4, "advance": 3, "short_first": True},
    ),
    "frames": (
        {
            "near": RowsAround(is_range=True, back=10, ahead=4),
            "last": RowsAround(is_range=False, back=3, ahead=0),
            "next": RowsAround(is_range=False, back=-1, ahead=2),
        },
        {
            "kind": "slide_rows",
            "frames": {
                "near": {"preceding": "10 ms", "following": "4 ms"},
                "last": {"preceding": "3 rows"},
                "next": {"preceding": "-1 rows", "following": "2 rows"},
            },
        },
    ),
}
"""Each kind as the oracle and as the file have it, in ms."""
BY_ARRIVAL = ("blocks", "count", "short")
LEAST_DELAY = 5.0
KEYED: dict[str, dict[str, object]] = {
    "source": {},
    "none": {"key": []},
    "two": {"key": ["carrier", "origin"]},
    "filtered": {"where": f"dep_delay > {LEAST_DELAY}"},
}
"""The fields by which a definition has a key or a filter of its own (rule A9)."""


class ExpectedFinal(NamedTuple):
    """A final row as the oracle has it: what names it, its window, and what that holds."""

    arrival_unit: int
    row: tuple[int, int, int]
    key: str | None
    start: int
    end: int
    held: list[Record]


def record_of(
    arrival_unit: int,
    offset: int,
    key: str | None,
    time: int,
    carrier: str | None = "UA",
    delay: float | None = 9.0,
) -> Record:
    values: dict[str, Value | None] = {"carrier": carrier, "dep_delay": delay, "whole": offset}
    return Record(arrival_unit, 0, offset, key, time, values)


def pipeline_of(folder: Path, kind: str, keyed: str) -> Pipeline:
    text = yaml.safe_load(FLIGHTS)
    frames = list(KINDS[kind][0]) if kind == "frames" else []
    aggregates = {f"n_{name}": f"count() over {name}" for name in frames} or {"n": "sum(distance)"}
    fields = {"grace": f"{GRACE} ms", "aggregates": aggregates}
    text["windows"] = {"hourly": {**KINDS[kind][1], **fields, **KEYED[keyed]}}
    return load_text(folder, yaml.safe_dump(text, sort_keys=False))


KEY_OF: dict[str, Callable[[Record], str | None]] = {
    "source": lambda record: record.key,
    "none": lambda _: None,
    "two": lambda record: f"{record.values['carrier'] or ''},{record.key or ''}",
    "filtered": lambda record: record.key,
}


def passes(record: Record) -> bool:
    delay = record.values["dep_delay"]
    return isinstance(delay, float) and delay > LEAST_DELAY


def passing_rows(rows: pa.Table, *_: object) -> list[bool]:
    """A store's filter: what Spark says of rows of raw_events."""
    delays = rows["dep_delay"].to_pylist()
    return [delay is not None and delay > LEAST_DELAY for delay in delays]


def stored_key(keyed: str, key: str | None) -> object:
    if keyed != "two":
        return key
    assert key is not None
    carrier, origin = (part or None for part in key.split(","))
    return {"carrier": carrier, "origin": origin}


def finals_of(records: Sequence[Record], arrival_units: int, kind: str) -> list[ExpectedFinal]:
    definition = KINDS[kind][0]
    if isinstance(definition, Mapping):
        return [
            ExpectedFinal(
                each.arrival_unit,
                (each.row.event_time, each.row.arrival_unit, each.row.offset),
                each.row.key,
                each.start,
                each.end,
                each.held,
            )
            for each in final_rows_of_frames(records, arrival_units, definition, GRACE)
        ]
    return [
        ExpectedFinal(
            row.arrival_unit, (row.time, row.arrived, row.offset), row.key, row.start, row.end, held
        )
        for row, held in final_rows_with_records(records, arrival_units, definition, GRACE)
    ]


def write(
    pipeline: Pipeline,
    warehouse: str,
    records: Sequence[Record],
    finals: Sequence[ExpectedFinal],
    keyed: str,
) -> None:
    arrival_units = max((each.arrival_unit for each in records), default=0) + 1
    write_records(pipeline, warehouse, records, arrival_units)
    rows = [
        {
            "arrival_unit": FIRST_DAY + timedelta(days=each.arrival_unit),
            "key": stored_key(keyed, each.key),
            "window_start": instant(each.start),
            "window_end": instant(each.end),
            "record_count": len(each.held),
            "event_time": instant(each.row[0]),
            "record_arrival_unit": FIRST_DAY + timedelta(days=each.row[1]),
            "source_partition": "0",
            "offset": each.row[2],
        }
        for each in finals
    ]
    write_rows(specs_of(pipeline, warehouse).of("hourly").final_windows, rows)


def instant(ms: int) -> datetime:
    return EPOCH + ms * MS


def row_of(window: StoredWindow) -> tuple[int, int, int]:
    """What names the row of a window, as the oracle has it."""
    of = window.other
    day = (of["record_arrival_unit"] - FIRST_DAY).days
    return ((of["event_time"] - EPOCH) // MS, day, of["offset"])
