"""Types of a pipeline file's fields: each parses its text and says what is wrong with it.

An error leaves out the file, the line, the field and the value: `load` puts these in front.
"""

from __future__ import annotations

import codecs
import re
from datetime import UTC, date, datetime, timedelta
from difflib import get_close_matches
from typing import Annotated
from zoneinfo import available_timezones

from pydantic import (
    AfterValidator,
    BeforeValidator,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
)

from windows_pipeline.aggregates import UserModules, parse_aggregate
from windows_pipeline.aggregates.column_type import parse_type
from windows_pipeline.epochs import EPOCHS
from windows_pipeline.text.forms import time_form
from windows_pipeline.text.limits import require_short
from windows_pipeline.text.problems import without_value
from windows_pipeline.windows.durations import duration_ms, duration_text

RESULT_TYPES = ("string", "bigint", "double", "boolean", "date", "timestamp")
"""The types of columns of results; decimals and lists besides."""
_PLAIN_TYPES = (*RESULT_TYPES, *EPOCHS)
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]*")
COLUMN_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_LONGEST_NAME = 100
_LONGEST_COLUMN = 255
_NO_DELIMITERS = '"\r\n\ufeff'
_NO_ENCODINGS_OF_FILES = ("idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape")
_LARGEST_RECORD_BYTES = 256 << 20
_OWNER = re.compile(r"team:[\w.-]{1,100}|[\w.+-]{1,100}@[\w-]{1,100}(\.[\w-]{1,100})+", re.ASCII)
_TAG = re.compile(r"[A-Za-z0-9_.-]{1,63}")
_URL = re.compile(r"https?://[^\s<>\"'`\\]{1,2000}")


def _identifier(value: str) -> str:
    # Names become folders of the warehouse and columns of tables: they must be plain and short.
    if len(value) > _LONGEST_NAME:
        raise ValueError(f"is longer than {_LONGEST_NAME} characters; use a shorter name")
    if not _IDENTIFIER.fullmatch(value):
        raise ValueError("is not a name; use a-z, 0-9 and _, beginning with a letter")
    return value


def _short(value: str) -> str:
    require_short(value)
    return value


def _column_name(value: str) -> str:
    if len(value) > _LONGEST_COLUMN:
        raise ValueError(f"is longer than {_LONGEST_COLUMN} characters; rename the column")
    if not COLUMN_NAME.fullmatch(value):
        raise ValueError("is not a column name; use letters, digits and _, beginning with a letter")
    return value


def _column_type(value: object) -> str:
    if value in _PLAIN_TYPES:
        return str(value)
    require_short(value)
    if not isinstance(value, str) or not re.match(r"\s*decimal\b", value):
        plain = ", ".join(repr(kind) for kind in _PLAIN_TYPES)
        raise ValueError(
            f"is not a known type; use {plain} or 'decimal(digits, digits after the point)'"
        )
    if "(" not in value:
        raise ValueError("does not say how many digits it has; write them, as in 'decimal(12,2)'")
    try:
        kind = parse_type(value)
    except ValueError:
        raise ValueError(
            "is not a decimal type; write 1 to 38 digits and how many of them follow the point, "
            "as in 'decimal(12,2)'"
        ) from None
    return f"decimal({kind.precision},{kind.scale})"


def result_type(text: str) -> str | None:
    """The text, as Spark writes it, of a type that a column of results can have; else None."""
    try:
        kind = parse_type(text)
    except ValueError:
        return None
    element = kind.fields[0][1] if kind.name == "array" else kind
    name = element.name
    if name == "decimal":
        name = f"decimal({element.precision},{element.scale})"
    elif name not in RESULT_TYPES:
        return None
    written = name if element is kind else f"array<{name}>"
    # Other forms that Spark reads, such as `decimal` without digits, are refused.
    return written if "".join(text.split()) == written else None


def _zone(value: str) -> str:
    require_short(value)
    zones = available_timezones()
    if value in zones:
        return value
    near = get_close_matches(value, zones, 1)
    raise ValueError(
        f"is not a known time zone; did you mean {near[0]!r}?"
        if near
        else "is not a known time zone; write the name of a region, such as America/New_York"
    )


def _time_format(value: str) -> str:
    time_form(value)
    return value


def _duration(value: object) -> int:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise ValueError("has no unit; write a whole number and a unit, such as '10 minutes'")
    if not isinstance(value, (str, timedelta)):
        raise ValueError("is not a duration; write a number and a unit, such as '10 minutes'")
    return parsed_ms(value)


def parsed_ms(value: str | timedelta, other_forms: str = "") -> int:
    """Parses a duration.

    Args:
        value: The duration.
        other_forms: What the error adds: what else the field may hold.

    Raises:
        ValueError: The text is not a duration, or is too long; the message leaves it out.
    """
    require_short(value)
    try:
        return duration_ms(value, "")
    except ValueError as error:
        raise ValueError(f"{without_value(str(error), '', value)}{other_forms}") from None


