"""Runs the kernels on the oracle's records, whatever the kind of window, without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa

from tests.support.oracle.arrival import positions_met
from tests.support.oracle.definitions import close_delay
from tests.support.oracle.windows import (
    Aggregates,
    Definition,
    Key,
    Record,
    RecordId,
    WindowRow,
    close_time_after,
)
from tests.support.radix_batches import cut_up
from tests.support.spark_cases import PAIRS, aggregates_of, calls_on, rows_of, spec_of, window_row
from tests.support.strategies import ArrivalsOf
from windows_pipeline.engine.window_kernel import LateKernel, WindowKernel
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import ComputedDay

_COLUMNS = {
    "whole": "bigint",
    "real": "double",
    "amount": "decimal(20,2)",
    "name": "string",
    "pair": PAIRS["pair"],
}
EVERY_AGGREGATE: Aggregates = {
    f"{call} of {column}": (call, column)
    for column, kind in _COLUMNS.items()
    for call in calls_on(kind, ("(0.0)", "(0.3)", "(0.5)", "(0.95)"))
}
"""Each aggregate of each column that `strategies.arrivals_of` makes."""

ARRIVAL = ("merged_as", "arrival_unit", "source_partition", "offset")
"""What orders records that met one close time (rule A1)."""


class Keys(NamedTuple):
    """Key columns, and the values in them that stand for the oracle's keys."""

    columns: Mapping[str, pa.DataType]
    values: Mapping[Key, tuple[Any, ...]]


DOUBLE = Keys({"key": pa.float64()}, {None: (None,), "a": (0.0,), "b": (float("nan"),)})
TWO_COLUMNS = Keys(
    {"carrier": pa.string(), "number": pa.int32()},
    {None: (None, 1), "a": ("UA", None), "b": ("UA", 1)},
)
STRUCT = Keys(
    {"flight": pa.struct([("carrier", pa.string()), ("number", pa.int32())])},
    {
        None: (None,),
        "a": ({"carrier": None, "number": None},),
        "b": ({"carrier": "UA", "number": None},),
    },
)
NONE_AT_ALL = Keys({}, {None: ()})


class ReadRecord(NamedTuple):
    """A record as a computed day reads it.

    Attributes:
        record: The record.
        close_time_ms: The close time that it met; None where every record is on time.
        merged_as: The source partition as which the merge orders it: its own, or where that was
            idle or is new, the partition that held the close time (rule A4).
        is_new: Whether it came with the computed day.
    """

    record: Record
    close_time_ms: int | None
    merged_as: int
    is_new: bool = True


class Asked(NamedTuple):
    """The records that a computed day reads, and the windows to compute of them."""

    definition: Definition
    reads: list[ReadRecord]
    close_before_ms: int
    close_after_ms: int

    @property
    def day(self) -> ComputedDay:
        return ComputedDay(spec_of(self.definition), self.close_before_ms, self.close_after_ms)


def whole_input(records: Sequence[Record], definition: Definition) -> Asked:
    """All records in one arrival unit (rules A2 to A4): S of each, and the slowest partition's."""
    stream_times: dict[int, int] = {}
    reads = []
    delay_ms = close_delay(definition)
    for record in sorted(records, key=lambda each: each.id):
        own = record.source_partition
        stream_times[own] = max(record.event_time, stream_times.get(own, record.event_time))
        reads.append(ReadRecord(record, stream_times[own] - delay_ms, own))
    close_after_ms = min(stream_times.values(), default=NEVER_MS) - delay_ms
    return Asked(definition, reads, NEVER_MS, close_after_ms)


def by_arrival_unit(case: ArrivalsOf[Any]) -> dict[int, Asked]:
    """Each arrival unit as a computed day, with the records of all up to it (rule E4)."""
    records, arrival_units, definition = case
    positions = positions_met(records, definition)
    delay_ms = close_delay(definition)

    def close_ms(arrival_unit: int) -> int:
        close_time = close_time_after(records, arrival_unit, definition)
        return int(close_time) if close_time > NEVER_MS else NEVER_MS

    return {
        arrival_unit: Asked(
            definition,
            [
                ReadRecord(
                    record, int(time) - delay_ms, partition, record.arrival_unit == arrival_unit
                )
                for record in records
                if record.arrival_unit <= arrival_unit
                for time, partition in [positions[record.id]]
            ],
            close_ms(arrival_unit - 1),
            close_ms(arrival_unit),
        )
        for arrival_unit in range(arrival_units)
    }


def windows_of(
    asked: Mapping[int, Asked],
    aggregates: Aggregates,
    keys: Keys | None = None,
    cuts: Sequence[int] = (),
    random: Random | None = None,
    *,
    with_failed: bool = False,
) -> list[WindowRow]:
    """The kernel's windows as the oracle writes them; a row's arrival unit is its computed day.

    Args:
        asked: The records and windows of each computed day, all in one input.
        aggregates: What to compute.
        keys: The form of the keys; None for text, whatever they are.
        cuts: Where the ordered records are cut into batches, counted around the end.
        random: Orders records of one key and time, which Spark may do in any way.
        with_failed: Whether an aggregate that can't be computed is null (rule G3).
    """
    keys = _text_keys(asked) if keys is None else keys
    return [
        window_row({**row, "key": _key_of(row, keys)}, row["_computed_day"], aggregates)
        for run in runs_of(asked, aggregates, keys, cuts, random, with_failed=with_failed)
        for row in windows_of_run(run)
    ]


