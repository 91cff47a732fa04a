"""Evaluates a definition's filter for one record, without Spark (rule A9).

This module evaluates the plain part of the grammar as Spark does: comparisons, `and`, `or`, `not`,
`in`, `between`, `is`, `coalesce`, `if`, `case` and arithmetic. Any other part needs Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from math import isnan
from operator import add, mul, sub
from typing import Any

from sqlglot import exp

from windows_pipeline.alerts.rule_sql import parse_expression

_MOST_DIGITS = 18
"""Spark rounds sums and products of longer decimals; here they are exact."""
_INT_END = 2**31
"""From this number on, Spark's result depends on the operands' types, int or bigint."""
_DATE_CHARACTERS = 10


_Record = Mapping[str, object]
_Form = Callable[[exp.Expr, _Record], Any]


class _OnlySparkTellsError(Exception):
    """The filter has a part whose value only Spark knows."""


def passes(where: str, record: Mapping[str, object]) -> bool | None:
    """Whether a record passes a filter; None if only Spark can decide.

    Args:
        where: The filter, as the pipeline's file has it; it must have been compiled before, so
            that it follows the grammar.
        record: The record's values, by the source's names: instants have a zone.
    """
    try:
        return _value(parse_expression(where), record) is True
    except _OnlySparkTellsError:
        return None


def _value(node: exp.Expr, record: _Record) -> Any:
    """The value of an expression; null is None."""
    form = _FORMS.get(type(node))
    if form is None:
        raise _OnlySparkTellsError
    return form(node, record)


def _column(node: exp.Expr, record: _Record) -> Any:
    if node.name not in record:
        raise _OnlySparkTellsError
    return record[node.name]


def _not(node: exp.Expr, record: _Record) -> bool | None:
    found = _value(node.this, record)
    return None if found is None else not found


def _in(node: exp.Expr, record: _Record) -> bool | None:
    value = _value(node.this, record)
    return _any_of([_equal(value, _value(item, record)) for item in node.expressions])


def _is(node: exp.Expr, record: _Record) -> bool:
    return _value(node.this, record) is _value(node.expression, record)


def _coalesce(node: exp.Expr, record: _Record) -> Any:
    values = (_value(each, record) for each in (node.this, *node.expressions))
    return next((value for value in values if value is not None), None)


def _literal(node: exp.Expr, _: _Record) -> str | int | float | Decimal:
    text = str(node.this)
    if node.args["is_string"]:
        return text
    if "e" in text.lower():
        return float(text)
    return Decimal(text) if "." in text else int(text)


def _joined(node: exp.Expr, record: _Record) -> bool | None:
    first, second = _value(node.this, record), _value(node.expression, record)
    if isinstance(node, exp.Or):
        return _any_of([first, second])
    without = _any_of([None if each is None else not each for each in (first, second)])
    return None if without is None else not without


def _any_of(values: Sequence[bool | None]) -> bool | None:
    if any(values):
        return True
    return None if None in values else False


def _between(node: exp.Expr, record: _Record) -> bool | None:
    value, low, high = (_value(node.args[name], record) for name in ("this", "low", "high"))
    bounds = [_compared(low, value), _compared(value, high)]
    if any(order is not None and order > 0 for order in bounds):
        return False
    return None if None in bounds else True


def _chosen(node: exp.Expr, record: _Record) -> Any:
    """The value of the first branch whose condition is true, or the other value."""
    branches = node.args["ifs"] if isinstance(node, exp.Case) else [node]
    for branch in branches:
        if _value(branch.this, record) is True:
            return _value(branch.args["true"], record)
    other = node.args.get("default" if isinstance(node, exp.Case) else "false")
    return None if other is None else _value(other, record)


def _arithmetic(node: exp.Expr, record: _Record) -> Any:
    """The result of an operation on numbers; null where an operand is, and for a division by 0."""
    first, second = _value(node.this, record), _value(node.expression, record)
    if first is None or second is None:
        return None
    kinds = {type(first), type(second)}
    # Spark decides the scale of a decimal result.
    if not kinds <= {int, float, Decimal} or (Decimal in kinds and float not in kinds):
        raise _OnlySparkTellsError
    if isinstance(node, exp.Div):
        return float(first) / float(second) if second != 0 else None
    if float in kinds:
        first, second = float(first), float(second)
    result = _OPERATIONS[type(node)](first, second)
    if isinstance(result, int) and abs(result) >= _INT_END:
        raise _OnlySparkTellsError
    return result


def _negative(node: exp.Expr, record: _Record) -> Any:
    value = _value(node.this, record)
    if value is not None and type(value) not in (int, float, Decimal):
        raise _OnlySparkTellsError
    return None if value is None else -value


def _equal(first: Any, second: Any) -> bool | None:
    order = _compared(first, second)
    return None if order is None else order == 0


def _null_safe_equal(node: exp.Expr, record: _Record) -> bool:
    first, second = _value(node.this, record), _value(node.expression, record)
    if first is None or second is None:
        return first is second
    return _compared(first, second) == 0


def _compared(first: Any, second: Any) -> int | None:
    """Below 0, 0 or above 0 as the first is less, equal or more; None if one is null."""
    if first is None or second is None:
        return None
    first, second = _comparable(first, second)
    return int(first > second) - int(first < second)


def _comparable(first: Any, second: Any) -> tuple[Any, Any]:
    """Both values as values that Python orders as Spark does."""
    kinds = {type(first), type(second)}
    if kinds == {str}:
        return first, second
    if kinds <= {int, float, Decimal}:
        if float in kinds:  # NaN is equal to itself and more than all others
            return _rank(float(first)), _rank(float(second))
        for each in (first, second):
            if isinstance(each, Decimal) and len(each.as_tuple().digits) > _MOST_DIGITS:
                raise _OnlySparkTellsError
        return first, second
    if kinds <= {str, date, datetime}:
        return _instant(first, kinds), _instant(second, kinds)
    raise _OnlySparkTellsError


def _rank(number: float) -> tuple[bool, float]:
    return (True, 0.0) if isnan(number) else (False, number)


def _instant(value: Any, kinds: set[type]) -> datetime:
    """A time as an instant: a date is its midnight in UTC, as is a text without a zone."""
    if isinstance(value, str):
        if datetime not in kinds and len(value) > _DATE_CHARACTERS:
            raise _OnlySparkTellsError
        value = datetime.fromisoformat(value)
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value if value.tzinfo is not None else value.replace(tzinfo=UTC)


def _compare(holds: Callable[[int], bool]) -> _Form:
    def compare(node: exp.Expr, record: _Record) -> bool | None:
        order = _compared(_value(node.this, record), _value(node.expression, record))
        return None if order is None else holds(order)

    return compare


_OPERATIONS: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.Add: add,
    exp.Sub: sub,
    exp.Mul: mul,
}
_FORMS: dict[type[exp.Expr], _Form] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node, _: bool(node.this),
    exp.Null: lambda _, __: None,
    exp.Paren: lambda node, record: _value(node.this, record),
    exp.And: _joined,
    exp.Or: _joined,
    exp.Not: _not,
    exp.In: _in,
    exp.Is: _is,
    exp.Between: _between,
    exp.Coalesce: _coalesce,
    exp.If: _chosen,
    exp.Case: _chosen,
    exp.Neg: _negative,
    exp.Div: _arithmetic,
    **dict.fromkeys(_OPERATIONS, _arithmetic),
    exp.EQ: _compare(lambda order: order == 0),
    exp.NEQ: _compare(lambda order: order != 0),
    exp.GT: _compare(lambda order: order > 0),
    exp.GTE: _compare(lambda order: order >= 0),
    exp.LT: _compare(lambda order: order < 0),
    exp.LTE: _compare(lambda order: order <= 0),
    exp.NullSafeEQ: _null_safe_equal,
}
