"""Runs the engine on the oracle's records: its kernel alone, or all of it in Spark."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, NamedTuple, TypeVar, overload

import pyarrow as pa
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.strategies import SearchStrategy
from pyspark.sql import Row, SparkSession

from tests.support.oracle.windows import (
    Aggregates,
    Definition,
    ForwardDefinition,
    LateRow,
    Record,
    RecordId,
    SessionDefinition,
    SlidingDefinition,
    TimeDefinition,
    WindowRow,
    reason_late,
)
from tests.support.radix_batches import cut_up
from tests.support.strategies import Arrivals
from windows_pipeline.aggregates import FUNCTIONS, Aggregate, Function, UserAggregate
from windows_pipeline.arrival.watermark import (
    ArrivalUnit,
    LogRow,
    Read,
    Timeline,
    build_timeline,
    close_ms,
    reads_from,
)
from windows_pipeline.engine.window_kernel import WindowKernel
from windows_pipeline.incremental.records import records_to_read
from windows_pipeline.kernels.time import NEVER_MS
from windows_pipeline.kernels.windows.chunk import Closing, ComputedDay
from windows_pipeline.text.instants import day_number
from windows_pipeline.tuning import Tuning
from windows_pipeline.windows import (
    ForwardSlidingWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    WindowSpec,
)

T = TypeVar("T")

FIRST_DAY = date(2013, 1, 1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

SHORT_SHARDS = Tuning(shard_look_backs=4, least_shard_look_backs=4, shard_records=8, few_records=0)
"""Cuts a key's time into time shards about as often as possible, and records of one key.

No run is small: Spark holds its rows and writes them. In all other tests of pipelines runs are.
"""

PROPERTY = settings(
    deadline=None, print_blob=True, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)

# Alike at each run: what costs a Spark job is drawn once, not shrunk.
_SAMPLE = settings(
    deadline=None,
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)

PAIRS = {"pair": "struct<value:string,by:double>", "counted": "struct<value:bigint,by:bigint>"}
"""The types of columns that functions of two columns take."""

EVERY_FUNCTION: Aggregates = {
    f"{function}_{column}": (function, column)
    for function in ("count", "sum", "min", "max", "avg")
    for column in ("whole", "real")
}
"""Each aggregate of the integers and of the doubles that `strategies.arrivals` makes."""

_READ_SCHEMA = pa.schema(
    [
        ("_computed_day", pa.int32()),
        ("key", pa.string()),
        ("_event_time_ms", pa.int64()),
        ("_close_time_ms", pa.int64()),
        ("_is_new", pa.bool_()),
        ("whole", pa.int64()),
        ("real", pa.float64()),
    ]
)


class Met(NamedTuple):
    """A record as a computed day reads it, with the close time that it met."""

    computed_day: int
    is_new: bool
    record: Record
    close_time_ms: int


class SparkAnswer(NamedTuple):
    """What the engine says, as the oracle would, in no order."""

    windows: list[WindowRow]
    late: list[LateRow]


def day_of(arrival_unit: int) -> date:
    """The arrival day that stands for an oracle's arrival unit."""
    return FIRST_DAY + timedelta(days=arrival_unit)


@overload
def spec_of(definition: SlidingDefinition) -> SlidingWindows: ...
@overload
def spec_of(definition: Definition) -> WindowSpec: ...
def spec_of(definition: Definition) -> WindowSpec:
    """The engine's form of a definition."""
    match definition:
        case SlidingDefinition(difference_ms, grace_ms, first_ms, emit_empty):
            return SlidingWindows(difference_ms, grace_ms, first_ms, emit_empty)
        case ForwardDefinition(size_ms, grace_ms):
            return ForwardSlidingWindows(size_ms, grace_ms)
        case TimeDefinition(size_ms, advance_ms, grace_ms, first_ms, emit_empty):
            return TimeWindows(size_ms, advance_ms, grace_ms, first_ms, emit_empty)
        case SessionDefinition(gap_ms, grace_ms):
            return SessionWindows(gap_ms, grace_ms)


def calls_on(kind: str, percentages: Sequence[str] = ("(0.3)",)) -> list[str]:
    """Each function that takes a column of a type, as the oracle calls it; of pairs, no other."""
    return [
        function.name + second
        for function in FUNCTIONS.values()
        if function.takes.fits(kind) and (function.second == "by") == (kind in PAIRS.values())
        for second in (percentages if function.second == "percentage" else ("",))
    ]