def runs_of(
    asked: Mapping[int, Asked],
    aggregates: Aggregates | None = None,
    keys: Keys | None = None,
    cuts: Sequence[int] = (),
    random: Random | None = None,
    *,
    with_failed: bool = False,
) -> list[dict[str, Any]]:
    """The kernel's rows: a run of hopping windows each, of other kinds a window."""
    days = {number: each.day for number, each in asked.items()}
    keys = _text_keys(asked) if keys is None else keys
    wanted = aggregates_of(aggregates or {})
    kernel = WindowKernel(days, list(keys.columns), ARRIVAL, wanted, with_failed=with_failed)
    return list(rows_of(kernel, _batches(asked, keys, cuts, random), days))


def windows_of_run(run: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The windows of one of the kernel's rows."""
    first_ms, advance_ms = run["_window_end_ms"], run.get("_advance_ms", 1)
    ends_ms = range(first_ms, run.get("_last_window_end_ms", first_ms) + 1, advance_ms)
    length_ms = first_ms - run["_window_start_ms"]
    return [
        {**run, "_window_start_ms": end_ms - length_ms, "_window_end_ms": end_ms}
        for end_ms in ends_ms
    ]


def reasons_of(
    asked: Mapping[int, Asked], keys: Keys | None = None, cuts: Sequence[int] = ()
) -> dict[int, dict[RecordId, str]]:
    """By computed day, the records that no window counts and why, as the late kernel finds them."""
    days = {number: each.day for number, each in asked.items()}
    keys = _text_keys(asked) if keys is None else keys
    kernel = LateKernel(days, list(keys.columns), ARRIVAL)
    found: dict[int, dict[RecordId, str]] = {number: {} for number in asked}
    for row in _rows(kernel, _batches(asked, keys, cuts, None)):
        name = RecordId(row["arrival_unit"], row["source_partition"], row["offset"])
        assert name not in found[row["_computed_day"]]
        found[row["_computed_day"]][name] = row["reason"]
    return found


def _text_keys(asked: Mapping[int, Asked]) -> Keys:
    found = {read.record.key for each in asked.values() for read in each.reads}
    in_order = sorted(found, key=lambda key: (key is not None, key or ""))
    return Keys({"key": pa.string()}, {key: (key,) for key in in_order})


def _rows(kernel: LateKernel, batches: Iterator[pa.RecordBatch]) -> Iterable[dict[str, Any]]:
    return (row for batch in kernel(batches) for row in batch.to_pylist())


def _batches(
    asked: Mapping[int, Asked], keys: Keys, cuts: Sequence[int], random: Random | None
) -> Iterator[pa.RecordBatch]:
    """The records in radix order, in batches, some of them empty."""
    reads = [(number, read) for number, each in asked.items() for read in each.reads]
    if random is not None:
        random.shuffle(reads)
    whole = pa.RecordBatch.from_pylist([_row(*each, keys) for each in reads], _schema(keys))
    return cut_up(whole, ["_computed_day", *keys.columns], cuts)


def _schema(keys: Keys) -> pa.Schema:
    columns = {
        "_computed_day": pa.int32(),
        **keys.columns,
        "_event_time_ms": pa.int64(),
        "_close_time_ms": pa.int64(),
        "_is_new": pa.bool_(),
        "merged_as": pa.int32(),
        "arrival_unit": pa.int32(),
        "source_partition": pa.int32(),
        "offset": pa.int64(),
        "whole": pa.int64(),
        "real": pa.float64(),
        "amount": pa.decimal128(20, 2),
        "name": pa.string(),
        "pair": pa.struct([("value", pa.string()), ("by", pa.float64())]),
    }
    return pa.schema(list(columns.items()))


def _row(number: int, read: ReadRecord, keys: Keys) -> dict[str, Any]:
    record = read.record
    return {
        "_computed_day": number,
        **dict(zip(keys.columns, keys.values[record.key], strict=True)),
        "_event_time_ms": record.event_time,
        "_close_time_ms": read.close_time_ms,
        "_is_new": read.is_new,
        "merged_as": read.merged_as,
        "arrival_unit": record.arrival_unit,
        "source_partition": record.source_partition,
        "offset": record.offset,
        **record.values,
    }


def _key_of(row: Mapping[str, Any], keys: Keys) -> Key:
    """The oracle's key; by text, as NaN is not equal to itself in Python."""
    by_text = {repr(values): key for key, values in keys.values.items()}
    return by_text[repr(tuple(row[name] for name in keys.columns))]
