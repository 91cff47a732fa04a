"""Guesses the type of a column from its values and its name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.epochs import EPOCHS
from windows_pipeline.starter.instants import YEAR_US, Instants, has_time_of_day, instants, is_local
from windows_pipeline.starter.names import is_identifier, is_money, is_time

_BOOLEAN = r"(?i)^\s*(true|false)\s*$"
_WHOLE = r"^\s*[+-]?(0|[1-9]\d{0,18})\s*$"
_LEADING_ZERO = r"^\s*[+-]?0\d+\s*$"
_NUMBER = r"^\s*[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?\s*$"
_NOT_FINITE = r"(?i)^\s*(nan|[+-]?inf(inity)?)\s*$"
_PLACES = r"^\s*[+-]?(?P<whole>\d*)(?:\.(?P<after>\d*))?\s*$"
_TIMES = ("timestamp", "date", *EPOCHS)
NUMBERS = ("bigint", "double")
_MONEY_DIGITS = 18
_DOUBLE_DIGITS = 15
"""Every decimal number with at most this many digits survives conversion to a double."""
_SHARE_THAT_FITS = 0.99
_LARGEST_DOUBLE = 1.7976931348623157e308
_PLAUSIBLE = {True: (1990, 2100), False: (2000, 2060)}
"""The years of numbers since 1970, by whether the column's name says that it is a time."""
_LONGEST_UNNAMED_YEARS = 10


@dataclass(frozen=True, slots=True)
class SampleColumn:
    """A column of a sample, with the type that its values fit.

    Attributes:
        name: Its name.
        type: The type, in a pipeline's words.
        texts: The values.
        example: A value, the first that fits.
        nulls: How many records have no value.
        unfit: How many values do not fit the type: a pipeline rejects their records.
        times: The values as times, if the type is a time's.
        zone: The zone of timestamps that name no offset; None for UTC.
    """

    name: str
    type: str
    texts: pa.StringArray
    example: str
    nulls: int
    unfit: int = 0
    times: Instants | None = None
    zone: str | None = None

    @property
    def is_local(self) -> bool:
        """Whether it has timestamps that name no offset."""
        return self.type == "timestamp" and bool(is_local(self.texts).any())

    @property
    def described_type(self) -> str:
        """The type; of times that name no offset with the zone in which they are read."""
        return f"{self.type}, {self.zone or 'as UTC'}" if self.is_local else self.type

    @property
    def is_number(self) -> bool:
        """Whether values can be added."""
        return self.type in NUMBERS or self.type.startswith("decimal")

    @property
    def has_values(self) -> bool:
        """Whether any record has a value."""
        return self.nulls < len(self.texts)

    @property
    def instants(self) -> Instants:
        """The values as times.

        Raises:
            TypeError: The type is not a time's.
        """
        if self.times is None:
            raise TypeError(f"column {self.name!r} must hold times, but is {self.type}")
        return self.times

    def as_type(self, kind: str, zone: str | None = None) -> SampleColumn:
        """Returns the column with another type of a time, or with a zone."""
        times = instants(self.texts, kind, zone)
        unfit = len(self.texts) - self.nulls - int(times.is_time.sum())
        return replace(self, type=kind, times=times, zone=zone, unfit=unfit)


def guess_columns(
    texts: Mapping[str, pa.StringArray], natives: Mapping[str, str]
) -> dict[str, SampleColumn]:
    """Guesses the type of each column.

    Args:
        texts: The values of each column.
        natives: The types that the files declare.
    """
    return {name: guess_type(name, values, natives.get(name)) for name, values in texts.items()}


def guess_type(name: str, texts: pa.StringArray, native: str | None = None) -> SampleColumn:
    """Guesses a column's type: the narrowest that at least 99 of 100 values fit.

    Args:
        name: The column's name: a name of a time makes numbers since 1970 likelier.
        texts: The values; null where a record has none.
        native: The type that a Parquet file declares.
    """
    count = len(texts) - texts.null_count
    if native is not None and native not in ("bigint", "double"):
        return _column(name, native, texts, np.asarray(pc.is_valid(texts)))
    if count == 0:
        return SampleColumn(name, native or "string", texts, "", len(texts))
    candidates = (*_times(name, texts), *(() if native else _plain(texts)), *_numbers(name, texts))
    for kind, fits in candidates:
        if fits.sum() >= count - int(count * (1 - _SHARE_THAT_FITS) + 1e-9):
            return _column(name, _declared(kind, native), texts, fits)
    return _column(name, native or "string", texts, np.asarray(pc.is_valid(texts)))


def _declared(kind: str, native: str | None) -> str:
    """Returns the type to declare: a Parquet column of numbers stays what the file says."""
    return kind if native is None or kind in EPOCHS else native


