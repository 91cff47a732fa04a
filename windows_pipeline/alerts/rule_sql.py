"""Compiles an expression, which is text from a file, to SQL that is safe to run.

Rules, filters, checks, aggregates and derived columns have such expressions. The text is parsed,
the tree is checked against the grammar, and SQL is written from the tree. The text itself never
reaches Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from windows_pipeline.alerts.parsing import (
    RuleError,
    canonical,
    columns_read,
    errors_of,
    parse_expression,
)
from windows_pipeline.alerts.typed_sql import ValueSql, case_of, kind_of, landed, pair_of, quoted
from windows_pipeline.alerts.value_sql import written

__all__ = [
    "EPISODE_MS",
    "RuleError",
    "ValueSql",
    "canonical",
    "case_of",
    "columns_read",
    "compile_column",
    "compile_rule",
    "compile_value",
    "pair_of",
    "struct_fields",
]

EPISODE_MS = "episode_ms"
"""A column that only severities read: how long an alert's episode has lasted, up to the end of the
alert's window."""
_STRUCT = "struct<"


def compile_rule(
    text: str, columns: Mapping[str, str], want: Literal["boolean", "number"]
) -> ValueSql:
    """Compiles a rule's expression to Spark SQL.

    The expression may use the columns, literals, comparisons, ``and``/``or``/``not``,
    arithmetic, ``between``, ``in`` with literals, ``is null``, ``case when``, casts, an interval
    added to a timestamp, and a list of functions.
    Their values depend on the row alone, so every run gives the same answer (rule H1).
    A division by zero gives null, so that a window without records does not fail a run.

    Args:
        text: The expression, in Spark's SQL.
        columns: The columns that it may name, unqualified, each with its Spark type. Of a column
            of type ``struct<name:type,...>`` it names the fields.
        want: The kind that its value must have.

    Returns:
        SQL for a Spark session in UTC, with all names quoted and every operand in parentheses;
        null where a number or time does not fit its type, and the condition that one does not.

    Raises:
        RuleError: The text is not a single expression, uses something that the grammar does not
            list, names an unknown column, combines operands of different kinds, needs a decimal
            of more than 38 digits, or has a value of another kind than wanted.
    """
    found = _compiled(text, tuple(columns.items()))
    if found.kind != want:
        fix = {"boolean": "compare it, as in 'x > 3'", "number": "write a number, as in 'x'"}
        raise RuleError(f"must be a {want}, not a {found.kind}; {fix[want]}", text)
    return found


def compile_value(
    text: str, columns: Mapping[str, str], key: str = "", *, may_be_struct: bool = False
) -> ValueSql:
    """Compiles an aggregate's expression over the columns of one record.

    Args:
        text: The expression, as of `compile_rule`.
        columns: The columns that it may name, each with its Spark type.
        key: That one of the columns whose value records have in the column `key`; empty for none.
        may_be_struct: Whether it may be ``struct(...)`` of such expressions.

    Raises:
        RuleError: As of `compile_rule`; or the expression has no value of a record.
    """
    found = _compiled(text, tuple(columns.items()), key=key, may_be_struct=may_be_struct)
    if found.type in ("null", "interval"):
        raise RuleError("is no value of a record; name a column", text)
    return found


def compile_column(
    text: str, columns: Mapping[str, str], column_type: str | None, table: str
) -> ValueSql:
    """Compiles a derived column's expression.

    Args:
        text: The expression, as of `compile_rule`.
        columns: The columns that it may name, unqualified, each with its Spark type.
        column_type: The type of the derived column; None where it reads the value as a text.
        table: The struct that has the columns.

    Raises:
        RuleError: As of `compile_rule`; or the value is of another kind than the type.
    """
    found = _compiled(text, tuple(columns.items()), table)
    wanted, fix = "string", "leave out a cast, or these fields"
    reason = "but format, zone, decimal and thousands say how to read a text, of kind string"
    if column_type is not None:
        wanted = kind_of(column_type) or "number"  # the other types count units since 1970
        reason = f"but the column's type is of kind {wanted}"
        fix = "declare a type that fits, or cast it"
    if found.kind != wanted:
        raise RuleError(f"is of kind {found.kind}, {reason}; {fix}", text)
    return found


def struct_fields(kind: str) -> dict[str, str]:
    """The fields of a type ``struct<name:type,...>`` of plain types; none of another type."""
    if not kind.startswith(_STRUCT):
        return {}
    fields = kind.removeprefix(_STRUCT).removesuffix(">").split(",")
    return {name: of_field for name, _, of_field in (field.partition(":") for field in fields)}


@lru_cache(maxsize=1_000)
def _compiled(
    text: str,
    columns: tuple[tuple[str, str], ...],
    table: str = "",
    *,
    key: str = "",
    may_be_struct: bool = False,
) -> ValueSql:
    """Compiles an expression once: a step uses each several times, and compiling is slow.

    Args:
        text: The expression.
        columns: The columns with their types; of a struct, the expression names the fields.
        table: The struct of a landed record, which has the columns; empty for other columns.
        key: See `compile_value`.
        may_be_struct: See `compile_value`.
    """
    readable: dict[str, ValueSql] = {}
    for name, kind in columns:
        if table:
            readable[name] = landed(ValueSql(quoted(table, name), kind))
        elif fields := struct_fields(kind):
            readable |= {field: ValueSql(quoted(name, field), of) for field, of in fields.items()}
        else:
            readable[name] = ValueSql(quoted("key" if name == key else name), kind)
    with errors_of(text):
        return written(parse_expression(text), readable, may_be_struct=may_be_struct)