def aggregates_of(aggregates: Aggregates) -> list[Aggregate]:
    """The engine's form of aggregates."""
    return [_aggregate(name, *what) for name, what in aggregates.items()]


def _aggregate(name: str, function: str, column: str) -> Aggregate:
    called, _, percentage = function.removesuffix(")").partition("(")
    return aggregate_of(name, FUNCTIONS[called], column, float(percentage) if percentage else None)


def aggregate_of(
    name: str, function: Function | UserAggregate, column: str, percentage: float | None = None
) -> Aggregate:
    """An aggregate of a column, of pairs if the function takes two columns."""
    by = "by" if function.second == "by" else None
    return Aggregate(name, function, column, percentage, by=by)


def log_of(records: Sequence[Record], arrival_units: int) -> list[LogRow]:
    """The arrival log's rows; that of an arrival unit without records has no source partition."""
    largest: dict[tuple[int, int], int] = {}
    for record in records:
        arrival_unit_partition = (record.arrival_unit, record.source_partition)
        largest[arrival_unit_partition] = max(
            record.event_time, largest.get(arrival_unit_partition, record.event_time)
        )
    rows = [
        LogRow(day_of(arrival_unit), str(each), time)
        for (arrival_unit, each), time in largest.items()
    ]
    empty = set(range(arrival_units)) - {record.arrival_unit for record in records}
    return rows + [LogRow(day_of(arrival_unit), None, None) for arrival_unit in sorted(empty)]


def timeline_of(case: Arrivals) -> Timeline:
    """The scan of a case's log."""
    log = log_of(case.records, case.arrival_units)
    return build_timeline(log, FIRST_DAY, case.definition.idle_after)


def running_maxima(records: Sequence[Record]) -> dict[RecordId, int]:
    """The largest event time up to each record, in its arrival unit and partition (rule A2)."""
    largest: dict[tuple[int, int], int] = {}
    maxima = {}
    for record in sorted(records, key=lambda record: record.id):
        arrival_unit_partition = (record.arrival_unit, record.source_partition)
        largest[arrival_unit_partition] = max(
            record.event_time, largest.get(arrival_unit_partition, record.event_time)
        )
        maxima[record.id] = largest[arrival_unit_partition]
    return maxima


def records_met(case: Arrivals, timeline: Timeline, reads: Iterable[Read]) -> list[Met]:
    """What `records_to_read` gives, without Spark."""
    maxima = running_maxima(case.records)
    grace_ms = case.definition.grace
    met = []
    for read in reads:
        arrival_unit = timeline.arrival_unit(read.arrival_unit)
        assert arrival_unit is not None
        for record in case.records:
            is_new = read.arrival_unit == read.computed_day
            if day_of(record.arrival_unit) != read.arrival_unit:
                continue
            if not is_new and record.event_time < read.from_ms:
                continue
            before = arrival_unit.stream_time_before_ms.get(str(record.source_partition))
            known = [time for time in (maxima[record.id], before) if time is not None]
            close_time = max(*known, arrival_unit.watermark_before_ms) - grace_ms
            met.append(Met(day_number(read.computed_day), is_new, record, close_time))
    return met


def look_back(
    timeline: Timeline, days: Sequence[date], lookback_ms: int, grace_ms: int
) -> list[Read]:
    """The arrival units whose records the days' windows need, if windows are of one length.

    An arrival unit's windows end at or after the close time before it; what they hold lies at most
    `lookback_ms` before that.
    """
    arrival_units = [
        arrival_unit for day in days if (arrival_unit := timeline.arrival_unit(day)) is not None
    ]
    closes_ms = {
        arrival_unit.day: close_ms(arrival_unit.watermark_before_ms, grace_ms)
        for arrival_unit in arrival_units
    }
    from_ms = {day: max(close - lookback_ms, NEVER_MS) for day, close in closes_ms.items()}
    return reads_from(timeline, from_ms)


def reads_of(case: Arrivals, timeline: Timeline, arrival_units: Iterable[int]) -> list[Read]:
    """What the given arrival units' windows need."""
    days = [day_of(arrival_unit) for arrival_unit in arrival_units]
    return look_back(timeline, days, spec_of(case.definition).look_back_ms, case.definition.grace)


