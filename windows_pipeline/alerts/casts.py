"""Casts: which are allowed, and their SQL."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from windows_pipeline.alerts.nodes import require_time
from windows_pipeline.alerts.parsing import RuleError
from windows_pipeline.alerts.typed_sql import Kind, ValueSql, tried, within_years

_FULL_DATE = "'^ *[+-]?[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}'"
"""Of a text without a full date Spark takes the day of the run."""
_CASTS: dict[exp.DType, tuple[str, Kind]] = {
    exp.DType.TEXT: ("STRING", "string"),
    exp.DType.BOOLEAN: ("BOOLEAN", "boolean"),
    exp.DType.BIGINT: ("BIGINT", "number"),
    exp.DType.INT: ("INT", "number"),
    exp.DType.DOUBLE: ("DOUBLE", "number"),
    exp.DType.DATE: ("DATE", "date"),
    exp.DType.TIMESTAMP: ("TIMESTAMP", "timestamp"),
    exp.DType.TIMESTAMPTZ: ("TIMESTAMP", "timestamp"),
}
"""The types that a value can be cast to, with Spark's name; a decimal has digits besides."""
CAST_FROM: dict[Kind, frozenset[Kind]] = {
    "string": frozenset({"number", "boolean", "date", "timestamp", "string"}),
    "number": frozenset({"number", "string"}),
    "boolean": frozenset({"boolean", "string"}),
    "date": frozenset({"date", "timestamp", "string"}),
    "timestamp": frozenset({"timestamp", "date", "string"}),
}
"""The kinds to which a value of a kind can be cast."""


def cast(node: exp.Expr, value: ValueSql) -> ValueSql:
    """The value of a cast, or of a `try_cast`, which does not fail.

    Args:
        node: The cast.
        value: The value that is cast.

    Raises:
        RuleError: A value of that kind cannot be cast to that type.
    """
    name, kind = _cast_type(node)
    if value.kind is None or kind not in CAST_FROM.get(value.kind, ()):
        fix = "cast numbers and booleans to and from string, and times to times or string"
        raise RuleError(f"{node.sql('spark')} casts a {value.kind} to a {kind}; {fix}")
    if name.lower() == value.type:
        return value
    is_tried, is_text = bool(node.args.get("safe")), value.type == "string"
    is_time = kind in ("date", "timestamp")
    is_known_time = is_text and is_time and isinstance(node.this, exp.Literal) and not is_tried
    if is_known_time:
        require_time(node.this)
    if is_text and is_time and not is_known_time:
        # Spark's date cast ignores any text after the date.
        is_time_text = f"TRY_CAST({value.sql} AS TIMESTAMP) IS NOT NULL"
        in_years = within_years(f"TRY_CAST({value.sql} AS {name})")
        is_full = f"{value.sql} RLIKE {_FULL_DATE}"
        sql = f"(CASE WHEN {is_full} AND {is_time_text} THEN {in_years} END)"
    elif is_time or kind == "string" or (name == "DOUBLE" and not is_text):
        return ValueSql(f"CAST({value.sql} AS {name})", name.lower(), value.fails)
    else:
        sql = f"TRY_CAST({value.sql} AS {name})"
    if name == "INT":
        sql, name = f"CAST({sql} AS BIGINT)", "BIGINT"
    found = tried(sql, name.lower(), [value])
    return replace(found, fails=value.fails) if is_tried else found


def _cast_type(node: exp.Expr) -> tuple[str, Kind]:
    """The type that a cast names, as Spark writes it, and its kind."""
    to = node.args["to"]
    sizes = [parameter.name for parameter in to.expressions]
    if to.this is exp.DType.DECIMAL and len(sizes) == 2 and all(map(str.isdecimal, sizes)):
        precision, scale = map(int, sizes)
        if 1 <= precision <= 38 and scale <= precision:
            return f"DECIMAL({precision},{scale})", "number"
    if to.this not in _CASTS or sizes:
        fix = "cast to string, boolean, bigint, int, double, decimal(12,2), date or timestamp"
        raise RuleError(f"{node.sql('spark')}: expressions cannot cast to that type; {fix}")
    return _CASTS[to.this]
