"""Reads a text as a value of a type, or as null where it is none (rule A6)."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column
from pyspark.sql import functions as F

from windows_pipeline.aggregates.column_type import parse_type
from windows_pipeline.epochs import EPOCHS
from windows_pipeline.sources.years import YEARS, in_years, years_ms
from windows_pipeline.text.forms import TextForm
from windows_pipeline.text.limits import MAX_VALUE_BYTES

_FULL_DATE = r"^\s*[+-]?\d{4,6}-\d{1,2}-\d{1,2}"
_PLAIN_DATE = r"^[1-8]\d{3}-\d{1,2}-\d{1,2}"
"""A full date of a year that is within `YEARS` in any zone."""
_NUMBER = r"^\s*[+-]?(?=\.?\d)(\d*)\.?(\d*)(?:[eE]([+-]?\d{1,3}))?\s*$"
"""A number: whole digits, digits after the point, and a power of ten of at most 3 digits."""
_FINE_PLACES = 12
"""How many digits after the point decide an instant; further digits are cut off."""
_FINE = rf"^(\s*[+-]?\d*\.\d{{{_FINE_PLACES}}})\d+(\s*)$"
_SECOND_MICROS = 1_000_000
_POINT_ZERO = r"^\s*[+-]?\d+\.0*\s*$"
_POWER = r"^\s*[+-]?\d{1,17}(?:\.\d{0,17})?[eE]\+?\d{1,2}\s*$"
_NOT_FINITE = r"(?i)^\s*(nan|[+-]?inf(inity)?)\s*$"
_NOT_ZERO = r"^[^eE]*[1-9]"
"""The text of a number other than zero and infinity."""


def typed(text: Column, kind: str) -> Column:
    """The value of a text in a type; null if the text is not a value of the type."""
    return text if kind == "string" else _if_short(text, _of_short(text, kind))


def in_form(text: Column, form: TextForm) -> Column:
    """A text of a form, written as `typed` reads it; null if it is not of the form."""
    written = reduce(lambda each, by: F.regexp_replace(each, *by), form.replaced, text)
    return _if_short(text, F.when(text.rlike(form.pattern), written))


def _if_short(text: Column, value: Column) -> Column:
    """The value of a text; null if the text is longer than any number or time."""
    # Some patterns and Java's decimals take a number of steps that is quadratic in the length.
    return F.when(F.octet_length(text) <= F.lit(MAX_VALUE_BYTES), value)


def _of_short(text: Column, kind: str) -> Column:
    if kind == "bigint":
        return _bigint(text)
    if kind.startswith("decimal"):
        scale = parse_type(kind).scale
        is_plain = text.rlike(rf"^[+-]?\d+(\.\d{{0,{scale}}})?$")
        return F.when(is_plain | (_places(text) <= scale), text.try_cast(kind))
    if kind == "double":
        return _double(text)
    if kind in EPOCHS:
        plain, micros = _plain_micros(text, kind)
        return F.when(plain, F.timestamp_micros(micros)).otherwise(_since_1970(text, kind))
    if kind == "timestamp":
        value = text.try_cast("timestamp")
        # If a date is missing, Spark takes the day of the run.
        return F.when(text.rlike(_PLAIN_DATE), value).when(text.rlike(_FULL_DATE), in_years(value))
    if kind == "date":
        value = text.try_cast("date")
        # Spark's date cast ignores any text after the date.
        is_date = _of_short(text, "timestamp").isNotNull()
        return F.when(text.rlike(f"{_PLAIN_DATE}$"), value).when(is_date, in_years(value))
    return text.try_cast(kind)


def _bigint(text: Column) -> Column:
    """The exact whole number of a text; null if the text is none."""
    # pandas writes integers of a column with nulls as '5.0' or '1.0E7'.
    exact = text.try_cast("decimal(38,17)")
    whole = exact.try_cast("bigint")
    other = F.when(
        text.rlike(_POINT_ZERO), F.substring_index(text, ".", 1).try_cast("bigint")
    ).when(text.rlike(_POWER) & (whole == exact), whole)
    # For each cast that fails Spark makes an exception, with its message.
    without_point = F.when(~F.contains(text, F.lit(".")), text.try_cast("bigint"))
    return F.coalesce(without_point, other)


def _double(text: Column) -> Column:
    """The double nearest to a number; null if the number is too large, or rounds to zero."""
    # Adding 0.0 turns -0.0 into 0.0; the two are equal, but differ in the sums' last bit.
    number = text.try_cast("double") + F.lit(0.0)
    is_lost = F.abs(number).isin(0.0, float("inf")) & text.rlike(_NOT_ZERO)
    # Java also takes '7d', '7f' and '0x1p3' as numbers.
    is_javas = F.right(F.rtrim(text), F.lit(1)).isin(*"dDfF") & ~text.rlike(_NOT_FINITE)
    is_hexadecimal = F.contains(text, F.lit("x")) | F.contains(text, F.lit("X"))
    return F.when(~(is_lost | is_javas | is_hexadecimal), number)


def _plain_micros(text: Column, kind: str) -> tuple[Column, Column]:
    """Whether a text is a whole number of the years 1970 to 2286, and its microseconds if so."""
    epoch = EPOCHS[kind]
    # A bigint holds any such number, even of nanoseconds.
    is_plain = text.rlike(rf"^[0-8]?\d{{1,{epoch.digits - 1}}}$")
    number = text.try_cast("bigint")
    if epoch.per_second > _SECOND_MICROS:
        return is_plain, F.call_function("div", number, F.lit(epoch.per_second // _SECOND_MICROS))
    return is_plain, number * F.lit(_SECOND_MICROS // epoch.per_second)


def _since_1970(text: Column, kind: str) -> Column:
    """The instant of a number of time units since 1970, rounded down to microseconds."""
    cut = F.regexp_replace(text, _FINE, "$1$2")
    exact = F.when(_places(cut) <= _FINE_PLACES, cut.try_cast(f"decimal(36,{_FINE_PLACES})"))
    whole = F.floor(exact)
    per_second = EPOCHS[kind].per_second
    if per_second > _SECOND_MICROS:
        micros = F.floor(whole / F.lit(per_second // _SECOND_MICROS).cast("decimal(4,0)"))
    else:
        # Apart, as Spark would round the product: its decimals have 38 digits, as the difference.
        part = (exact - whole).cast(f"decimal({_FINE_PLACES + 1},{_FINE_PLACES})")
        unit_micros = F.lit(_SECOND_MICROS // per_second).cast("decimal(7,0)")
        micros = whole * unit_micros + F.floor(part * unit_micros)
    micros = micros.try_cast("bigint")
    first_ms, last_ms = years_ms(*YEARS)
    is_in_years = micros.between(first_ms * 1_000, last_ms * 1_000 + 999)
    return F.when(is_in_years, F.timestamp_micros(micros))


def _places(text: Column) -> Column:
    """How many digits after the point a number needs; null if the text is not a number."""
    whole, after, exponent = (F.regexp_extract(text, _NUMBER, part) for part in (1, 2, 3))
    digits = F.concat(whole, after)
    zeros_at_end = F.length(digits) - F.length(F.rtrim(digits, F.lit("0")))
    # No cast of '', which fails: see `_bigint`.
    shift = F.when(exponent == "", 0).otherwise(exponent.try_cast("int"))
    decimals = F.length(after) - zeros_at_end - shift
    # Zero would need a negative number of digits, as all its digits are zeros at the end.
    return F.when(text.rlike(_NUMBER), F.when(digits.rlike("[1-9]"), decimals).otherwise(0))
