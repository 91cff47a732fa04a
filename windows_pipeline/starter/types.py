"""Guesses the type of a column from its values and its name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.epochs import EPOCHS
from windows_pipeline.starter.instants import (
    YEAR_US,
    Instants,
    as_instants,
    evaluated,
    instants,
    is_local,
    micros_of,
)
from windows_pipeline.starter.names import is_identifier, is_money, is_time

_LOOKS = {
    "has_time": "contains(v, ':')",
    "has_zero": r"regexp_matches(v, '^\s*[+-]?0\d')",
    "boolean": "lower(trim(v)) IN ('true', 'false')",
    "bigint": r"regexp_matches(v, '^\s*[+-]?\d{1,18}\s*$')",
    "double": "try_cast(v AS DOUBLE)",
    "number": "isfinite(try_cast(v AS DOUBLE))",
    "has_power": "contains(lower(v), 'e')",
    "whole": "length(ltrim(split_part(trim(v), '.', 1), '+-'))",
    "after": "length(split_part(trim(v), '.', 2))",
}
"""What DuckDB finds in a text `v`: whether it fits a type, and the digits of a number."""
_OTHER_FORMS = {
    "time": "try_strptime(trim(v), ['%d.%m.%Y %H:%M:%S', '%d.%m.%Y %H:%M', '%d.%m.%Y', "
    "'%d/%m/%Y %H:%M:%S', '%d/%m/%Y %H:%M', '%d/%m/%Y', "
    "'%m/%d/%Y %H:%M:%S', '%m/%d/%Y %H:%M', '%m/%d/%Y']) IS NOT NULL",
    "comma": r"regexp_matches(v, '^\s*[+-]?\d+,\d+\s*$')",
}
"""Forms of times and numbers that DuckDB reads and a run does not."""
_NOTES = {
    "time": "looks like a time, and a run reads ISO 8601 only: write it as 2026-10-24T00:00:00",
    "comma": "looks like a number with a decimal comma, which a run reads as text: write a point, "
    "or declare a column {{type: double, as: \"cast(replace({name}, ',', '.') as double)\"}}",
}
_TIMES = ("timestamp", "date", *EPOCHS)
NUMBERS = ("bigint", "double")
_MONEY_DIGITS, _MONEY_PLACES = 18, 4
_DOUBLE_DIGITS = 15
"""Every decimal number with at most this many digits survives conversion to a double."""
SHARE_THAT_FITS = 0.99
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
        note: What a text looks like that a run reads as text only, and the fix.
    """

    name: str
    type: str
    texts: pa.StringArray
    example: str
    nulls: int
    unfit: int = 0
    times: Instants | None = None
    zone: str | None = None
    note: str = ""

    @property
    def is_local(self) -> bool:
        """Whether it has timestamps that name no offset."""
        if self.type != "timestamp":
            return False
        return bool((is_local(self.texts) & self.instants.is_time).any())

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
    if native is not None and native not in NUMBERS:
        return _column(name, native, texts, np.asarray(pc.is_valid(texts)))
    seen = evaluated(texts, **_LOOKS, **{kind: micros_of(kind) for kind in ("timestamp", *EPOCHS)})
    fits = {
        look: np.asarray(pc.fill_null(seen.column(look), fill_value=False))
        for look in ("boolean", "bigint", "number", "has_time", "has_zero")
    }
    numbers = _times_since_1970(name, seen)
    candidates = _text_types(name, seen, fits) if native is None else numbers
    count = len(texts) - texts.null_count
    for kind, of_kind in candidates if count else ():
        if of_kind.sum() >= count - int(count * (1 - SHARE_THAT_FITS) + 1e-9):
            return _column(name, kind, texts, of_kind)
    text = _column(name, native or "string", texts, np.asarray(pc.is_valid(texts)))
    return text if native is not None else replace(text, note=_note(name, texts))


def _note(name: str, texts: pa.StringArray) -> str:
    """Says what a column of text looks like if nearly all values have a form that no run reads."""
    count = len(texts) - texts.null_count
    seen = evaluated(texts, **_OTHER_FORMS)
    for form, note in _NOTES.items():
        if count and (pc.sum(seen.column(form)).as_py() or 0) >= count * SHARE_THAT_FITS:
            return note.format(name=name)
    return ""


_Candidates = Iterator[tuple[str, np.ndarray]]
"""Types, narrowest first, each with the values that fit."""


def _text_types(name: str, seen: pa.Table, fits: dict[str, np.ndarray]) -> _Candidates:
    times = as_instants(seen.column("timestamp")).is_time
    yield ("timestamp" if fits["has_time"].any() else "date"), times
    yield from _times_since_1970(name, seen)
    if fits["has_zero"].any():
        return  # numbers such as 00123 are names: as numbers they would lose their zeros
    yield "boolean", fits["boolean"]
    yield "bigint", fits["bigint"]
    decimal = _decimal(name, seen, fits["number"])
    if decimal is not None:
        yield decimal, fits["number"]
    yield "double", np.asarray(pc.is_valid(seen.column("double")))


def _times_since_1970(name: str, seen: pa.Table) -> _Candidates:
    if not is_identifier(name):
        for kind in EPOCHS:
            yield kind, _in_plausible_years(name, as_instants(seen.column(kind)))


def _decimal(name: str, seen: pa.Table, number: np.ndarray) -> str | None:
    """Returns a decimal type for amounts of money, and for numbers that a double would round."""
    numbers = seen.filter(pa.array(number))
    if not numbers.num_rows or pc.any(numbers.column("has_power")).as_py():
        return None
    whole, after = (pc.max(numbers.column(part)).as_py() for part in ("whole", "after"))
    if is_money(name) and 1 <= after <= _MONEY_PLACES and whole + after <= _MONEY_DIGITS:
        return f"decimal({_MONEY_DIGITS},{after})"
    if _DOUBLE_DIGITS < whole + after <= 38 and after <= 18:
        return f"decimal(38,{after})"
    return None


def _column(name: str, kind: str, texts: pa.StringArray, fits: np.ndarray) -> SampleColumn:
    times = instants(texts, kind) if kind in _TIMES else None
    if times is not None:
        fits = times.is_time
    nulls = texts.null_count
    example = texts[int(np.argmax(fits))].as_py() if fits.any() else ""
    unfit = len(texts) - nulls - int(fits.sum())
    return SampleColumn(name, kind, texts, example, nulls, unfit, times)


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
