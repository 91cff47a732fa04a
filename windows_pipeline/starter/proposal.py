"""Proposes sliding windows, aggregates and alert rules whose thresholds come from the sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.starter.arrival_order import (
    ArrivedRecords,
    grace_ms,
    rounded_down,
    rounded_up,
)
from windows_pipeline.starter.instants import connected, evaluated
from windows_pipeline.starter.types import SampleColumn

_RECORDS_A_WINDOW = 5
_REGULAR_SHARE = 0.75
"""The share of gaps near the usual one from which on records are regular: of records that come at
random times about a third are."""
_FEWEST_GAPS = 10
_SILENCE_GAPS = 3
"""A gap between records of this many usual gaps is a silence."""
_MOST_DIGITS = 12
"""The most digits of a threshold."""
_RARE = 0.99
_LONGEST_NAME = 100
_THRESHOLDS = 1e-90, 1e90
"""The least and the largest threshold: a power of ten has two digits in a rule."""
_LEFT_WINDOWS = """
    SELECT event_ms, count(*) OVER of_size AS counts, avg(value) OVER of_size AS averages
    FROM records
    WINDOW of_size AS (
        PARTITION BY key ORDER BY event_ms RANGE BETWEEN {size_ms} PRECEDING AND CURRENT ROW
    )
    ORDER BY key, event_ms
"""
"""Each record's left window (rule B3)."""


@dataclass(frozen=True, slots=True)
class AlertRule:
    """An example of an alert rule.

    Attributes:
        name: Its name.
        when: SQL that is true for windows that break it.
        severity: SQL of a number.
        broken: How many closed windows of the sample break it.
        note: Where the threshold comes from.
    """

    name: str
    when: str
    severity: str
    broken: int
    note: str


@dataclass(frozen=True, slots=True)
class Proposal:
    """A definition of sliding windows with aggregates and alert rules.

    Attributes:
        size_ms: The time difference.
        grace_ms: The grace.
        emit_empty: Whether silences are results.
        aggregates: Calls, by the name of their result.
        rules: The alert rules.
        closed: How many windows of the sample are closed at its end.
        total: How many windows the sample has.
    """

    size_ms: int
    grace_ms: int
    emit_empty: bool
    aggregates: dict[str, str]
    rules: Sequence[AlertRule]
    closed: int
    total: int


@dataclass(frozen=True, slots=True)
class SampleWindows:
    """The left windows of a sample's records, by key and event time.

    Attributes:
        counts: How many records each holds.
        averages: The average of their values; NaN where there is none.
        is_closed: Whether the window is closed at the sample's end.
    """

    counts: np.ndarray
    averages: np.ndarray
    is_closed: np.ndarray


def propose(
    arrived: ArrivedRecords,
    key: SampleColumn,
    value: SampleColumn | None,
    size_ms: int | None = None,
    chosen_grace_ms: int | None = None,
) -> Proposal:
    """Proposes windows with aggregates and alert rules: for silences too where records are regular.

    Args:
        arrived: The records.
        key: The key.
        value: The column to aggregate; None for none.
        size_ms: The length of windows; None to propose one.
        chosen_grace_ms: The grace; None to propose one.
    """
    grace = grace_ms(arrived.lateness_ms) if chosen_grace_ms is None else chosen_grace_ms
    codes = np.asarray(pc.dictionary_encode(pc.fill_null(key.texts, "")).indices)[arrived.rows]
    order = np.lexsort((arrived.event_ms, codes))
    codes, times = codes[order], arrived.event_ms[order]
    values = None if value is None else _numbers(value).take(pa.array(arrived.rows[order]))
    close_ms = int(times.max(initial=0)) - grace
    is_next = codes[1:] == codes[:-1]
    gaps, starts = np.diff(times)[is_next], times[:-1][is_next]
    is_regular = _is_regular(gaps)
    size = size_ms or _size(times, gaps, may_be_silent=is_regular and value is None)
    windows = sample_windows(codes, times, values, size, close_ms)
    rules = []
    if is_regular:
        # A silence begins 1 ms after a record.
        silences = np.sum((gaps > size + 1) & (starts + 1 + size < close_ms))
        note = "a window without a record, thanks to emit_empty"
        rules.append(AlertRule("silent", "record_count = 0", "1", int(silences), note))
    if value is not None:
        rules.append(_high(windows, value.name))
    elif not is_regular:
        rules.append(_busy(windows))
    return Proposal(
        size_ms=size,
        grace_ms=grace,
        emit_empty=is_regular,
        aggregates={} if value is None else _aggregates(value.name),
        rules=rules,
        closed=int(windows.is_closed.sum()),
        total=len(times),
    )


