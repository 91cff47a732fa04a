"""Values that a check compares columns with: read from the file, and written as SQL for Spark."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from windows_pipeline.config.expectations.regexes import MOST_CHARACTERS, require_portable
from windows_pipeline.config.fields import Day, Instant, epoch_ms, looks
from windows_pipeline.text.limits import require_short

_MOST_VALUES = 1_000
_MOST_ROWS = 2**53
_LONGEST_VALUE = 1_000_000
_SHARE_DIGITS = 6
_DAY: TypeAdapter[date] = TypeAdapter(Day)
_INSTANT: TypeAdapter[datetime] = TypeAdapter(Instant)
_MOST_DIGITS = 18
_DIGITS_OF_DECIMAL = 38
Value = bool | int | float | str | date | datetime
"""A value of a column, as Python has it."""
NUMBERS = ("bigint", "double", "decimal")
TIMES = ("date", "timestamp")
COMPARABLE = (*NUMBERS, "string", "boolean", *TIMES)
"""The types whose values a check can compare."""


def type_name(column_type: str) -> str:
    """Returns a column type's name without digits: 'decimal' of 'decimal(12,2)'."""
    return column_type.partition("(")[0]


def column_sql(name: str) -> str:
    """Returns a column's name in quotes."""
    return "`" + name.replace("`", "``") + "`"


def text_sql(text: str) -> str:
    r"""Returns a text as a literal of Spark's SQL, in which no character has a meaning.

    All but letters, digits and blanks are written as ``\uXXXX``: also quotes, ``$`` and braces,
    which Spark and Great Expectations would replace.
    """
    return "'" + "".join(map(_character_sql, text)) + "'"


def _character_sql(character: str) -> str:
    if character == " " or (character.isascii() and character.isalnum()):
        return character
    code = ord(character)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def read_value(value: object, column_type: str) -> Value:
    """Returns a value of the file as a value of a column's type.

    Raises:
        ValueError: The value does not fit the type: what is wrong and the fix, without the value.
    """
    name = type_name(column_type)
    fix = f"but the column is of type {column_type}"
    match value:
        case bool() if name == "boolean":
            return value
        case int() | float() if name in NUMBERS and not isinstance(value, bool):
            return _number(value)
        case str() if name == "string":
            return value
    if name == "date":
        day: date = _parsed(_DAY, value)
        return day
    if name == "timestamp":
        instant: datetime = _parsed(_INSTANT, value)
        return instant
    if name in NUMBERS:
        raise ValueError(f"is not a number, {fix}; write a number")
    if name == "boolean":
        raise ValueError(f"is not true or false, {fix}; write either")
    raise ValueError(f"is not text, {fix}; put it in quotes")


def value_sql(value: object, column_type: str) -> str:
    """Returns a value of the file as a literal that fits a column.

    Raises:
        ValueError: See `read_value`.
    """
    match read_value(value, column_type):
        case bool() as truth:
            return "TRUE" if truth else "FALSE"
        case str() as text:
            return text_sql(text)
        case datetime() as instant:
            return f"timestamp_millis({epoch_ms(instant)}L)"
        case date() as day:
            return f"DATE'{day.isoformat()}'"
        case int() | float() as number:
            return _number_sql(number)


def _number(number: float) -> int | float:
    if isinstance(number, float) and not math.isfinite(number):
        raise ValueError("is not finite; write a number")
    if isinstance(number, int) and abs(number) >= 10**_DIGITS_OF_DECIMAL:
        raise ValueError(f"has more than {_DIGITS_OF_DECIMAL} digits; write fewer")
    return number


def _number_sql(number: float) -> str:
    """Writes a decimal, which Spark compares by value; a double where it has too many digits."""
    if isinstance(number, int):
        return f"{number}BD"
    exact = Decimal(repr(number))
    whole, _, fraction = f"{exact:f}".lstrip("-").partition(".")
    fits = len(whole) <= _MOST_DIGITS and len(fraction) <= _MOST_DIGITS
    return f"{exact:f}BD" if fits else f"{number!r}D"


def _parsed(kind: TypeAdapter[Any], value: object) -> Any:
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        cause = error.errors()[0].get("ctx", {}).get("error")
        raise ValueError(str(cause or "is not valid")) from None


def _bound(value: object) -> object:
    require_short(value)
    if isinstance(value, bool) or not isinstance(value, (int, float, str, date)):
        raise ValueError("is not a bound; write a number, a day or a time with its zone")
    return value


def _values(value: object) -> object:
    if not isinstance(value, list) or not value:
        raise ValueError("is not a list of values; write one, as in [a, b]")
    if len(value) > _MOST_VALUES:
        raise ValueError(f"has more than {_MOST_VALUES:,} values; write fewer")
    for each in value:
        require_short(each)
        if not isinstance(each, (bool, int, float, str, date)):
            raise ValueError("holds what is not a value; write texts, numbers, days or times")
    return value


def _share(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1:
        raise ValueError("is not a share; write a number above 0 and up to 1, as 0.95")
    if round(value, _SHARE_DIGITS) != value:
        raise ValueError(f"has more than {_SHARE_DIGITS} digits after the point; write fewer")
    return float(value)


def _whole(most: int) -> Callable[[object], int]:
    def whole(value: object) -> int:
        if type(value) is not int or not 0 <= value <= most:
            raise ValueError(f"is not a whole number from 0 to {most}; write such a number")
        return value

    return whole


def _regex(value: object) -> object:
    if isinstance(value, str):
        require_portable(value)
    return value


_PLAIN_VALUES = [{"type": name} for name in ("number", "string", "boolean")]
Bound = Annotated[
    Any, BeforeValidator(_bound), looks("number, day or instant", 0, type=["number", "string"])
]
"""A number, a day or an instant; `value_sql` says whether it fits a column."""
Values = Annotated[
    list[Any],
    BeforeValidator(_values),
    looks(
        "list of values",
        ["a", "b"],
        type="array",
        items={"anyOf": _PLAIN_VALUES},
        minItems=1,
        maxItems=_MOST_VALUES,
    ),
]
Share = Annotated[
    float,
    BeforeValidator(_share),
    looks("share", 0.95, type="number", exclusiveMinimum=0, maximum=1),
]
Rows = Annotated[
    int,
    BeforeValidator(_whole(_MOST_ROWS)),
    looks("number of rows", 1000, type="integer", minimum=0, maximum=_MOST_ROWS),
]
"""A number of rows or of distinct values."""
Length = Annotated[
    int,
    BeforeValidator(_whole(_LONGEST_VALUE)),
    looks("number of characters", 3, type="integer", minimum=0, maximum=_LONGEST_VALUE),
]
Regex = Annotated[
    str,
    BeforeValidator(_regex),
    looks(
        "regular expression",
        "^[A-Z]{3}$",
        type="string",
        minLength=1,
        maxLength=MOST_CHARACTERS,
    ),
]