def _column(name: str, kind: str, texts: pa.StringArray, fits: np.ndarray) -> SampleColumn:
    nulls = texts.null_count
    example = texts[int(np.argmax(fits))].as_py() if fits.any() else ""
    times = instants(texts, kind) if kind in _TIMES else None
    if times is not None:
        fits = times.is_time
    return SampleColumn(
        name, kind, texts, example, nulls, len(texts) - nulls - int(fits.sum()), times
    )


def _times(name: str, texts: pa.StringArray) -> list[tuple[str, np.ndarray]]:
    """Returns the types of times that values may have, with the values that fit."""
    iso = instants(texts, "timestamp").is_time
    if iso.any():
        return [("timestamp" if has_time_of_day(texts) else "date", iso)]
    if is_identifier(name):
        return []
    return [(kind, _in_plausible_years(name, instants(texts, kind))) for kind in EPOCHS]


def _in_plausible_years(name: str, times: Instants) -> np.ndarray:
    """Returns which numbers since 1970 are likely times; none where they spread too far."""
    is_named = is_time(name)
    first, last = ((year - 1970) * YEAR_US for year in _PLAUSIBLE[is_named])
    fits = times.is_time & (times.us >= first) & (times.us < last)
    if is_named or not fits.any():
        return fits
    us = times.us[fits]
    spread = us.max() - us.min()
    in_order = np.mean(np.diff(us) >= 0) if len(us) > 1 else 0.0
    # Without a name, only numbers that grow with the file are times.
    is_likely = in_order >= 0.9 and 0 < spread < _LONGEST_UNNAMED_YEARS * YEAR_US
    return fits if is_likely else np.zeros_like(fits)


def _plain(texts: pa.StringArray) -> list[tuple[str, np.ndarray]]:
    if _matches(texts, _LEADING_ZERO).any():
        # Numbers such as 00123 are names: as numbers they would lose their zeros.
        return [("string", np.asarray(pc.is_valid(texts)))]
    return [("boolean", _matches(texts, _BOOLEAN))]


def _numbers(name: str, texts: pa.StringArray) -> list[tuple[str, np.ndarray]]:
    whole = _matches(texts, _WHOLE) & _fits_bigint(texts)
    number = _matches(texts, _NUMBER)
    either = number | _matches(texts, _NOT_FINITE)
    found = [("bigint", whole)]
    if number.any():
        decimal = _decimal(name, texts, number)
        found += [(decimal, number)] if decimal else []
        found.append(("double", either & _fits_double(texts, number)))
    return found


def _fits_bigint(texts: pa.StringArray) -> np.ndarray:
    """Whether whole numbers have fewer than 19 digits: each of them fits 64 bits."""
    digits = pc.utf8_length(pc.utf8_ltrim(pc.utf8_trim_whitespace(texts), "+-"))
    return np.asarray(pc.fill_null(pc.less(digits, 19), fill_value=False))


def _fits_double(texts: pa.StringArray, number: np.ndarray) -> np.ndarray:
    """Whether numbers lie within a double's range, and only zeros are read as zero."""
    plain = pc.if_else(pa.array(number), pc.utf8_ltrim(pc.utf8_trim_whitespace(texts), "+"), "0")
    values = np.abs(np.asarray(pc.cast(pc.fill_null(plain, "0"), pa.float64())))
    has_digit = _matches(texts, r"^[^eE]*[1-9]")
    fits: np.ndarray = (values <= _LARGEST_DOUBLE) & ~((values == 0.0) & has_digit & number)
    return fits


def _decimal(name: str, texts: pa.StringArray, number: np.ndarray) -> str | None:
    """Returns a decimal type for amounts of money, and for numbers that a double would round."""
    found = pc.extract_regex(pc.if_else(pa.array(number), texts, None), _PLACES)
    if found.null_count > len(texts) - int(number.sum()):
        return None  # a number with a power of ten
    whole = pc.max(pc.utf8_length(pc.struct_field(found, "whole"))).as_py() or 0
    decimals = pc.utf8_length(pc.fill_null(pc.struct_field(found, "after"), ""))
    most, least = (
        (pc.max(decimals).as_py() or 0),
        (pc.min(decimals.filter(pa.array(number))).as_py() or 0),
    )
    if is_money(name) and 1 <= most == least <= 4 and whole + most <= _MONEY_DIGITS:
        return f"decimal({_MONEY_DIGITS},{most})"
    if _DOUBLE_DIGITS < whole + most <= 38 and most <= 18:
        return f"decimal(38,{most})"
    return None


def _matches(texts: pa.StringArray, pattern: str) -> np.ndarray:
    return np.asarray(pc.fill_null(pc.match_substring_regex(texts, pattern), fill_value=False))
