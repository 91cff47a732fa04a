"""Guesses which columns are the key, the event time, the arrival and the value to aggregate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow.compute as pc

from windows_pipeline.config.source import EVENT_TIME, LINES
from windows_pipeline.epochs import EPOCHS
from windows_pipeline.starter.names import (
    event_score,
    is_arrival,
    is_identifier,
    is_money,
    key_score,
)
from windows_pipeline.starter.types import SampleColumn
from windows_pipeline.text.counts import counted

_MOST_NULLS = 0.05
"""The largest share of records without a value in a column that has a role."""
_FEWEST_RECORDS = 20
"""In a smaller sample, values that occur once say little."""
_MOSTLY, _NEARLY_ALL = 0.9, 0.99
_ZERO, _DAY = np.timedelta64(0), np.timedelta64(1, "D")
_LIKELY_YEARS = np.array(["1980", "2100"], "datetime64[us]")


class CannotGuessError(ValueError):
    """The sample has no column for a role: the user must name one."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A column for a role, or what stands for one, and why.

    Attributes:
        name: The column; for the arrival also `lines` or `event_time`.
        reason: Why.
    """

    name: str
    reason: str


def guess_event_time(columns: Mapping[str, SampleColumn]) -> Choice:
    """Chooses the column that says when an event happened.

    Raises:
        CannotGuessError: No column holds times.
    """
    found = [each for each in columns.values() if each.times is not None and _is_usable(each)]
    if not found:
        raise CannotGuessError(
            "--event-time: some column must hold times (ISO 8601 such as 2013-03-08T10:15:00Z, or "
            "numbers since 1970), and none of these does: "
            f"{', '.join(_described(column) for column in columns.values())}. If one is a time, "
            "name it: --event-time COLUMN; if not, write a time into each record"
        )
    best = max(found, key=lambda column: (column.type != "date", event_score(column.name)))
    if len(found) == 1:
        return Choice(best.name, "the only column of times")
    if event_score(best.name) > 0:
        return Choice(best.name, "its name is that of an event's time")
    if any(is_arrival(column.name) for column in found):
        return Choice(best.name, "the other times are those of an arrival")
    return Choice(best.name, "the first column of times")


def _described(column: SampleColumn) -> str:
    note = f"; {column.note}" if column.note else ""
    return f"{column.name} ({column.type}, such as {column.example[:40]!r}{note})"


def guess_arrival(columns: Mapping[str, SampleColumn], event_time: str) -> Choice:
    """Chooses what orders arrival: a second time, the lines of the files, or the event time.

    A second time is the arrival if it is mostly at or after the event time, and if either its
    name says so or the records are in its order, and not in that of the event time.
    """
    event = columns[event_time].known_times
    in_order = _share_in_order(event)
    found: list[tuple[float, str, str]] = []
    for column in columns.values():
        if column.type == "date" or column.name == event_time:
            continue
        if column.times is None or not _is_usable(column):
            continue
        both = ~np.isnat(event) & ~np.isnat(column.times)
        after = float(np.mean(column.times[both] >= event[both])) if both.any() else 0.0
        order = _share_in_order(column.times)
        named = is_arrival(column.name)
        if after >= _MOSTLY and (named or (order >= _NEARLY_ALL and in_order < order)):
            reason = f"{after:.0%} of its times are not before {event_time}"
            reason += "; the records are in its order" if order >= _NEARLY_ALL else ""
            found.append((named + order, column.name, reason))
    if found:
        _, name, reason = max(found)
        return Choice(name, reason)
    if _lateness_is_absurd(event[~np.isnat(event)]):
        return Choice(EVENT_TIME, "the lines are not in the order of time, and no column says when")
    return Choice(LINES, "no second time says when a record came; the lines are in order of time")


def _lateness_is_absurd(times: np.ndarray) -> bool:
    """Whether records are so far out of time order that line order can't be the arrival."""
    if len(times) < 2:
        return False
    behind = np.maximum.accumulate(times) - times
    # More than 5 % of the records are behind by over a day and over a tenth of the whole span.
    most = np.sort(behind)[int(0.95 * (len(behind) - 1))]
    return bool(most > max(_DAY, (times.max() - times.min()) / 10))


def _share_in_order(times: np.ndarray) -> float:
    steps = np.diff(times[~np.isnat(times)])
    return float(np.mean(steps >= _ZERO)) if len(steps) else 1.0


def guess_key(columns: Mapping[str, SampleColumn]) -> Choice:
    """Chooses the column whose values each have windows of their own.

    Raises:
        CannotGuessError: No column has values that occur again and again.
    """
    ranked = []
    for column in columns.values():
        if column.type not in ("string", "bigint") or not _is_usable(column):
            continue
        records = len(column.texts) - column.texts.null_count
        keys = pc.count_distinct(column.texts).as_py()
        score = key_score(column.name)
        repeats = records / keys
        if records >= _FEWEST_RECORDS and repeats < 2:
            continue  # a column such as order_id names single records
        if score <= 0 and (column.type == "bigint" or repeats < 2):
            continue  # a measurement
        ranked.append((score, keys > 1, column.type == "string", keys, column.name, records))
    if not ranked:
        raise CannotGuessError(
            "--key: some column must say whose record it is, with values that occur again and "
            f"again, and none of {', '.join(columns)} looks so; name one: --key COLUMN (if all "
            "records belong together, add a column with one value)"
        )
    score, _, _, keys, name, records = max(ranked)
    named = "its name, and " if score > 0 else ""
    return Choice(name, f"{named}{counted(keys, 'value')} in {counted(records, 'record')}")


def guess_value(columns: Mapping[str, SampleColumn], taken: set[str]) -> str | None:
    """Chooses the number to aggregate; None where there is only the records' count.

    Args:
        columns: The columns.
        taken: The columns that have a role.
    """
    ranked = []
    for position, column in enumerate(columns.values()):
        if not column.is_number or column.name in taken or is_identifier(column.name):
            continue
        if pc.count_distinct(column.texts).as_py() >= 2:
            is_fraction = column.type != "bigint"
            ranked.append((is_money(column.name), is_fraction, -position, column.name))
    return max(ranked)[-1] if ranked else None


def as_times(option: str, column: SampleColumn, zone: str | None = None) -> SampleColumn:
    """Reads a column that was not taken for a time, in a zone where it names no offset.

    Raises:
        ValueError: Most values are no times.
    """
    first, last = _LIKELY_YEARS
    for kind in ("timestamp", *EPOCHS):
        found = column.as_type(kind, zone if kind == "timestamp" else None)
        likely = (found.known_times >= first) & (found.known_times < last)
        if likely.sum() > (len(column.texts) - column.texts.null_count) / 2:
            return found
    raise ValueError(
        f"{option}: {column.name!r} must hold times (ISO 8601 such as 2013-03-08T10:15:00Z, or "
        "numbers since 1970 of the years 1980 to 2099), and holds values such as "
        f"{column.example[:40]!r}; name another column, or write times in this form"
    )


def _is_usable(column: SampleColumn) -> bool:
    """Whether nearly all records have a value."""
    return column.has_values and column.texts.null_count <= len(column.texts) * _MOST_NULLS
