"""Compiles an expression over a record's columns to SQL whose type and failures are known.

The grammar is that of rules. A rule may leave Spark to choose types; the value of an expression
becomes a column of tables, so each operator has one type here: bigint, double, or a decimal that
is wide enough for every result. No expression raises: where a number or time does not fit its
type, the value is null, and a condition says so (rule G3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp
from sqlglot.errors import SqlglotError

from windows_pipeline.alerts.rule_grammar import (
    COMPARISONS,
    ExpressionCheck,
    RuleError,
    whole_number,
)
from windows_pipeline.alerts.rule_sql import parse_expression
from windows_pipeline.text.limits import MAX_TEXT, shown

_MOST_DIGITS = 38
_MOST_SQL = 100_000
_DIGITS_OF_BIGINT = 20
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_LEAST_BIGINT = "(-9223372036854775807L - 1L)"
_SIGNS: dict[type[exp.Expr], str] = {
    exp.And: "AND",
    exp.Or: "OR",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "<=>",
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Mod: "%",
}
_TRIED: dict[type[exp.Expr], str] = {
    exp.Add: "try_add",
    exp.Sub: "try_subtract",
    exp.Mul: "try_multiply",
}
_PARTS_OF_TIME: dict[type[exp.Expr], str] = {
    exp.Hour: "hour",
    exp.Minute: "minute",
    exp.Day: "day",
    exp.DayOfWeek: "dayofweek",
    exp.Month: "month",
    exp.Year: "year",
    exp.UnixMillis: "unix_millis",
    exp.UnixSeconds: "unix_seconds",
}
_NAMES: dict[type[exp.Expr], str] = {
    exp.Coalesce: "coalesce",
    exp.Least: "least",
    exp.Greatest: "greatest",
    exp.Floor: "floor",
    exp.Ceil: "ceil",
}


@dataclass(frozen=True, slots=True)
class ValueSql:
    """An expression as SQL for a Spark session in UTC.

    Attributes:
        sql: The value; null where it fails.
        type: The value's type, as Spark writes it.
        fails: SQL that is true for a record for which the expression fails, else false; None if
            it can't fail.
    """

    sql: str
    type: str
    fails: str | None = None


def compile_value(text: str, columns: Mapping[str, str]) -> ValueSql:
    """Compiles an expression over the columns of one record.

    Args:
        text: The expression, in Spark's SQL; see `rule_sql.compile_expression`.
        columns: The columns that it may name, each with its Spark type.

    Raises:
        RuleError: The text is not an expression of the grammar, names an unknown column, or
            needs a decimal of more than 38 digits.
    """
    return _compiled(text, tuple(columns.items()))


@lru_cache(maxsize=1_000)
def canonical(text: str) -> str:
    """Returns one text for all expressions that differ only in blanks and the case of keywords.

    Raises:
        RuleError: The text is not a single expression.
    """
    return parse_expression(text).sql(dialect="spark", comments=False)


@lru_cache(maxsize=1_000)
def _compiled(text: str, columns: tuple[tuple[str, str], ...]) -> ValueSql:
    try:
        tree = parse_expression(text)
        called = tree.find(exp.AggFunc)
        if called is not None:
            raise RuleError(
                f"{called.sql('spark')} is an aggregate within an expression, which is over the "
                "columns of one record; write it as an aggregate of its own"
            )
        ExpressionCheck(dict(columns)).kind(tree)
        found = _Typed(dict(columns)).value(tree)
    except RuleError as error:
        raise RuleError(f"{_quoted(text)}: {error}") from None
    except (RecursionError, SqlglotError):
        raise RuleError(f"{_quoted(text)}: is nested too deeply; simplify it") from None
    if found.type in ("null", "interval"):
        raise RuleError(f"{_quoted(text)}: is no value of a record; name a column")
    return found


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= MAX_TEXT else shown(text)


class _Typed:
    """Writes the SQL of each node of a tree that the grammar has checked."""

    def __init__(self, columns: Mapping[str, str]) -> None:
        self._columns = columns
        self._writers: dict[type[exp.Expr], Callable[[exp.Expr], ValueSql]] = {
            exp.Column: lambda node: ValueSql(f"`{node.name}`", self._columns[node.name]),
            exp.Literal: _literal,
            exp.Boolean: lambda node: ValueSql(str(node.this).upper(), "boolean"),
            exp.Null: lambda _: ValueSql("NULL", "null"),
            exp.Interval: lambda node: ValueSql(node.sql("spark"), "interval"),
            exp.Paren: lambda node: self.value(node.this),
            exp.Not: lambda node: self._boolean("(NOT {})", node.this),
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            **dict.fromkeys((exp.And, exp.Or, *COMPARISONS), self._joined),
            **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Mod), self._arithmetic),
            exp.Div: self._division,
            exp.Neg: lambda node: self._sign("(-{})", node),
            exp.Abs: lambda node: self._sign("abs({})", node),
            exp.Round: self._round,
            **dict.fromkeys((exp.Floor, exp.Ceil), self._whole),
            **dict.fromkeys(_PARTS_OF_TIME, self._part_of_time),
            exp.TsOrDsToDate: lambda node: self._cast_to("DATE", "date", node.this),
            exp.AtTimeZone: self._local_time,
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.Case: self._case,
            exp.If: self._if,
            **dict.fromkeys((exp.Coalesce, exp.Least, exp.Greatest), self._one_of),
        }

    def value(self, node: exp.Expr) -> ValueSql:
        found = self._writers[type(node)](node)
        if len(found.sql) + len(found.fails or "") > _MOST_SQL:
            raise RuleError("is too long for Spark; split it up")
        return found

    def _values(self, *nodes: exp.Expr) -> list[ValueSql]:
        return [self.value(node) for node in nodes]

    def _boolean(self, form: str, *nodes: exp.Expr) -> ValueSql:
        values = self._values(*nodes)
        return ValueSql(form.format(*(value.sql for value in values)), "boolean", _any(values))

    def _joined(self, node: exp.Expr) -> ValueSql:
        return self._boolean(f"({{}} {_SIGNS[type(node)]} {{}})", node.this, node.expression)

    def _is(self, node: exp.Expr) -> ValueSql:
        return self._boolean(f"({{}} IS {node.expression.sql('spark')})", node.this)

    def _in(self, node: exp.Expr) -> ValueSql:
        form = f"({{}} IN ({', '.join(['{}'] * len(node.expressions))}))"
        return self._boolean(form, node.this, *node.expressions)

    def _between(self, node: exp.Expr) -> ValueSql:
        bounds = (node.args["low"], node.args["high"])
        return self._boolean("({} BETWEEN {} AND {})", node.this, *bounds)

    def _arithmetic(self, node: exp.Expr) -> ValueSql:
        left, right = self._values(node.this, node.expression)
        if "interval" in (left.type, right.type):
            time, step = (right, left) if left.type == "interval" else (left, right)
            return _tried(f"{_TRIED[type(node)]}({time.sql}, {step.sql})", "timestamp", [left])
        kind = _result_type(type(node), left, right)
        operands = [left, right]
        if kind in ("bigint", "double"):
            operands = [_as(kind, operand) for operand in operands]
        elif "bigint" in (left.type, right.type):
            operands = [
                _as(_decimal(*_digits(each)), each) if each.type == "bigint" else each
                for each in operands
            ]
        first, second = (operand.sql for operand in operands)
        if isinstance(node, exp.Mod):
            return ValueSql(f"({first} % nullif({second}, 0))", kind, _any(operands))
        if kind == "bigint":
            return _tried(f"{_TRIED[type(node)]}({first}, {second})", kind, operands)
        return ValueSql(f"({first} {_SIGNS[type(node)]} {second})", kind, _any(operands))

    def _division(self, node: exp.Expr) -> ValueSql:
        operands = [_as("double", each) for each in self._values(node.this, node.expression)]
        first, second = (operand.sql for operand in operands)
        return ValueSql(f"({first} / nullif({second}, 0D))", "double", _any(operands))

    def _sign(self, form: str, node: exp.Expr) -> ValueSql:
        value = self.value(node.this)
        if value.type == "bigint" and not isinstance(node.this, exp.Literal):
            return _tried(form.format(f"nullif({value.sql}, {_LEAST_BIGINT})"), "bigint", [value])
        return ValueSql(form.format(value.sql), value.type, value.fails)

    def _round(self, node: exp.Expr) -> ValueSql:
        """Spark's `round`, which keeps the type; a decimal loses the digits that are rounded."""
        value, decimals = self.value(node.this), node.args.get("decimals")
        places = 0 if decimals is None else whole_number(decimals) or 0
        if value.type == "double":
            return ValueSql(f"round({value.sql}, {places})", "double", value.fails)
        if value.type == "null":
            return value
        precision, scale = _digits(value)
        if places >= scale:
            return value
        kept = max(places, 0)
        exact = _decimal(max(precision - scale, -places) + kept + 1, kept)
        if value.type != "bigint":
            return ValueSql(f"round({value.sql}, {places})", exact, value.fails)
        # A whole number near the bounds of a bigint can round to one beyond them.
        sql = f"round(CAST({value.sql} AS decimal({precision},0)), {places})"
        return _tried(f"try_cast({sql} AS BIGINT)", "bigint", [value])

    def _whole(self, node: exp.Expr) -> ValueSql:
        value = self.value(node.this)
        sql = f"{_NAMES[type(node)]}({value.sql})"
        if value.type == "double":
            # Spark's floor of a large number is the largest bigint.
            beyond = f"({value.sql} IS NOT NULL AND try_cast({value.sql} AS BIGINT) IS NULL)"
            return ValueSql(sql, "bigint", _either(value.fails, beyond))
        if value.type == "bigint":
            return value
        precision, scale = _digits(value)
        return ValueSql(sql, _decimal(precision - scale + 1, 0), value.fails)

    def _part_of_time(self, node: exp.Expr) -> ValueSql:
        # sqlglot wraps the operand of year() and the like.
        inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
        value = self.value(inner)
        sql = f"CAST({_PARTS_OF_TIME[type(node)]}({value.sql}) AS BIGINT)"
        return ValueSql(sql, "bigint", value.fails)

    def _local_time(self, node: exp.Expr) -> ValueSql:
        value = self.value(node.this)
        zone = node.args["zone"].sql("spark")
        return ValueSql(f"from_utc_timestamp({value.sql}, {zone})", "timestamp", value.fails)

    def _cast_to(self, target: str, kind: str, node: exp.Expr) -> ValueSql:
        value = self.value(node)
        return ValueSql(f"CAST({value.sql} AS {target})", kind, value.fails)

    def _cast(self, node: exp.Expr) -> ValueSql:
        target = node.args["to"].this
        if target in (exp.DType.DATE, exp.DType.DOUBLE):
            return self._cast_to(target.name, target.name.lower(), node.this)
        if target not in (exp.DType.BIGINT, exp.DType.INT):
            return self._cast_to("TIMESTAMP", "timestamp", node.this)
        value = self.value(node.this)
        if value.type == "bigint" and target is exp.DType.BIGINT:
            return value
        return _tried(f"CAST(try_cast({value.sql} AS {target.name}) AS BIGINT)", "bigint", [value])

    def _case(self, node: exp.Expr) -> ValueSql:
        branches = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
        return self._branches(branches, node.args.get("default"))

    def _if(self, node: exp.Expr) -> ValueSql:
        return self._branches([(node.this, node.args["true"])], node.args.get("false"))

    def _branches(
        self, branches: Sequence[tuple[exp.Expr, exp.Expr]], default: exp.Expr | None
    ) -> ValueSql:
        conditions = self._values(*(condition for condition, _ in branches))
        results = _alike(self._values(*(result for _, result in branches), default or exp.Null()))
        *taken, otherwise = results
        sql, fails = "CASE", "CASE"
        for condition, result in zip(conditions, taken, strict=True):
            sql += f" WHEN {condition.sql} THEN {result.sql}"
            if condition.fails:
                fails += f" WHEN {condition.fails} THEN TRUE"
            fails += f" WHEN {condition.sql} THEN {result.fails or 'FALSE'}"
        sql = f"{sql} ELSE {otherwise.sql} END"
        if not _any([*conditions, *results]):
            return ValueSql(sql, otherwise.type)
        return ValueSql(sql, otherwise.type, f"{fails} ELSE {otherwise.fails or 'FALSE'} END")

    def _one_of(self, node: exp.Expr) -> ValueSql:
        values = _alike(self._values(node.this, *node.expressions))
        sql = f"{_NAMES[type(node)]}({', '.join(value.sql for value in values)})"
        if not isinstance(node, exp.Coalesce):
            return ValueSql(sql, values[0].type, _any(values))
        fails: str | None = None
        # A value is computed only where all earlier values are null.
        for value in reversed(values):
            later = f"({value.sql} IS NULL AND {fails})" if fails else None
            fails = _either(value.fails, later) if value.fails else later
        return ValueSql(sql, values[0].type, fails)