def closings_of(arrival_units: Iterable[ArrivalUnit], grace_ms: int) -> dict[int, Closing]:
    """The close times around each arrival unit, by the number of the computed day."""
    return {
        day_number(arrival_unit.day): Closing(
            close_ms(arrival_unit.watermark_before_ms, grace_ms),
            close_ms(arrival_unit.watermark_after_ms, grace_ms),
        )
        for arrival_unit in arrival_units
    }


def kernel_answer(
    definition: SlidingDefinition,
    closings: Mapping[int, Closing],
    aggregates: Aggregates,
    met: Sequence[Met],
    *,
    with_failed: bool = False,
) -> SparkAnswer:
    """The kernel's answer for records as they were met.

    Args:
        definition: The windows.
        closings: The close times before and after each computed day.
        aggregates: What to compute.
        met: The records.
        with_failed: Whether an aggregate that can't be computed is null (rule G3).
    """
    reasons = [reason_late(each.record, each.close_time_ms, definition) for each in met]
    in_time = [each for each, reason in zip(met, reasons, strict=True) if reason is None]
    on_arrival = [
        LateRow(each.record.arrival_unit, each.record.id, reason)
        for each, reason in zip(met, reasons, strict=True)
        if reason is not None and each.is_new
    ]
    spec = spec_of(definition)
    days = {number: ComputedDay(spec, *closing) for number, closing in closings.items()}
    wanted = aggregates_of(aggregates)
    kernel = WindowKernel(days, ["key"], [], wanted, with_partly_late=True, with_failed=with_failed)
    rows = list(rows_of(kernel, batches_of(in_time), days))
    windows = [
        window_row(row, row["_computed_day"] - day_number(FIRST_DAY), aggregates)
        for row in rows
        if row["_window_end_ms"] is not None
    ]
    partly_late = {
        (
            row["_computed_day"],
            row["key"],
            row["_partly_late_time_ms"],
            row["_partly_late_close_ms"],
        )
        for row in rows
        if row["_partly_late_time_ms"] is not None
    }
    on_closing = [
        LateRow(each.computed_day - day_number(FIRST_DAY), each.record.id, "partly_late")
        for each in in_time
        if (each.computed_day, each.record.key, each.record.event_time, each.close_time_ms)
        in partly_late
    ]
    return SparkAnswer(windows, on_arrival + on_closing)


def rows_of(
    kernel: WindowKernel, batches: Iterator[pa.RecordBatch], computed_days: Iterable[int]
) -> Iterator[dict[str, Any]]:
    """The kernel's rows, with what it leaves to Spark: a single computed day, and starts."""
    numbers = list(computed_days)
    for batch in kernel(batches):
        for row in batch.to_pylist():
            if len(numbers) == 1:
                row["_computed_day"] = numbers[0]
            if not kernel.with_starts:
                row["_window_start_ms"] = row["_first_event_time_ms"]
                if kernel.length_ms is not None and row["_window_end_ms"] is not None:
                    row["_window_start_ms"] = row["_window_end_ms"] - kernel.length_ms
            yield row


def batches_of(met: Sequence[Met]) -> Iterator[pa.RecordBatch]:
    """Records in radix order, ties as they come."""
    rows = [
        {
            "_computed_day": each.computed_day,
            "key": each.record.key,
            "_event_time_ms": each.record.event_time,
            "_close_time_ms": each.close_time_ms,
            "_is_new": each.is_new,
            **each.record.values,
        }
        for each in met
    ]
    return cut_up(pa.RecordBatch.from_pylist(rows, _READ_SCHEMA), ["_computed_day", "key"], ())


def window_row(row: Mapping[str, Any], arrival_unit: int, aggregates: Aggregates) -> WindowRow:
    """A window of the engine as the oracle writes it."""
    return WindowRow(
        arrival_unit,
        row["key"],
        row["_window_start_ms"],
        row["_window_end_ms"],
        row["_first_event_time_ms"],
        row["_last_event_time_ms"],
        row["record_count"],
        {name: row[name] for name in aggregates},
        row["closed"],
        tuple(row["failed"] or ()) if "failed" in row else (),
    )