def _not_negative(ms: int) -> int:
    if ms < 0:
        raise ValueError("must not be negative; write '0 seconds' or more")
    return ms


def _above_zero(ms: int) -> int:
    if ms <= 0:
        raise ValueError("must be above zero; write at least '1 ms'")
    return ms


def _day(value: object) -> date:
    require_short(value)
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", value, re.ASCII):
        try:
            return date.fromisoformat(value)
        except ValueError:
            raise ValueError("is not in the calendar; write a day that exists") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise ValueError("is not a day; write it as 2013-01-31")


def _instant(value: object) -> datetime:
    fix = "write a time with its zone, as in 2013-01-01T00:00:00Z"
    require_short(value)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"is not a time; {fix}") from None
    if not isinstance(value, datetime):
        raise ValueError(f"is not a time; {fix}")
    if value.tzinfo is None:
        raise ValueError(f"has no time zone; {fix}")
    if value.microsecond % 1_000:
        raise ValueError("has a part smaller than a millisecond; write whole milliseconds")
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise ValueError("is outside the years 1 to 9999 in UTC; write another time") from None


def _aggregate(value: object, info: ValidationInfo) -> object:
    if value is None or isinstance(value, (list, dict)):
        return value  # pydantic refuses values that are not text
    text = str(value)
    require_short(text)
    try:
        parse_aggregate("result", text, modules_in(info.context), frames=True)
    except ValueError as error:
        raise ValueError(without_value(str(error), "", text)) from None
    return value


def modules_in(context: object) -> UserModules:
    """The modules of users' aggregates, of the context of a validation."""
    return context if isinstance(context, UserModules) else UserModules()


def _percent(value: object) -> float:
    text = value.strip() if isinstance(value, str) else ""
    if not text.endswith("%"):
        raise ValueError("has no percent sign; write a share as '50 %'")
    try:
        share = float(text.removesuffix("%"))
    except ValueError:
        raise ValueError("is not a percentage; write a share as '50 %'") from None
    if not 0 <= share <= 100:
        raise ValueError("must be between '0 %' and '100 %'; write such a share")
    return share


def _not_blank(value: str) -> str:
    if not value.strip():
        raise ValueError("is empty; write a text that is not blank")
    return value


def _condition(value: object) -> object:
    if isinstance(value, (bool, int, float)):
        raise ValueError(
            "is not a condition; write SQL over the result columns, as in 'record_count >= 10'"
        )
    return value


def _number_rule(value: object) -> object:
    if isinstance(value, bool):
        raise ValueError("is not a number; write a number, or SQL of one, as in 'record_count'")
    return str(value) if isinstance(value, (int, float)) else value


def _delimiter(value: str) -> str:
    if len(value) != 1:
        fix = "write one in quotes, such as ';' or, for a tab, \"\\t\""
        raise ValueError(f"is not one character; {fix}")
    if value in _NO_DELIMITERS or "\ud800" <= value <= "\udfff":
        raise ValueError("has a meaning of its own in CSV; write another character, such as ';'")
    return value


def _encoding(value: str) -> str:
    require_short(value)
    fix = "write the name of an encoding, such as utf-8, latin-1, cp1252 or utf-16"
    try:
        name = codecs.lookup(value).name
        "".encode(name)  # a LookupError for codecs of bytes, such as hex
    except (LookupError, UnicodeError, ValueError):
        raise ValueError(f"is not a known encoding; {fix}") from None
    if name in _NO_ENCODINGS_OF_FILES:
        raise ValueError(f"is not an encoding of files; {fix}")
    return name


def _record_bytes(value: int) -> int:
    if not 1 <= value <= _LARGEST_RECORD_BYTES:
        raise ValueError(f"must be 1 to {_LARGEST_RECORD_BYTES} bytes; write such a number")
    return value


def _percent_text(share: float) -> str:
    return f"{share:g} %"


def looks(comment: str, example: object, **schema: object) -> WithJsonSchema:
    """Returns what editors and the reference page show of a type of field.

    Args:
        comment: The type's name for people; types of one name are explained once.
        example: A value as the file writes it.
        schema: What JSON Schema can say of a value as the file writes it.
    """
    return WithJsonSchema({"$comment": comment, "examples": [example], **schema})


def matches(pattern: re.Pattern[str], problem: str) -> AfterValidator:
    """Returns what refuses a text that is not as a pattern says, with this problem and its fix."""

    def check(value: str) -> str:
        require_short(value)
        if not pattern.fullmatch(value):
            raise ValueError(problem)
        return value

    return AfterValidator(check)


