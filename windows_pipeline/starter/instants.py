"""Reads columns of text as instants: ISO 8601 times, and numbers since 1970."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.epochs import EPOCHS

SECOND_US = 1_000_000
DAY_US = 86_400 * SECOND_US
YEAR_US = 31_556_952 * SECOND_US
"""The mean length of a year."""
_ISO = (
    r"^\s*(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?:[T ](?P<hour>\d{1,2}):(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})"
    r"(?:\.(?P<fraction>\d{1,9}))?"
    r"(?P<zone>Z|UTC|GMT|[+-](?:(?:0\d|1[0-7])(?::?[0-5]\d)?|18(?::?00)?))?)?)?\s*$"
)
"""As Spark reads times: no offset without seconds, and none above 18 hours."""
_NUMBER = r"^\s*(?P<sign>[+-]?)(?P<whole>\d{1,19})(?:\.(?P<fraction>\d{0,9}))?\s*$"
_POWER = r"^\s*[+-]?\d+(\.\d*)?[eE][+-]?\d{1,2}\s*$"
_MOST_S = 253_402_300_800
"""The end of the year 9999."""
_MOST_WHOLE = 2**63
"""Whole numbers from here on do not fit 64 bits."""


class Instants(NamedTuple):
    """A column's times.

    Attributes:
        us: Microseconds since 1970; 0 where `is_time` is false.
        is_time: Whether the value is a time.
    """

    us: np.ndarray
    is_time: np.ndarray


def instants(texts: pa.StringArray, kind: str, zone: str | None = None) -> Instants:
    """Reads a column of a time's type: `timestamp`, `date`, or a number since 1970.

    Args:
        texts: The values.
        kind: The type.
        zone: The zone of the timestamps that name no offset; None for UTC.
    """
    if kind in EPOCHS:
        return _numbers(texts, EPOCHS[kind].per_second)
    times = _iso(texts)
    return times if kind != "timestamp" or zone is None else _in_zone(times, texts, zone)


def is_local(texts: pa.StringArray) -> np.ndarray:
    """Which values are times of ISO 8601 that name no offset."""
    found = pc.extract_regex(texts, _ISO)
    local: np.ndarray = _mask(found) & _equals(found, "zone", "")
    return local


def _in_zone(times: Instants, texts: pa.StringArray, zone: str) -> Instants:
    """Reads local times in a zone as a run does: the first of two; none that does not occur."""
    local = pa.array(times.us, pa.timestamp("us"))
    found = pc.assume_timezone(local, zone, ambiguous="earliest", nonexistent="earliest")
    occurs = np.asarray(pc.equal(pc.local_timestamp(found), local))
    moves = is_local(texts)
    is_time = times.is_time & (occurs | ~moves)
    us = np.where(moves, np.asarray(pc.cast(found, pa.int64())), times.us)
    return Instants(np.where(is_time, us, 0), is_time)


def has_time_of_day(texts: pa.StringArray) -> bool:
    """Whether any value holds hours, as well as a date."""
    return bool(pc.any(pc.match_substring(texts, ":")).as_py())


def _iso(texts: pa.StringArray) -> Instants:
    found = pc.extract_regex(texts, _ISO)
    is_iso = _mask(found)
    month, day = _integers(found, "month"), _integers(found, "day")
    hour, minute = _integers(found, "hour"), _integers(found, "minute")
    second = _integers(found, "second")
    year = _integers(found, "year")
    months = (year - 1970) * 12 + month - 1
    first = months.astype("datetime64[M]").astype("datetime64[D]")
    days = first + (day - 1)
    exists = (
        (year >= 1)
        & (month >= 1)
        & (month <= 12)
        & (day >= 1)
        & (days.astype("datetime64[M]") == months.astype("datetime64[M]"))
    )
    exists &= (hour <= 23) & (minute <= 59) & (second <= 59)
    fraction = _fraction(found, 6)
    of_day = ((hour * 60 + minute) * 60 + second) * SECOND_US + fraction
    us = days.astype(np.int64) * DAY_US + of_day - _offsets_us(found)
    is_time = is_iso & exists
    return Instants(np.where(is_time, us, 0), is_time)


def _numbers(texts: pa.StringArray, per_second: int) -> Instants:
    found = pc.extract_regex(_without_powers(texts), _NUMBER)
    is_number = _mask(found)
    whole = _integers(found, "whole", np.float64)
    is_time = is_number & (whole <= _MOST_S * per_second) & (whole < _MOST_WHOLE)
    exact = np.where(is_time, _exact(found, is_time), 0)
    if per_second > SECOND_US:
        us = exact // (per_second // SECOND_US)
    else:
        digit_count = len(str(SECOND_US // per_second)) - 1
        us = exact * (SECOND_US // per_second) + _fraction(found, digit_count)
    sign = np.where(_equals(found, "sign", "-"), -1, 1)
    return Instants(np.where(is_time, sign * us, 0), is_time)


def _exact(found: pa.StructArray, is_time: np.ndarray) -> np.ndarray:
    whole = pc.if_else(pa.array(is_time), pc.struct_field(found, "whole"), "0")
    return np.asarray(pc.cast(pc.fill_null(whole, "0"), pa.int64()))


def _without_powers(texts: pa.StringArray) -> pa.StringArray:
    """Writes numbers such as 1.3627008e+12 with all their digits."""
    is_power = pc.fill_null(pc.match_substring_regex(texts, _POWER), fill_value=False)
    if not pc.any(is_power).as_py():
        return texts
    return pa.array([_plain(text) for text in texts.to_pylist()], pa.string())


def _plain(text: str | None) -> str | None:
    if text is None or "e" not in text.lower():
        return text
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return text
    return format(number, "f") if abs(number.adjusted()) < 40 else text


def _mask(found: pa.StructArray) -> np.ndarray:
    return np.asarray(pc.is_valid(found))


def _text(found: pa.StructArray, name: str) -> pa.StringArray:
    return pc.fill_null(pc.struct_field(found, name), "")


def _equals(found: pa.StructArray, name: str, text: str) -> np.ndarray:
    return np.asarray(pc.equal(_text(found, name), text))


def _integers(found: pa.StructArray, name: str, kind: type = np.int64) -> np.ndarray:
    text = _text(found, name)
    text = pc.if_else(pc.equal(text, ""), "0", text)
    return np.asarray(pc.cast(text, pa.from_numpy_dtype(kind)))


def _fraction(found: pa.StructArray, digit_count: int) -> np.ndarray:
    """Returns the first `digit_count` digits after the point as a whole number."""
    if digit_count == 0:
        return np.zeros(len(found), np.int64)
    digits = pc.utf8_slice_codeunits(_text(found, "fraction"), 0, digit_count)
    return np.asarray(pc.cast(pc.utf8_rpad(digits, digit_count, "0"), pa.int64()))


def _offsets_us(found: pa.StructArray) -> np.ndarray:
    zones = pc.dictionary_encode(_text(found, "zone"))
    by_zone = np.array([_offset_us(zone) for zone in zones.dictionary.to_pylist()], np.int64)
    return by_zone[np.asarray(zones.indices)] if len(by_zone) else np.zeros(0, np.int64)


def _offset_us(zone: str) -> int:
    if zone in ("", "Z", "UTC", "GMT"):
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return (-minutes if zone[0] == "-" else minutes) * 60 * SECOND_US
