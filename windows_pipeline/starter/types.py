"""Guesses the type of a column from its values and its name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
import pyarrow as pa

from windows_pipeline.epochs import EPOCHS
from windows_pipeline.starter.instants import (
    evaluated,
    instants,
    is_local,
    literal,
    written,
)
from windows_pipeline.starter.names import is_identifier, is_money, is_time
from windows_pipeline.text.forms import TextForm, form_of, number_form

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
}
"""What DuckDB finds in texts `v`: how many fit a type, and the most digits of a number."""
_TIME = re.compile(
    r"(?:(?P<year>\d{4})|\d\d?)(?P<sign>[./-])\d\d?(?P=sign)(?(year)\d\d?|\d{4})"
    r"(?P<time>(?P<blank>[ T])\d\d?:\d\d(?P<second>:\d\d(?:(?P<point>[.,])\d{1,6})?)?"
    r"(?P<half> ?[AaPp][Mm])?)?"
)
"""A time in another form than ISO 8601, of which the first value of a column is an example."""
_SIGNS = ((",", ""), (".", " "), (".", "'"), (",", "."), (",", " "), (",", "'"), (".", ","))
"""Signs of numbers: before the digits after the point, and between thousands."""
_OF_SIGNS = {
    signs: f"nullif(regexp_matches(v, {literal(number_form(*signs).pattern)}), false)"
    for signs in _SIGNS
}
_OF_POINTS = {
    "pointed": "nullif(contains(v, '.'), false)",
    "grouped": r"nullif(regexp_matches(v, '^\s*[+-]?\d{1,3}(\.\d{3})+\s*$'), false)",
}
"""What is null where a number has other signs, no point, or no points before three digits alone."""
_TWO_TIMES = (
    "looks like a time, and its values fit {} as well as {}: take a sample with a day after the "
    "12th, or declare the format in the file"
)
_TWO_NUMBERS = (
    "looks like a number, and its commas may be decimal or stand between thousands: declare "
    '{type: double, decimal: ","} or {type: bigint, thousands: ","} in the file'
)
Named = TypeVar("Named")
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
        form: The form of texts of times and numbers, as the file declares it: `format`, or
            `decimal` and `thousands`; empty for the forms that types have.
        plain: The values as types read them; None for the values themselves.
        note: What a text looks like that may be read in two ways, and the fix.
    """

    name: str
    type: str
    texts: pa.StringArray
    times: np.ndarray | None = None
    zone: str | None = None
    form: Mapping[str, str] = field(default_factory=dict)
    plain: pa.StringArray = None
    note: str = ""

    def __post_init__(self) -> None:
        """Writes the values as types read them."""
        if self.plain is None:
            object.__setattr__(self, "plain", self.texts)

    @property
    def declared(self) -> dict[str, str]:
        """The column's fields in a pipeline's file."""
        zone = {} if self.zone is None else {"zone": self.zone}
        return {"type": self.type, **self.form, **zone}

    @property
    def text_form(self) -> TextForm | None:
        """The form of its texts; None for the forms that types have."""
        return form_of(*map(self.form.get, ("format", "decimal", "thousands")))

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
        return bool((is_local(self.plain) & ~np.isnat(self.known_times)).any())

    @property
    def described_type(self) -> str:
        """The type with its form; of times that name no offset, the zone in which they are read."""
        form = [f"{name} {text!r}" for name, text in self.form.items()]
        zone = [self.zone or "as UTC"] if self.is_local else []
        return ", ".join((self.type, *form, *zone))

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
        """Returns the column with another type, and the zone of its times; a text has no form."""
        if kind == "string":
            return SampleColumn(self.name, kind, self.texts)
        has_times = kind in ("timestamp", "date", *EPOCHS)
        times = instants(self.plain, kind, zone) if has_times else None
        return replace(self, type=kind, times=times, zone=zone)

    def in_form(self, form: Mapping[str, str]) -> SampleColumn:
        """Returns the column with texts of a form."""
        found = replace(self, form=form)
        if found.text_form is None:
            return found
        (plain,) = evaluated(self.texts, plain=written(found.text_form)).columns
        return replace(found, plain=plain.combine_chunks())


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
    return _in_a_form(column, enough) if count else column


def _in_a_form(column: SampleColumn, enough: int) -> SampleColumn:
    """Returns a column of times or numbers in another form than types have, if it is one.

    Where two forms fit that mean different values, the column is text, with a note.
    """
    fitting = []
    for form in _formats(column.example.strip()):
        found = column.in_form({"format": form}).as_type("timestamp" if "m" in form else "date")
        if np.count_nonzero(~np.isnat(found.known_times)) >= enough:
            fitting.append((form, found))
    if fitting:
        first, found = fitting[0]
        other = next((form for form, _ in fitting if form[0] != first[0]), None)
        return found if other is None else replace(column, note=_TWO_TIMES.format(first, other))
    signs = [each for each, count in _counts(column, _OF_SIGNS).items() if count >= enough]
    if {each[0] for each in signs if "," in each} == {",", "."}:
        return replace(column, note=_TWO_NUMBERS)
    return _with_signs(column, *signs[0], enough) if signs else column


def _with_signs(column: SampleColumn, decimal: str, thousands: str, enough: int) -> SampleColumn:
    """Returns a column of numbers with these signs; the column itself if they are no numbers."""
    form = {"decimal": decimal} if decimal != "." else {}
    found = column.in_form(form | ({"thousands": thousands} if thousands else {}))
    (looks,) = evaluated(found.plain, **_LOOKS).to_pylist()
    numbers = (each for each, fits in _types(found, looks) if each.is_number and fits >= enough)
    return next(numbers, column)


def with_common_signs(columns: Mapping[str, SampleColumn]) -> dict[str, SampleColumn]:
    """Returns columns in which a point is no decimal one where other columns have decimal commas.

    The number 1.234 of such a sample is 1234, if no number of its column speaks against it.
    """
    if not any("decimal" in column.form for column in columns.values()):
        return dict(columns)
    found = dict(columns)
    for name, column in columns.items():
        if column.is_number and not column.form:
            pointed, grouped = _counts(column, _OF_POINTS).values()
            if pointed == grouped > 0:
                found[name] = _with_signs(column, ",", ".", grouped)
    return found


def _counts(column: SampleColumn, expressions: Mapping[Named, str]) -> dict[Named, int]:
    """How many values each expression has that are not null."""
    counted = {f"n{n}": f"count({sql})" for n, sql in enumerate(expressions.values())}
    (found,) = evaluated(column.texts, **counted).to_pylist()
    return dict(zip(expressions, found.values(), strict=True))


def _formats(example: str) -> Iterator[str]:
    """The formats of times that an example may have, those with two digits of each part first."""
    found = _TIME.fullmatch(example)
    if found is None:
        return
    sign = found["sign"]
    for day, month, hour in (("dd", "MM", "HH"), ("d", "M", "H")):
        time = ""
        if found["time"]:
            half = " a" if (found["half"] or "").startswith(" ") else "a" if found["half"] else ""
            blank = "'T'" if found["blank"] == "T" else " "
            time = f"{blank}{hour.lower() if half else hour}:mm"
            time += ":ss" if found["second"] else ""
            time += f"{found['point']}SSSSSS" if found["point"] else ""
            time += half
        if found["year"]:
            yield f"yyyy{sign}{month}{sign}{day}{time}"
            continue
        yield f"{day}{sign}{month}{sign}yyyy{time}"
        if sign != ".":
            yield f"{month}{sign}{day}{sign}yyyy{time}"


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