def _literal(node: exp.Expr) -> ValueSql:
    if node.args["is_string"]:
        return ValueSql(node.sql("spark"), "string")
    text = node.name.lower()
    if "e" in text:
        return ValueSql(f"CAST({text} AS DOUBLE)", "double")
    if "." not in text:
        return ValueSql(f"{text}L", "bigint")
    whole, _, decimals = text.partition(".")
    kind = _decimal(max(len(whole.lstrip("0")) + len(decimals), 1), len(decimals))
    return ValueSql(f"CAST({whole or '0'}.{decimals or '0'} AS {kind})", kind)


def _tried(sql: str, kind: str, operands: Sequence[ValueSql]) -> ValueSql:
    """The SQL of an operation that is null where the result does not fit."""
    known = " AND ".join(f"{operand.sql} IS NOT NULL" for operand in operands)
    return ValueSql(sql, kind, _either(_any(operands), f"({known} AND {sql} IS NULL)"))


def _any(values: Sequence[ValueSql]) -> str | None:
    """The condition that one of the values fails."""
    found: str | None = None
    for value in values:
        found = _either(found, value.fails) if value.fails else found
    return found


def _either(first: str | None, second: str | None) -> str | None:
    return f"({first} OR {second})" if first and second else first or second


def _as(kind: str, value: ValueSql) -> ValueSql:
    if value.type == kind:
        return value
    return ValueSql(f"CAST({value.sql} AS {kind.upper()})", kind, value.fails)


