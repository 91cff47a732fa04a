"""Proposes windows, aggregates and alert rules whose thresholds come from the sample."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.starter.arrival_order import (
    ArrivedRecords,
    grace_ms,
    rounded_down,
    rounded_up,
)
from windows_pipeline.starter.types import SampleColumn
from windows_pipeline.starter.window_counts import SampleWindows, sample_windows

Kind = Literal["sliding", "tumbling", "hopping", "session"]
KINDS: tuple[Kind, ...] = ("sliding", "tumbling", "hopping", "session")
_RECORDS_A_WINDOW = 5
_REGULAR_SHARE = 0.75
"""The share of gaps near the usual one from which on records are regular: of records that come at
random times about a third are."""
_FEWEST_GAPS = 10
_SILENCE_GAPS = 3
"""A gap between records of this many usual gaps is a silence."""
_RARE = 0.99
_HOPS = 4
_LONGEST_NAME = 100
_MOST_DIGITS = 18
"""The most digits of a number in a rule, before the point and after it."""
_THRESHOLDS = 1e-90, 1e90
"""The least and the largest threshold: a power of ten has two digits in a rule."""


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
    """A window definition with aggregates and alert rules.

    Attributes:
        name: The name of the definition.
        kind: The kind of window.
        size_ms: Time difference, size or gap, ms.
        advance_ms: The advance of hopping windows.
        grace_ms: The grace.
        emit_empty: Whether silences are results.
        aggregates: Calls, by the name of their result.
        rules: The alert rules.
        closed: How many windows of the sample are closed at its end.
        total: How many windows the sample has.
    """

    name: str
    kind: Kind
    size_ms: int
    advance_ms: int
    grace_ms: int
    emit_empty: bool
    aggregates: dict[str, str]
    rules: tuple[AlertRule, ...]
    closed: int
    total: int


@dataclass(frozen=True, slots=True)
class KeyedTimes:
    """The sample's records by key, then by event time.

    Attributes:
        key: The number of each record's key.
        event_ms: Its event time, ms since 1970.
        values: Its number to aggregate; NaN where it has none, None where no column is chosen.
        end_ms: Stream time at the end of the sample.
    """

    key: np.ndarray
    event_ms: np.ndarray
    values: np.ndarray | None
    end_ms: int

    @property
    def gaps_ms(self) -> np.ndarray:
        """The times between consecutive records of a key."""
        same: np.ndarray = self.key[1:] == self.key[:-1]
        gaps: np.ndarray = np.diff(self.event_ms)[same]
        return gaps


def keyed_times(
    arrived: ArrivedRecords, key: SampleColumn, value: SampleColumn | None
) -> KeyedTimes:
    """Sorts the sample by key and event time."""
    keys = pc.dictionary_encode(pc.fill_null(key.texts, "")).indices
    codes = np.asarray(keys)[arrived.rows]
    order = np.lexsort((arrived.event_ms, codes))
    values = None if value is None else _numbers(value)[arrived.rows][order]
    end = int(arrived.event_ms.max()) if len(arrived.event_ms) else 0
    return KeyedTimes(codes[order], arrived.event_ms[order], values, end)


def _numbers(column: SampleColumn) -> np.ndarray:
    plain = pc.utf8_ltrim(pc.utf8_trim_whitespace(column.texts), "+")
    is_number = pc.match_substring_regex(plain, r"^-?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?$")
    texts = pc.if_else(
        pc.fill_null(is_number, fill_value=False), plain, pa.scalar(None, pa.string())
    )
    return np.asarray(pc.fill_null(pc.cast(texts, pa.float64()), float("nan")))


def is_regular(times: KeyedTimes) -> bool:
    """Whether each key's records come at regular times."""
    gaps = times.gaps_ms
    if len(gaps) < _FEWEST_GAPS:
        return False
    usual = np.median(gaps)
    return bool(np.mean(np.abs(gaps - usual) <= usual / 2) >= _REGULAR_SHARE and usual > 0)


