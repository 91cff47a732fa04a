"""Compiles an alert rule, which is text from a file, to SQL that is safe to run.

The text is parsed, the tree is checked against the grammar of rules, and SQL is written from the
tree. The text itself never reaches Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Literal

from windows_pipeline.alerts.parsing import columns_read, errors_of, parse_expression
from windows_pipeline.alerts.rule_grammar import ExpressionCheck, RuleError
from windows_pipeline.alerts.value_sql import ValueSql, column_of, written

__all__ = ["EPISODE_MS", "RuleError", "columns_read", "compile_rule", "struct_fields"]

EPISODE_MS = "episode_ms"
"""A column that only severities read: how long an alert's episode has lasted, up to the end of the
alert's window."""
_STRUCT = "struct<"


def compile_rule(
    text: str, columns: Mapping[str, str], want: Literal["boolean", "number"]
) -> ValueSql:
    """Compiles a rule's expression to Spark SQL.

    The expression may use the columns, literals, comparisons, ``and``/``or``/``not``,
    arithmetic, ``between``, ``in`` with literals, ``is null``, ``case when``, casts
    between numbers and times, an interval added to a timestamp, and a list of functions.
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
    return _compiled(text, tuple(columns.items()), want)


@lru_cache(maxsize=1_000)
def _compiled(
    text: str, columns: tuple[tuple[str, str], ...], want: Literal["boolean", "number"]
) -> ValueSql:
    """Compiles an expression once: a step uses each rule several times, and compiling is slow."""
    with errors_of(text):
        tree = parse_expression(text)
        readable, struct_of = _readable(columns)
        found = ExpressionCheck(readable).kind(tree)
        if found != want:
            fix = {"boolean": "compare it, as in 'x > 3'", "number": "write a number, as in 'x'"}
            raise RuleError(f"must be a {want}, not a {found}; {fix[want]}")
        named = {
            name: column_of(name, kind, struct_of.get(name)) for name, kind in readable.items()
        }
        return written(tree, named)


def struct_fields(kind: str) -> dict[str, str]:
    """The fields of a type ``struct<name:type,...>`` of plain types; none of another type."""
    if not kind.startswith(_STRUCT):
        return {}
    fields = kind.removeprefix(_STRUCT).removesuffix(">").split(",")
    return {name: of_field for name, _, of_field in (field.partition(":") for field in fields)}


def _readable(columns: Iterable[tuple[str, str]]) -> tuple[dict[str, str], dict[str, str]]:
    """The columns that an expression may name, and the structs of those that are fields."""
    readable: dict[str, str] = {}
    struct_of: dict[str, str] = {}
    for name, kind in columns:
        fields = struct_fields(kind)
        readable |= fields or {name: kind}
        struct_of |= dict.fromkeys(fields, name)
    return readable, struct_of
