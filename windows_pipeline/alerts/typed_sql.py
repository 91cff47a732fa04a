"""SQL of values with their types, and with the condition under which each fails.

A number is a bigint, a double, or a decimal that is wide enough for every result of an operation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sqlglot import exp

from windows_pipeline.alerts.parsing import RuleError

Kind = Literal["boolean", "number", "string", "timestamp", "date", "interval", "list", "null"]
"""What expressions distinguish of a type: values of one kind can be compared."""
_KINDS: dict[str, Kind] = {
    "string": "string",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "interval": "interval",
    "null": "null",
    **dict.fromkeys(("bigint", "int", "double", "float", "decimal"), "number"),
}
_LIST = re.compile(r"array<(.*)>")
_MOST_DIGITS = 38
_DIGITS_OF_BIGINT = 20
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")


@dataclass(frozen=True, slots=True)
class ValueSql:
    """An expression as SQL for a Spark session in UTC.

    Attributes:
        sql: The value; null where it fails.
        type: The value's type, as Spark writes it.
        fails: SQL that is true for a row for which the expression fails, else false; None if it
            can't fail.
    """

    sql: str
    type: str
    fails: str | None = None

    @property
    def kind(self) -> Kind | None:
        """The kind of the value; None if expressions cannot use it."""
        return kind_of(self.type)


NULL = ValueSql("NULL", "null")


def kind_of(column_type: str) -> Kind | None:
    """The kind of a type's values; None if expressions cannot use them."""
    if element_type(column_type) is not None:
        return "list"
    # Spark compares decimals with other numbers by value.
    return _KINDS.get(column_type.partition("(")[0])


def element_type(column_type: str) -> str | None:
    """The type of the elements of a list; None for other types."""
    listed = _LIST.fullmatch(column_type)
    return listed[1] if listed else None


def quoted(*path: str) -> str:
    """A column, or the field of a struct, as SQL."""
    return ".".join(f"`{name.replace('`', '``')}`" for name in path)


def case_of(branches: Sequence[tuple[ValueSql, ValueSql]], otherwise: ValueSql = NULL) -> ValueSql:
    """The value of the first branch whose condition is true; it alone is computed.

    Args:
        branches: Conditions with values of one type.
        otherwise: The value where no condition is true.
    """
    sql, fails = "CASE", "CASE"
    for condition, value in branches:
        sql += f" WHEN {condition.sql} THEN {value.sql}"
        if condition.fails:
            fails += f" WHEN {condition.fails} THEN TRUE"
        fails += f" WHEN {condition.sql} THEN {value.fails or 'FALSE'}"
    found = ValueSql(f"({sql} ELSE {otherwise.sql} END)", branches[0][1].type)
    if not any_fails([otherwise, *(value for branch in branches for value in branch)]):
        return found
    return replace(found, fails=f"({fails} ELSE {otherwise.fails or 'FALSE'} END)")


def pair_of(value: ValueSql, by: ValueSql, arrival: Mapping[str, str]) -> ValueSql:
    """A value with what decides whether it is an aggregate's result; null where that is null.

    Args:
        value: The value.
        by: What decides.
        arrival: The columns that order arrival, which decides among equal ones, with their types.
    """
    order = ", ".join(f"'{name}', {name}" for name in arrival)
    pair = f"NAMED_STRUCT('value', {value.sql}, 'by', NAMED_STRUCT('by', {by.sql}, {order}))"
    of_order = ",".join(f"{name}:{kind}" for name, kind in arrival.items())
    kind = f"struct<value:{value.type},by:struct<by:{by.type},{of_order}>>"
    return ValueSql(f"IF({by.sql} IS NOT NULL, {pair}, NULL)", kind, any_fails([value, by]))


def tried(sql: str, kind: str, operands: Sequence[ValueSql]) -> ValueSql:
    """The SQL of an operation that is null where the result does not fit."""
    known = " AND ".join(f"{operand.sql} IS NOT NULL" for operand in operands)
    return ValueSql(sql, kind, either_fails(any_fails(operands), f"({known} AND {sql} IS NULL)"))


def any_fails(values: Iterable[ValueSql]) -> str | None:
    """The condition that one of the values fails."""
    found = list(dict.fromkeys(value.fails for value in values if value.fails))
    return f"({' OR '.join(found)})" if len(found) > 1 else found[0] if found else None


def either_fails(first: str | None, second: str | None) -> str | None:
    """The condition that one of two conditions is true; None is never true."""
    return f"({first} OR {second})" if first and second else first or second


def as_type(kind: str, value: ValueSql) -> ValueSql:
    """The value, cast to a type that holds it."""
    if value.type in (kind, "null"):
        return replace(value, type=kind)
    return ValueSql(f"CAST({value.sql} AS {kind.upper()})", kind, value.fails)


def alike(values: Sequence[ValueSql]) -> list[ValueSql]:
    """The values, cast to one type that holds all of them."""
    known = [value for value in values if value.type != "null"]
    kinds = {value.type for value in known}
    if len(kinds) == 1:
        kind = kinds.pop()
    elif "double" in kinds:
        kind = "double"
    else:
        sizes = [digits(value) for value in known]
        scale = max(scale for _, scale in sizes)
        kind = decimal_type(max(precision - of for precision, of in sizes) + scale, scale)
    return [as_type(kind, value) for value in values]


def result_type(operator: type[exp.Expr], left: ValueSql, right: ValueSql) -> str:
    """The type that holds every result of an operator exactly; double if an operand is double."""
    kinds = {left.type, right.type}
    if "double" in kinds:
        return "double"
    if kinds == {"bigint"}:
        return "bigint"
    (precision, scale), (other_precision, other_scale) = digits(left), digits(right)
    if operator is exp.Mul:
        return decimal_type(precision + other_precision + 1, scale + other_scale)
    whole, other_whole = precision - scale, other_precision - other_scale
    most = max(scale, other_scale)
    if operator is exp.Mod:
        return decimal_type(max(min(whole, other_whole) + most, 1), most)
    return decimal_type(max(whole, other_whole) + most + 1, most)


def digits(value: ValueSql) -> tuple[int, int]:
    """Precision and scale of a decimal, or of the decimal that holds an integer."""
    decimal = _DECIMAL.fullmatch(value.type)
    if decimal:
        return int(decimal[1]), int(decimal[2])
    is_literal = value.sql[:-1].isdecimal()
    return (len(value.sql) - 1 if is_literal else _DIGITS_OF_BIGINT), 0


def decimal_type(precision: int, scale: int) -> str:
    """The name of a decimal type.

    Raises:
        RuleError: Spark has no decimal of so many digits.
    """
    if precision > _MOST_DIGITS:
        raise RuleError(
            f"its result needs {precision} digits, and a decimal has at most {_MOST_DIGITS}; make "
            "an operand a double, as in cast(x as double)"
        )
    return f"decimal({precision},{scale})"


def within_years(time: str) -> str:
    """Null beyond the year 9999, where Spark's functions of times may overflow."""
    return f"(CASE WHEN YEAR({time}) BETWEEN 1 AND 9999 THEN {time} END)"


def landed(column: ValueSql) -> ValueSql:
    """A column of a landed record: a time may lie beyond the year 9999, unlike a stored one."""
    if column.kind not in ("date", "timestamp"):
        return column
    return tried(within_years(column.sql), column.type, [column])