def propose_size(times: KeyedTimes) -> int:
    """Proposes a window's length: a few records of a key, and many windows in the sample."""
    gaps = times.gaps_ms
    span = int(times.event_ms.max() - times.event_ms.min()) if len(times.event_ms) else 0
    if not len(gaps):
        return 3_600_000
    usual = int(np.median(gaps))
    if times.values is None and is_regular(times):
        size = rounded_up(_SILENCE_GAPS * usual)
        # Silences in the sample should show.
        return size if size < gaps.max() else min(size, rounded_up(2 * usual))
    return min(
        rounded_up(max(_RECORDS_A_WINDOW * usual, 60_000)), max(rounded_down(span // 10), 1_000)
    )


def propose(
    times: KeyedTimes,
    value: SampleColumn | None,
    lateness_ms: np.ndarray,
    *,
    kind: Kind = "sliding",
    size_ms: int | None = None,
    chosen_grace_ms: int | None = None,
) -> Proposal:
    """Proposes windows with aggregates and alert rules: for silences too where records are regular.

    Args:
        times: The records by key.
        value: The column to aggregate; None for none.
        lateness_ms: How late each record is.
        kind: The kind of window.
        size_ms: Its length; None to propose one.
        chosen_grace_ms: Its grace; None to propose one.
    """
    size = propose_size(times) if size_ms is None else size_ms
    grace = grace_ms(lateness_ms) if chosen_grace_ms is None else chosen_grace_ms
    advance = max(size // _HOPS, 1) if size % _HOPS == 0 else size
    windows = sample_windows(times.key, times.event_ms, times.values, kind, size, advance)
    closed = windows.closed_at(times.end_ms - grace - (size if kind == "session" else 0))
    shown = closed if closed.count else windows
    has_silences = is_regular(times) and kind == "sliding"
    rules = [_silence(times, size, grace)] if has_silences else []
    if value is not None:
        rules.append(_high(shown, value.name, live=bool(closed.count)))
    elif not has_silences:
        rules.append(_busy(shown, live=bool(closed.count)))
    aggregates = {} if value is None else _aggregates(value)
    name = {
        "sliding": "sliding",
        "tumbling": "by_time",
        "hopping": "hopping",
        "session": "sessions",
    }
    return Proposal(
        name[kind], kind, size, advance, grace, has_silences, aggregates, tuple(rules),
        closed.count, windows.count,
    )  # fmt: skip


def result_name(function: str, column: str) -> str:
    """Returns the name of an aggregate's result, such as `avg_amount`."""
    return f"{function}_{column.lower()}"[:_LONGEST_NAME]


def _aggregates(value: SampleColumn) -> dict[str, str]:
    return {
        result_name(function, value.name): f"{function}({value.name})"
        for function in ("avg", "max")
    }


def _silence(times: KeyedTimes, size: int, grace: int) -> AlertRule:
    """A rule that a window without a record breaks."""
    same = times.key[1:] == times.key[:-1]
    silent = same & (np.diff(times.event_ms) > size + 1)
    starts = times.event_ms[:-1][silent] + 1
    broken = int(np.sum(starts + size < times.end_ms - grace))
    return AlertRule(
        "silent", "record_count = 0", "1", broken, "a window without a record, thanks to emit_empty"
    )


def _busy(windows: SampleWindows, *, live: bool) -> AlertRule:
    most = int(np.quantile(windows.counts, _RARE, method="lower")) if windows.count else 1
    broken = int(np.sum(windows.counts >= most)) if live else 0
    return AlertRule(
        "busy", f"record_count >= {most}", "record_count", broken,
        "above 99 % of record_count in the sample",
    )  # fmt: skip


def _high(windows: SampleWindows, column: str, *, live: bool) -> AlertRule:
    averages = windows.averages[np.isfinite(windows.averages)]
    name = result_name("avg", column)
    least, largest = _THRESHOLDS
    size = np.abs(averages[averages != 0.0])
    can_be_written = bool(np.all((size >= least) & (size <= largest)))
    if not len(averages) or averages.min() == averages.max() or not can_be_written:
        return _busy(windows, live=live)
    highest = float(averages.max())
    limit = _rounded(float(np.quantile(averages, _RARE, method="lower")))
    if limit >= highest:
        limit = float(averages[averages < highest].max())
    broken = int(np.sum(averages > limit)) if live else 0
    return AlertRule(
        f"high_{column.lower()}"[:_LONGEST_NAME], f"{name} > {_plain(limit)}", name, broken,
        f"above 99 % of {name} in the sample",
    )  # fmt: skip


def _rounded(value: float) -> float:
    """Rounds down to three digits, so that a threshold is short and below the largest value."""
    if value == 0.0:
        return 0.0
    unit = 10.0 ** (np.floor(np.log10(abs(value))) - 2)
    return float(np.floor(value / unit) * unit)


def _plain(value: float) -> str:
    """Writes a number as rules take it: with a power of ten only if it has too many digits."""
    short = f"{value:.12g}"
    text = format(Decimal(short), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    is_long = max(map(len, text.lstrip("-").split("."))) > _MOST_DIGITS
    return short if is_long else text