_CALLED = r"^\s*[A-Za-z_][A-Za-z0-9_]*(:[A-Za-z_][A-Za-z0-9_]*)?\s*\("
_NAME = looks("name", "hourly", type="string", pattern=f"^{_IDENTIFIER.pattern}$")
_COLUMN = looks("column", "dep_delay", type="string", pattern=f"^{COLUMN_NAME.pattern}$")
_TYPE = looks(
    "column type",
    "decimal(12,2)",
    anyOf=[{"enum": list(_PLAIN_TYPES)}, {"type": "string", "pattern": r"^\s*decimal\s*\("}],
)
_UNITS = r"^\s*\+?\s*([0-9]+\s*[A-Za-z]+\s*)+$"
_DURATION = looks("duration", "90 minutes", type="string", pattern=_UNITS)
_ABOVE_ZERO = looks("duration above zero", "1 hour", type="string", pattern=_UNITS)
_DurationMs = Annotated[int, BeforeValidator(_duration), PlainSerializer(duration_text)]

Identifier = Annotated[str, AfterValidator(_identifier), _NAME]
ColumnReference = Annotated[str, AfterValidator(_short)]
"""The name of a column that the source declares."""
ColumnName = Annotated[str, AfterValidator(_column_name), _COLUMN]
ColumnType = Annotated[str, BeforeValidator(_column_type), _TYPE]
"""A column's type as Spark writes it."""
Zone = Annotated[str, AfterValidator(_zone), looks("time zone", "America/New_York", type="string")]
"""The name of a time zone."""
FILE_TIME = "file_modification_time"
METADATA_TIMES = ("timestamp", FILE_TIME)
"""What is known of a record besides its value, and is a time."""
_METADATA = rf"(key|timestamp|headers\..+|{FILE_TIME})"
Metadata = Annotated[
    str,
    matches(
        re.compile(_METADATA),
        f"is no metadata of a record; write key, timestamp, headers.NAME or {FILE_TIME}",
    ),
    looks("metadata", "key", type="string", pattern=f"^{_METADATA}$"),
]
"""What is known of a record besides its value."""
TimeFormat = Annotated[
    str,
    AfterValidator(_time_format),
    looks("time format", "dd.MM.yyyy HH:mm:ss", type="string"),
]
"""A pattern of times, in the letters of Spark's datetime patterns."""
Text = Annotated[str, AfterValidator(_not_blank)]
Condition = Annotated[
    Text, BeforeValidator(_condition), looks("condition", "record_count >= 10", type="string")
]
NumberRule = Annotated[
    Text,
    BeforeValidator(_number_rule),
    looks("number, or SQL of one", "record_count", type=["string", "number"]),
]
"""SQL whose value is a number, or a number as YAML writes it."""
AggregateText = Annotated[
    str,
    BeforeValidator(_aggregate),
    looks("aggregate", "avg(dep_delay)", type="string", pattern=_CALLED),
]
Delimiter = Annotated[
    str,
    AfterValidator(_delimiter),
    looks("character", ";", type="string", minLength=1, maxLength=1),
]
"""The character between the fields of CSV records."""
Encoding = Annotated[str, AfterValidator(_encoding), looks("encoding", "latin-1", type="string")]
"""An encoding's name, as Python's codecs write it."""
RecordBytes = Annotated[
    int,
    AfterValidator(_record_bytes),
    looks("number of bytes", 65536, type="integer", minimum=1, maximum=_LARGEST_RECORD_BYTES),
]
Percent = Annotated[
    float,
    BeforeValidator(_percent),
    PlainSerializer(_percent_text),
    looks("percentage", "50 %", type="string", pattern=r"%\s*$"),
]
DurationMs = Annotated[_DurationMs, AfterValidator(_not_negative), _DURATION]
PositiveDurationMs = Annotated[_DurationMs, AfterValidator(_above_zero), _ABOVE_ZERO]
Owner = Annotated[
    str,
    matches(_OWNER, "is not an owner; write an e-mail address, or a team as in 'team:operations'"),
    looks("owner", "team:operations", type="string"),
]
"""An e-mail address, or a team, as Dagster writes owners."""
Tag = Annotated[
    str,
    matches(_TAG, "is not a tag; use at most 63 letters, digits, '_', '-' and '.'"),
    looks("tag", "tier-1", type="string", pattern=f"^{_TAG.pattern}$"),
]
"""The name or value of a tag in Dagster."""
WebAddress = Annotated[
    str,
    matches(_URL, "is not an address; write one that begins with https:// or http://"),
    looks("web address", "https://wiki.example.org/delays", type="string", pattern="^https?://"),
]
Day = Annotated[
    date,
    BeforeValidator(_day),
    looks("day", "2026-01-31", type="string", pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}$"),
]
Instant = Annotated[
    datetime,
    BeforeValidator(_instant),
    looks("instant", "2026-01-31T00:00:00Z", type="string", pattern="^[0-9]{4}-"),
]