def _alike(values: Sequence[ValueSql]) -> list[ValueSql]:
    """The values, cast to one type that holds all of them."""
    known = [value for value in values if value.type != "null"]
    kinds = {value.type for value in known}
    if len(kinds) <= 1:
        kind = kinds.pop() if kinds else "null"
    elif "double" in kinds:
        kind = "double"
    else:
        digits = [_digits(value) for value in known]
        scale = max(scale for _, scale in digits)
        kind = _decimal(max(precision - of for precision, of in digits) + scale, scale)
    return [_as(kind, value) for value in values]


def _result_type(operator: type[exp.Expr], left: ValueSql, right: ValueSql) -> str:
    """The type that holds every result of an operator exactly; double if an operand is double."""
    kinds = {left.type, right.type}
    if "double" in kinds:
        return "double"
    if kinds == {"bigint"}:
        return "bigint"
    (precision, scale), (other_precision, other_scale) = _digits(left), _digits(right)
    if operator is exp.Mul:
        return _decimal(precision + other_precision + 1, scale + other_scale)
    whole, other_whole = precision - scale, other_precision - other_scale
    most = max(scale, other_scale)
    if operator is exp.Mod:
        return _decimal(max(min(whole, other_whole) + most, 1), most)
    return _decimal(max(whole, other_whole) + most + 1, most)


def _digits(value: ValueSql) -> tuple[int, int]:
    """Precision and scale of a decimal, or of the decimal that holds an integer."""
    decimal = _DECIMAL.fullmatch(value.type)
    if decimal:
        return int(decimal[1]), int(decimal[2])
    is_literal = value.sql[:-1].isdecimal()
    return (len(value.sql) - 1 if is_literal else _DIGITS_OF_BIGINT), 0


def _decimal(precision: int, scale: int) -> str:
    if precision > _MOST_DIGITS:
        raise RuleError(
            f"its result needs {precision} digits, and a decimal has at most {_MOST_DIGITS}; make "
            "an operand a double, as in cast(x as double)"
        )
    return f"decimal({precision},{scale})"