def sample_windows(
    key: np.ndarray, event_ms: np.ndarray, values: pa.Array | None, size_ms: int, close_ms: int
) -> SampleWindows:
    """Finds the left windows of records (rule B3).

    Args:
        key: The number of each record's key.
        event_ms: The event times.
        values: The values to average; null for none.
        size_ms: The length of a window.
        close_ms: The close time at the sample's end.
    """
    value = pa.nulls(len(key), pa.float64()) if values is None else values
    with connected() as database:
        database.register("records", pa.table({"key": key, "event_ms": event_ms, "value": value}))
        found = database.sql(_LEFT_WINDOWS.format(size_ms=size_ms)).to_arrow_table()
    ends, counts, averages = (column.to_numpy() for column in found.columns)
    return SampleWindows(counts, averages, ends < close_ms)


def _numbers(column: SampleColumn) -> pa.Array:
    """The values as doubles; null where a value is no finite number."""
    number = "CASE WHEN isfinite(try_cast(v AS DOUBLE)) THEN try_cast(v AS DOUBLE) END"
    return evaluated(column.plain, number=number).column("number").combine_chunks()


def _is_regular(gaps_ms: np.ndarray) -> bool:
    """Whether each key's records come at regular times, from the gaps between them."""
    if len(gaps_ms) < _FEWEST_GAPS:
        return False
    usual = np.median(gaps_ms)
    return bool(np.mean(np.abs(gaps_ms - usual) <= usual / 2) >= _REGULAR_SHARE and usual > 0)


def _size(times_ms: np.ndarray, gaps_ms: np.ndarray, *, may_be_silent: bool) -> int:
    """Proposes a window's length: a few records of a key, and many windows in the sample."""
    if not len(gaps_ms):
        return 3_600_000
    usual = int(np.median(gaps_ms))
    if may_be_silent:
        size = rounded_up(_SILENCE_GAPS * usual)
        # Silences in the sample should show.
        return size if size < gaps_ms.max() else min(size, rounded_up(2 * usual))
    span = int(times_ms.max() - times_ms.min())
    most = max(rounded_down(span // 10), 1_000)
    return min(rounded_up(max(_RECORDS_A_WINDOW * usual, 60_000)), most)


def _aggregates(column: str) -> dict[str, str]:
    return {_result(each, column): f"{each}({column})" for each in ("avg", "max")}


def _result(function: str, column: str) -> str:
    """The name of an aggregate's result, such as `avg_amount`."""
    return f"{function}_{column.lower()}"[:_LONGEST_NAME]


def _busy(windows: SampleWindows) -> AlertRule:
    """A rule on the count, which about one of a hundred windows breaks."""
    counts = _shown(windows, windows.counts)
    most = int(np.quantile(counts, _RARE, method="lower")) if len(counts) else 1
    broken = int(np.sum(windows.is_closed & (windows.counts >= most)))
    note = "above 99 % of record_count in the sample"
    return AlertRule("busy", f"record_count >= {most}", "record_count", broken, note)


def _high(windows: SampleWindows, column: str) -> AlertRule:
    """A rule on the average, which about one of a hundred windows breaks."""
    averages = _shown(windows, windows.averages)
    averages = averages[np.isfinite(averages)]
    least, largest = _THRESHOLDS
    sizes = np.abs(averages[averages != 0.0])
    can_be_written = bool(np.all((sizes >= least) & (sizes <= largest)))
    if not can_be_written or len(np.unique(averages)) < 2:
        return _busy(windows)
    limit = _rounded_up(float(np.quantile(averages, _RARE, method="lower")), averages.max())
    if limit >= averages.max():
        limit = float(np.unique(averages)[-2])
    name = _result("avg", column)
    broken = int(np.sum(windows.is_closed & (windows.averages > limit)))
    note = f"above 99 % of {name} in the sample"
    rule = f"high_{column.lower()}"[:_LONGEST_NAME]
    return AlertRule(rule, f"{name} > {limit:.12g}", name, broken, note)


def _shown(windows: SampleWindows, results: np.ndarray) -> np.ndarray:
    """The results of closed windows; of all windows if none is closed."""
    return results[windows.is_closed] if windows.is_closed.any() else results


def _rounded_up(value: float, largest: float) -> float:
    """Rounds up to the fewest digits, at least three, that leave it below the largest value.

    A threshold that was rounded down would be broken by more windows than the rule's note says.
    """
    for digits in range(3, _MOST_DIGITS + 1):
        context = Context(prec=digits, rounding=ROUND_CEILING)
        found = float(context.create_decimal_from_float(value))
        if found < largest:
            return found
    return value