def texts(rows: Iterable[object]) -> list[str]:
    """Rows in one order, comparable to the bit: repr distinguishes NaN, 1, 1.0 and -0.0."""
    return sorted(map(repr, rows))


class SparkRun:
    """Cases of one definition in one Spark job, each in arrival days of its own.

    Only `idle_after` may differ from case to case. The timelines are scanned apart and then
    stand one behind the other, so that no case knows of another.

    Attributes:
        records: What `records_to_read` gives for all of them, every arrival unit a computed day.
        spec: Their windows.
        closings: By computed day, the close times around it.
    """

    def __init__(self, spark: SparkSession, cases: Sequence[Arrivals]) -> None:
        definition = cases[0].definition
        self.spec = spec_of(definition)
        self._first_arrival_units = [
            sum(case.arrival_units for case in cases[:i]) for i in range(len(cases))
        ]
        arrival_units: list[ArrivalUnit] = []
        reads: list[Read] = []
        raw: list[tuple[object, ...]] = []
        for first, case in zip(self._first_arrival_units, cases, strict=True):
            assert spec_of(case.definition) == self.spec
            moved = [
                replace(record, arrival_unit=record.arrival_unit + first) for record in case.records
            ]
            own = set(range(first, first + case.arrival_units))
            log = [row for row in log_of(moved, max(own) + 1) if row.arrival_unit >= day_of(first)]
            timeline = build_timeline(log, day_of(first), case.definition.idle_after)
            reads += reads_of(case, timeline, own)
            arrival_units += timeline.arrival_units
            raw += _raw_rows(moved)
        self.closings = closings_of(arrival_units, definition.grace)
        raw_events = spark.createDataFrame(
            raw,
            "arrival_unit date, source_partition string, offset bigint, key string, "
            "event_time timestamp, running_max timestamp, whole bigint, real double",
        )
        self.records = records_to_read(
            raw_events, Timeline(tuple(arrival_units)), reads, definition.grace
        )

    def case_and_arrival_unit(self, computed_day: int) -> tuple[int, int]:
        """The case that a computed day is of, and its arrival unit there."""
        arrival_unit = computed_day - day_number(FIRST_DAY)
        case = bisect_right(self._first_arrival_units, arrival_unit) - 1
        return case, arrival_unit - self._first_arrival_units[case]

    def windows(self, rows: Iterable[Row], aggregates: Aggregates) -> list[list[WindowRow]]:
        """The windows of each case as the oracle writes them."""
        by_case: list[list[WindowRow]] = [[] for _ in self._first_arrival_units]
        for row in rows:
            case, arrival_unit = self.case_and_arrival_unit(row["_computed_day"])
            by_case[case].append(window_row(row.asDict(), arrival_unit, aggregates))
        return by_case

    def late(self, rows: Iterable[Row]) -> list[list[LateRow]]:
        """The late records of each case as the oracle writes them, sorted."""
        by_case: list[list[LateRow]] = [[] for _ in self._first_arrival_units]
        for row in rows:
            case, arrival_unit = self.case_and_arrival_unit(day_number(row["arrival_unit"]))
            _, arrived = self.case_and_arrival_unit(day_number(row["record_arrival_unit"]))
            name = RecordId(arrived, int(row["source_partition"]), row["offset"])
            by_case[case].append(LateRow(arrival_unit, name, row["reason"]))
        return [sorted(found) for found in by_case]


def _raw_rows(records: Sequence[Record]) -> list[tuple[object, ...]]:
    maxima = running_maxima(records)
    return [
        (
            day_of(record.arrival_unit),
            str(record.source_partition),
            record.offset,
            record.key,
            instant(record.event_time),
            instant(maxima[record.id]),
            record.values["whole"],
            record.values["real"],
        )
        for record in records
    ]


def instant(time_ms: int) -> datetime:
    """A moment from milliseconds since 1970."""
    return EPOCH + timedelta(milliseconds=time_ms)


def sample(strategy: SearchStrategy[T], number: int) -> list[T]:
    """Examples of a strategy, the same at each call."""
    found: list[T] = []

    @settings(_SAMPLE, max_examples=number)
    @given(strategy)
    def keep(example: T) -> None:
        found.append(example)

    keep()
    return found
