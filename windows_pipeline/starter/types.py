"""Guesses the type of a column from its values and its name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from windows_pipeline.epochs import EPOCHS
from windows_pipeline.starter.instants import evaluated, instants, is_local
from windows_pipeline.starter.names import is_identifier, is_money, is_time

_IS_NUMBER = "isfinite(try_cast(v AS DOUBLE))"
_LOOKS = {
    "count": "count(v)",
    "has_time": "bool_or(contains(v, ':'))",
    "has_zero": r"bool_or(regexp_matches(v, '^\s*[+-]?0\d'))",
    "boolean": "count_if(lower(trim(v)) IN ('true', 'false'))",
    "bigint": r"count_if(regexp_matches(v, '^\s*[+-]?\d{1,18}\s*$'))",
    "number": f"count_if({_IS_NUMBER})",
    "double": "count(try_cast(v AS DOUBLE))",
    "has_power": f"bool_or(contains(lower(v), 'e')) FILTER ({_IS_NUMBER})",
    "whole": f"max(length(ltrim(split_part(trim(v), '.', 1), '+-'))) FILTER ({_IS_NUMBER})",
    "after": f"max(length(split_part(trim(v), '.', 2))) FILTER ({_IS_NUMBER})",
    "as_time": "count(try_strptime(trim(v), ['%d.%m.%Y %H:%M:%S', '%d.%m.%Y %H:%M', '%d.%m.%Y', "
    "'%d/%m/%Y %H:%M:%S', '%d/%m/%Y %H:%M', '%d/%m/%Y', "
    "'%m/%d/%Y %H:%M:%S', '%m/%d/%Y %H:%M', '%m/%d/%Y']))",
    "as_comma": r"count_if(regexp_matches(v, '^\s*[+-]?\d+,\d+\s*$'))",
}
"""What DuckDB finds in texts `v`: how many fit a type, and the most digits of a number."""
_NOTES = {
    "as_time": "looks like a time, and a run reads ISO 8601 only: write it as 2026-10-24T00:00:00",
    "as_comma": "looks like a number with a decimal comma, which a run reads as text: write a "
    "point, or declare a column "
    "{{type: double, as: \"cast(replace({name}, ',', '.') as double)\"}}",
}
"""Notes on forms of times and numbers that DuckDB reads and a run does not."""
NUMBERS = ("bigint", "double")
_MONEY_DIGITS, _MONEY_PLACES = 18, 4
_DOUBLE_DIGITS = 15
"""Every decimal number with at most this many digits survives conversion to a double."""
SHARE_THAT_FITS = 0.99
_NAMED_YEARS = np.array(["1990", "2100"], "datetime64[us]")
_UNNAMED_YEARS = np.array(["2000", "2060"], "datetime64[us]")
"""The years of numbers since 1970, by whether the column's name says that it is a time."""
_LONGEST_UNNAMED = np.timedelta64(3_652, "D")


@dataclass(frozen=True, slots=True)
class SampleColumn:
    """A column of a sample, with the type that nearly all its values fit.

    Attributes:
        name: Its name.
        type: The type, in a pipeline's words.
        texts: The values.
        times: The values as `datetime64[us]`, NaT for none, if the type is a time's.
        zone: The zone of timestamps that name no offset; None for UTC.
        note: What a text looks like that a run reads as text only, and the fix.
    """

    name: str
    type: str
    texts: pa.StringArray
    times: np.ndarray | None = None
    zone: str | None = None
    note: str = ""

    @property
    def example(self) -> str:
        """The first value; empty if there is none."""
        values = self.texts.drop_null()
        return str(values[0]) if len(values) else ""

    @property
    def is_local(self) -> bool:
        """Whether it has timestamps that name no offset."""
        if self.type != "timestamp":
            return False
        return bool((is_local(self.texts) & ~np.isnat(self.known_times)).any())

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
        return bool(self.texts.null_count < len(self.texts))

    @property
    def known_times(self) -> np.ndarray:
        """The times of a column that has some.

        Raises:
            TypeError: The type is not a time's.
        """
        if self.times is None:
            raise TypeError(f"column {self.name!r} must hold times, but is {self.type}")
        return self.times

    def as_type(self, kind: str, zone: str | None = None) -> SampleColumn:
        """Returns the column with another type, and the zone of its times."""
        has_times = kind in ("timestamp", "date", *EPOCHS)
        times = instants(self.texts, kind, zone) if has_times else None
        return replace(self, type=kind, times=times, zone=zone)


def guess_type(name: str, texts: pa.StringArray, native: str | None = None) -> SampleColumn:
    """Guesses a column's type: the narrowest that at least 99 of 100 values fit.

    Args:
        name: The column's name: a name of a time makes numbers since 1970 likelier.
        texts: The values; null where a record has none.
        native: The type that a Parquet file declares.
    """
    column = SampleColumn(name, "string", texts)
    if native is not None and native not in NUMBERS:
        return column.as_type(native)
    (looks,) = evaluated(texts, **_LOOKS).to_pylist()
    count = looks["count"]
    enough = count - int(count * (1 - SHARE_THAT_FITS) + 1e-9)
    candidates = _types(column, looks) if native is None else _times_since_1970(column)
    for found, fitting in candidates if count else ():
        if fitting >= enough:
            return found
    if native is not None:
        return column.as_type(native)
    notes = (note.format(name=name) for form, note in _NOTES.items() if looks[form] >= enough)
    return replace(column, note=next(notes, "") if count else "")


_Candidates = Iterator[tuple[SampleColumn, int]]
"""The column as types, narrowest first, each with the number of values that fit."""


def _types(column: SampleColumn, looks: dict[str, int]) -> _Candidates:
    as_time = column.as_type("timestamp" if looks["has_time"] else "date")
    yield as_time, int(np.count_nonzero(~np.isnat(as_time.known_times)))
    if looks["double"]:
        yield from _times_since_1970(column)
    if looks["has_zero"]:
        return  # numbers such as 00123 are names: as numbers they would lose their zeros
    yield column.as_type("boolean"), looks["boolean"]
    yield column.as_type("bigint"), looks["bigint"]
    decimal = _decimal(column.name, looks)
    if decimal is not None:
        yield column.as_type(decimal), looks["number"]
    yield column.as_type("double"), looks["double"]


def _times_since_1970(column: SampleColumn) -> _Candidates:
    if is_identifier(column.name):
        return
    is_named = is_time(column.name)
    first, last = _NAMED_YEARS if is_named else _UNNAMED_YEARS
    for kind in EPOCHS:
        as_time = column.as_type(kind)
        times = as_time.known_times
        times = times[(times >= first) & (times < last)]
        # Without a name, only numbers that grow with the file are times.
        if is_named or _grows(times):
            yield as_time, len(times)


def _grows(times: np.ndarray) -> bool:
    if len(times) < 2:
        return False
    spread = times.max() - times.min()
    in_order = np.mean(np.diff(times) >= np.timedelta64(0))
    return bool(in_order >= 0.9 and np.timedelta64(0) < spread < _LONGEST_UNNAMED)


def _decimal(name: str, looks: dict[str, int]) -> str | None:
    """Returns a decimal type for amounts of money, and for numbers that a double would round."""
    if not looks["number"] or looks["has_power"]:
        return None
    whole, after = looks["whole"], looks["after"]
    if is_money(name) and 1 <= after <= _MONEY_PLACES and whole + after <= _MONEY_DIGITS:
        return f"decimal({_MONEY_DIGITS},{after})"
    if _DOUBLE_DIGITS < whole + after <= 38 and after <= 18:
        return f"decimal(38,{after})"
    return None
