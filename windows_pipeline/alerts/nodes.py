"""The nodes of sqlglot's trees: their names for people, their arguments, and literals."""

from __future__ import annotations

import re
from datetime import datetime
from difflib import get_close_matches
from zoneinfo import available_timezones

from sqlglot import exp

from windows_pipeline.alerts.parsing import RuleError

_NUMBER_TEXT = re.compile(r"[0-9]{0,18}(\.[0-9]{0,18})?(e[+-]?[0-9]{1,2})?", re.IGNORECASE)
_TIME_TEXT = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
_WHOLE_TEXT = re.compile(r"-?[0-9]{1,9}")
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400, "WEEK": 604_800}
_UNITS = {f"{unit}{s}": seconds for unit, seconds in _SECONDS.items() for s in ("", "S")}
# Flags that sqlglot sets for other dialects; they change nothing in Spark's SQL.
_SILENT_FLAGS: dict[type[exp.Expr], frozenset[str]] = {
    exp.Div: frozenset({"safe"}),
    exp.TsOrDsToDate: frozenset({"safe"}),
    exp.Least: frozenset({"ignore_nulls"}),
    exp.Greatest: frozenset({"ignore_nulls"}),
    exp.Concat: frozenset({"safe"}),
}
_SPARK_NAMES: dict[type[exp.Expr], str] = {
    exp.ArraySize: "size()",
    exp.AtTimeZone: "from_utc_timestamp()",
    exp.Bracket: "[...]",
    exp.EndsWith: "endswith()",
    exp.StartsWith: "startswith()",
    exp.TsOrDsToDate: "to_date()",
    exp.BitwiseAnd: "'&'",
    exp.BitwiseOr: "'|'",
    exp.BitwiseXor: "'^'",
    exp.BitwiseLeftShift: "'<<'",
    exp.BitwiseRightShift: "'>>'",
    exp.DPipe: "'||'",
}


def named(node: exp.Expr) -> str:
    """The node's operator or function, as people know it."""
    if isinstance(node, exp.Anonymous):
        return f"{node.name.lower()}()"
    if type(node) in _SPARK_NAMES:
        return _SPARK_NAMES[type(node)]
    if isinstance(node, exp.Func) and not isinstance(node, (exp.And, exp.Or, exp.Case)):
        return f"{node.sql_name().lower()}()"
    return f"{type(node).__name__.lower()!r}"


def require_only(node: exp.Expr, *names: str) -> None:
    """Refuses a node with an argument besides these."""
    for name, value in node.args.items():
        is_set = value not in (None, False, [])
        if is_set and name not in names and name not in _SILENT_FLAGS.get(type(node), ()):
            raise RuleError(
                f"{node.sql('spark')}: {named(node)} takes no {name!r} in an expression; remove it"
            )


def require_literal(node: exp.Expr) -> None:
    """Refuses a literal that is too long for a bigint, or that Spark would not take as it is."""
    text = node.name
    if not node.args["is_string"]:
        if not _NUMBER_TEXT.fullmatch(text):
            raise RuleError(f"{text} has too many digits; use at most 18")
    elif not text.isprintable() or "\\" in text:
        raise RuleError(f"{text!r} holds a backslash or an unprintable character; remove it")
    elif "${" in text:
        # Spark substitutes configuration and environment variables, even within a literal.
        raise RuleError(f"{text!r} holds '${{', which Spark would replace; remove it")


def bounded_whole(node: exp.Expr, argument: exp.Expr | None, least: int, most: int) -> int:
    """The value of an argument that must be a whole number: Spark would refuse others in a run.

    Args:
        node: The function.
        argument: The argument; None if it is missing.
        least: The least number.
        most: The largest number.

    Raises:
        RuleError: The argument is no whole number within the bounds.
    """
    number = None if argument is None else whole_number(argument)
    if number is None or not least <= number <= most:
        raise RuleError(
            f"{node.sql('spark')} needs a whole number from {least} to {most:,} there; write such "
            "a number"
        )
    return number


def whole_number(node: exp.Expr) -> int | None:
    """The value of a literal of up to 9 digits, with or without a minus; None for other nodes."""
    bare = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(bare, exp.Literal) or bare.is_string or not _WHOLE_TEXT.fullmatch(bare.name):
        return None
    return int(bare.name) if bare is node else -int(bare.name)


def require_time(node: exp.Expr) -> None:
    """Refuses text that is not a time when the file is loaded: Spark would refuse it in a run."""
    fix = "write it as '2013-07-01' or '2013-07-01 12:30:00'"
    if not isinstance(node, exp.Literal) or not _TIME_TEXT.fullmatch(node.name):
        raise RuleError(f"{node.sql('spark')} is not a time; {fix}")
    try:
        datetime.fromisoformat(node.name)
    except ValueError:
        raise RuleError(f"{node.sql('spark')} is not a time; {fix}") from None


def require_zone(node: exp.Expr) -> None:
    """Refuses what is not the name of a time zone."""
    if not isinstance(node, exp.Literal) or node.this not in available_timezones():
        near = get_close_matches(node.name, available_timezones(), 1)
        example = "write a time zone such as 'America/New_York'"
        fix = f"did you mean {near[0]!r}?" if near else example
        raise RuleError(f"{node.sql('spark')} is not a known time zone; {fix}")


def seconds_of(interval: exp.Expr) -> int:
    """The length of an interval, without its sign.

    Raises:
        RuleError: The interval is not a whole number of one unit.
    """
    amount, unit = interval.this, interval.args.get("unit")
    whole = isinstance(amount, exp.Literal) and _WHOLE_TEXT.fullmatch(amount.name)
    if not whole or type(unit) is not exp.Var or unit.name.upper() not in _UNITS:
        raise RuleError(
            f"{interval.sql('spark')} is not a plain interval; write a whole number and one unit, "
            "such as interval 90 minutes"
        )
    return abs(int(amount.name)) * _UNITS[unit.name.upper()]
