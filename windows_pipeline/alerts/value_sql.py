"""Compiles an expression over the columns of a row to SQL whose type and failures are known.

Derived columns, the arguments of aggregates, and rules are such expressions. Each operator has one
type: bigint, double, or a decimal that is wide enough for every result. No expression raises: where
a number, time or text does not fit, the value is null, and a condition says so (rules A6, E5, G3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from sqlglot import exp

from windows_pipeline.alerts.column_grammar import TEXT_ARGUMENTS, ColumnCheck, cast_type
from windows_pipeline.alerts.parsing import errors_of, parse_expression
from windows_pipeline.alerts.rule_grammar import (
    COMPARISONS,
    ExpressionCheck,
    Kind,
    RuleError,
    element_type,
    whole_number,
)
from windows_pipeline.alerts.typed_sql import (
    NULL,
    ValueSql,
    alike,
    any_fails,
    as_type,
    case_of,
    column_of,
    decimal_type,
    digits,
    either_fails,
    result_type,
    tried,
)

__all__ = [
    "ValueSql",
    "canonical",
    "case_of",
    "column_of",
    "compile_column",
    "compile_value",
    "written",
]

_MOST_SQL = 100_000
_MOST_BYTES = 1 << 20
"""The most bytes of a text that an expression joins or replaces, as UTF-8."""
_LEAST_BIGINT = "(-9223372036854775807L - 1L)"
_FULL_DATE = "'^ *[+-]?[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}'"
"""Of a text without a full date Spark takes the day of the run."""
_KIND_OF_TYPE: dict[str, Kind] = {
    "string": "string",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
}
"""The kind that a column's expression must have, by the column's type; a number for others."""
_SIGNS: dict[type[exp.Expr], str] = {
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
    exp.Add: "TRY_ADD",
    exp.Sub: "TRY_SUBTRACT",
    exp.Mul: "TRY_MULTIPLY",
}
_WHOLE_PARTS: dict[type[exp.Expr], str] = {
    exp.Hour: "HOUR",
    exp.Minute: "MINUTE",
    exp.Day: "DAY",
    exp.DayOfWeek: "DAYOFWEEK",
    exp.Month: "MONTH",
    exp.Year: "YEAR",
    exp.UnixMillis: "UNIX_MILLIS",
    exp.UnixSeconds: "UNIX_SECONDS",
    exp.Length: "LENGTH",
    exp.ArraySize: "SIZE",
}
"""Functions whose value is a whole number. Spark's is of 32 bits, and would overflow early."""
_NAMES: dict[type[exp.Expr], str] = {
    exp.Coalesce: "COALESCE",
    exp.Least: "LEAST",
    exp.Greatest: "GREATEST",
    exp.Floor: "FLOOR",
    exp.Ceil: "CEIL",
}
_CALLS: dict[type[exp.Expr], tuple[str, tuple[str, ...]]] = {
    exp.Lower: ("LOWER", ("this",)),
    exp.Upper: ("UPPER", ("this",)),
    exp.Trim: ("TRIM", ("this",)),
    exp.Contains: ("CONTAINS", ("this", "expression")),
    exp.StartsWith: ("STARTSWITH", ("this", "expression")),
    exp.EndsWith: ("ENDSWITH", ("this", "expression")),
    exp.Left: ("LEFT", ("this", "expression")),
    exp.Right: ("RIGHT", ("this", "expression")),
    exp.Substring: ("SUBSTRING", ("this", "start", "length")),
    exp.Replace: ("REPLACE", ("this", "expression", "replacement")),
    exp.Nullif: ("NULLIF", ("this", "expression")),
    exp.AtTimeZone: ("FROM_UTC_TIMESTAMP", ("this", "zone")),
}
"""Functions that fail only where an argument does: the name in Spark, and sqlglot's names of the
arguments."""


def compile_value(text: str, columns: Mapping[str, str]) -> ValueSql:
    """Compiles an aggregate's expression over the columns of one record.

    Args:
        text: The expression, in Spark's SQL; see `rule_sql.compile_rule`.
        columns: The columns that it may name, each with its Spark type.

    Raises:
        RuleError: The text is not an expression of the grammar, names an unknown column, or
            needs a decimal of more than 38 digits.
    """
    return _compiled_value(text, tuple(columns.items()))


def compile_column(text: str, columns: Mapping[str, str], column_type: str, table: str) -> ValueSql:
    """Compiles a derived column's expression.

    It may use what rules use, functions of texts, and casts to and from texts. Its value depends on
    the record alone (rule H1). A division by zero is null, as in rules.

    Args:
        text: The expression, in Spark's SQL.
        columns: The columns that it may name, unqualified, each with its Spark type.
        column_type: The type of the derived column.
        table: The struct that has the columns.

    Raises:
        RuleError: See `compile_value`; or the value is of another kind than the type.
    """
    kind = _KIND_OF_TYPE.get(column_type, "number")
    return _compiled_column(text, tuple(columns.items()), kind, table)


@lru_cache(maxsize=1_000)
def canonical(text: str) -> str:
    """Returns one text for all expressions that differ only in blanks and the case of keywords.

    Raises:
        RuleError: The text is not a single expression.
    """
    return parse_expression(text).sql(dialect="spark", comments=False)


@lru_cache(maxsize=1_000)
def _compiled_value(text: str, columns: tuple[tuple[str, str], ...]) -> ValueSql:
    with errors_of(text):
        tree = parse_expression(text)
        called = tree.find(exp.AggFunc)
        if called is not None:
            raise RuleError(
                f"{called.sql('spark')} is an aggregate within an expression, which is over the "
                "columns of one record; write it as an aggregate of its own"
            )
        ExpressionCheck(dict(columns)).kind(tree)
        found = written(tree, {name: column_of(name, kind) for name, kind in columns})
        if found.type in ("null", "interval"):
            raise RuleError("is no value of a record; name a column")
        return found


@lru_cache(maxsize=1_000)
def _compiled_column(
    text: str, columns: tuple[tuple[str, str], ...], kind: Kind, table: str
) -> ValueSql:
    with errors_of(text):
        tree = parse_expression(text)
        found = ColumnCheck(dict(columns)).kind(tree)
        if found != kind:
            fix = "declare a type that fits, or cast it"
            raise RuleError(f"is of kind {found}, but the column's type is of kind {kind}; {fix}")
        named = {name: column_of(name, its_type, table) for name, its_type in columns}
        # A landed time may lie beyond the year 9999, which a stored one does not.
        in_years = {
            name: tried(_within_years(column.sql), column.type, [column])
            for name, column in named.items()
            if column.type in ("date", "timestamp")
        }
        return written(tree, named | in_years)


def written(tree: exp.Expr, columns: Mapping[str, ValueSql]) -> ValueSql:
    """Writes the SQL of a tree that the grammar has checked.

    Args:
        tree: The tree.
        columns: What each name stands for.

    Raises:
        RuleError: It needs a decimal of more than 38 digits, or is too long for Spark.
    """
    return _Writer(columns).value(tree)


class _Writer:
    """Writes the SQL of each node of a tree that the grammar has checked."""

    def __init__(self, columns: Mapping[str, ValueSql]) -> None:
        self._writers: dict[type[exp.Expr], Callable[[exp.Expr], ValueSql]] = {
            exp.Column: lambda node: columns[node.name],
            exp.Literal: _literal,
            exp.Boolean: lambda node: ValueSql(str(node.this).upper(), "boolean"),
            exp.Null: lambda _: NULL,
            exp.Interval: lambda node: ValueSql(node.sql("spark"), "interval"),
            exp.Paren: lambda node: self.value(node.this),
            exp.Not: lambda node: self._boolean("(NOT {})", node.this),
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            **dict.fromkeys((exp.And, exp.Or), self._joined),
            **dict.fromkeys(COMPARISONS, self._comparison),
            **dict.fromkeys((exp.Add, exp.Sub, exp.Mul, exp.Mod), self._arithmetic),
            exp.Div: self._division,
            exp.Neg: lambda node: self._sign("(-{})", node),
            exp.Abs: lambda node: self._sign("ABS({})", node),
            exp.Round: self._round,
            **dict.fromkeys((exp.Floor, exp.Ceil), self._whole),
            **dict.fromkeys(_WHOLE_PARTS, self._whole_part),
            exp.TsOrDsToDate: self._date,
            **dict.fromkeys((exp.Cast, exp.TryCast), self._cast),
            **dict.fromkeys((exp.Case, exp.If), self._case),
            **dict.fromkeys((exp.Coalesce, exp.Least, exp.Greatest), self._one_of),
            **dict.fromkeys(_CALLS, self._call),
            exp.Replace: self._replace,
            exp.Concat: self._concat,
            exp.Bracket: self._element,
            exp.ArrayContains: lambda node: self._boolean(
                "ARRAY_CONTAINS({}, {})", node.this, node.expression
            ),
        }

    def value(self, node: exp.Expr) -> ValueSql:
        found = self._writers[type(node)](node)
        if len(found.sql) + len(found.fails or "") > _MOST_SQL:
            raise RuleError("is too long for Spark; split it up, or simplify it")
        return found

    def _values(self, *nodes: exp.Expr) -> list[ValueSql]:
        return [self.value(node) for node in nodes]

    def _boolean(self, form: str, *nodes: exp.Expr) -> ValueSql:
        values = self._values(*nodes)
        return ValueSql(form.format(*(value.sql for value in values)), "boolean", any_fails(values))

    def _comparison(self, node: exp.Expr) -> ValueSql:
        return self._boolean(f"({{}} {_SIGNS[type(node)]} {{}})", node.this, node.expression)

    def _is(self, node: exp.Expr) -> ValueSql:
        return self._boolean(f"({{}} IS {node.expression.sql('spark')})", node.this)

    def _in(self, node: exp.Expr) -> ValueSql:
        form = f"({{}} IN ({', '.join(['{}'] * len(node.expressions))}))"
        return self._boolean(form, node.this, *node.expressions)

    def _between(self, node: exp.Expr) -> ValueSql:
        bounds = (node.args["low"], node.args["high"])
        return self._boolean("({} BETWEEN {} AND {})", node.this, *bounds)

    def _joined(self, node: exp.Expr) -> ValueSql:
        """`and` and `or`: the right side is not computed where the left decides."""
        left, right = self._values(node.this, node.expression)
        sign, goes_on = (
            ("AND", left.sql) if isinstance(node, exp.And) else ("OR", f"NOT {left.sql}")
        )
        fails = left.fails
        if right.fails:
            fails = either_fails(fails, f"(COALESCE({goes_on}, TRUE) AND {right.fails})")
        return ValueSql(f"({left.sql} {sign} {right.sql})", "boolean", fails)

    def _arithmetic(self, node: exp.Expr) -> ValueSql:
        left, right = self._values(node.this, node.expression)
        if "interval" in (left.type, right.type):
            time, step = (right, left) if left.type == "interval" else (left, right)
            moved = f"{_TRIED[type(node)]}({time.sql}, {step.sql})"
            return tried(_within_years(moved), "timestamp", [time])
        kind = result_type(type(node), left, right)
        operands = [left, right]
        if kind in ("bigint", "double"):
            operands = [as_type(kind, operand) for operand in operands]
        elif "bigint" in (left.type, right.type):
            operands = [
                as_type(decimal_type(*digits(each)), each) if each.type == "bigint" else each
                for each in operands
            ]
        first, second = (operand.sql for operand in operands)
        if isinstance(node, exp.Mod):
            return ValueSql(f"({first} % NULLIF({second}, 0))", kind, any_fails(operands))
        if kind == "bigint":
            return tried(f"{_TRIED[type(node)]}({first}, {second})", kind, operands)
        return ValueSql(f"({first} {_SIGNS[type(node)]} {second})", kind, any_fails(operands))

    def _division(self, node: exp.Expr) -> ValueSql:
        operands = [as_type("double", each) for each in self._values(node.this, node.expression)]
        first, second = (operand.sql for operand in operands)
        return ValueSql(f"({first} / NULLIF({second}, 0D))", "double", any_fails(operands))

    def _sign(self, form: str, node: exp.Expr) -> ValueSql:
        value = self.value(node.this)
        if value.type == "bigint" and not isinstance(node.this, exp.Literal):
            return tried(form.format(f"NULLIF({value.sql}, {_LEAST_BIGINT})"), "bigint", [value])
        return ValueSql(form.format(value.sql), value.type, value.fails)

    def _round(self, node: exp.Expr) -> ValueSql:
        """Spark's `round`, which keeps the type; a decimal loses the digits that are rounded."""
        value, decimals = self.value(node.this), node.args.get("decimals")
        places = 0 if decimals is None else whole_number(decimals) or 0
        if value.type == "double":
            return ValueSql(f"ROUND({value.sql}, {places})", "double", value.fails)
        precision, scale = digits(value)
        if places >= scale:
            return value
        kept = max(places, 0)
        exact = decimal_type(max(precision - scale, -places) + kept + 1, kept)
        if value.type != "bigint":
            return ValueSql(f"ROUND({value.sql}, {places})", exact, value.fails)
        # A whole number near the bounds of a bigint can round to one beyond them.
        sql = f"ROUND(CAST({value.sql} AS decimal({precision},0)), {places})"
        return tried(f"TRY_CAST({sql} AS BIGINT)", "bigint", [value])

    def _whole(self, node: exp.Expr) -> ValueSql:
        value, name = self.value(node.this), _NAMES[type(node)]
        if value.type == "double":
            # Spark's floor of a large number is the largest bigint.
            fitting = f"CASE WHEN TRY_CAST({value.sql} AS BIGINT) IS NOT NULL THEN {value.sql} END"
            return tried(f"{name}({fitting})", "bigint", [value])
        precision, scale = digits(value)
        if scale == 0:
            return value
        return ValueSql(f"{name}({value.sql})", decimal_type(precision - scale + 1, 0), value.fails)

    def _whole_part(self, node: exp.Expr) -> ValueSql:
        # sqlglot wraps the operand of year() and the like; Spark takes the column itself.
        inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
        value = self.value(inner)
        sql = f"CAST({_WHOLE_PARTS[type(node)]}({value.sql}) AS BIGINT)"
        return ValueSql(sql, "bigint", value.fails)

    def _date(self, node: exp.Expr) -> ValueSql:
        value = self.value(node.this)
        return ValueSql(f"CAST({value.sql} AS DATE)", "date", value.fails)

    def _cast(self, node: exp.Expr) -> ValueSql:
        value, (name, kind) = self.value(node.this), cast_type(node)
        if name.lower() == value.type:
            return value
        is_tried, is_text = bool(node.args.get("safe")), value.type == "string"
        is_time = kind in ("date", "timestamp")
        if is_text and is_time and (is_tried or not isinstance(node.this, exp.Literal)):
            # Spark's date cast ignores any text after the date.
            is_time_text = f"TRY_CAST({value.sql} AS TIMESTAMP) IS NOT NULL"
            cast = _within_years(f"TRY_CAST({value.sql} AS {name})")
            is_full = f"{value.sql} RLIKE {_FULL_DATE}"
            sql = f"(CASE WHEN {is_full} AND {is_time_text} THEN {cast} END)"
        elif is_time or kind == "string" or (name == "DOUBLE" and not is_text):
            return ValueSql(f"CAST({value.sql} AS {name})", name.lower(), value.fails)
        else:
            sql = f"TRY_CAST({value.sql} AS {name})"
        if name == "INT":
            sql, name = f"CAST({sql} AS BIGINT)", "BIGINT"
        found = tried(sql, name.lower(), [value])
        return replace(found, fails=value.fails) if is_tried else found

    def _case(self, node: exp.Expr) -> ValueSql:
        is_case = isinstance(node, exp.Case)
        branches = node.args["ifs"] if is_case else [node]
        otherwise = node.args.get("default" if is_case else "false")
        conditions = self._values(*(branch.this for branch in branches))
        results = self._values(*(branch.args["true"] for branch in branches))
        *taken, other = alike([*results, NULL if otherwise is None else self.value(otherwise)])
        return case_of(list(zip(conditions, taken, strict=True)), other)

    def _one_of(self, node: exp.Expr) -> ValueSql:
        values = alike(self._values(node.this, *node.expressions))
        sql = f"{_NAMES[type(node)]}({', '.join(value.sql for value in values)})"
        if not isinstance(node, exp.Coalesce):
            return ValueSql(sql, values[0].type, any_fails(values))
        fails: str | None = None
        # A value is computed only where all earlier values are null.
        for value in reversed(values):
            later = f"({value.sql} IS NULL AND {fails})" if fails else None
            fails = either_fails(value.fails, later)
        return ValueSql(sql, values[0].type, fails)

    def _call(self, node: exp.Expr) -> ValueSql:
        name, arguments = _CALLS[type(node)]
        operands = [node.args[each] for each in arguments if node.args.get(each) is not None]
        values = [
            # Spark's numbers of characters have 32 bits.
            replace(self.value(each), sql=each.sql("spark"))
            if isinstance(each, exp.Literal)
            else self.value(each)
            for each in operands
        ]
        is_boolean = TEXT_ARGUMENTS.get(type(node), ("",))[0] == "boolean"
        sql = f"{name}({', '.join(value.sql for value in values)})"
        return ValueSql(sql, "boolean" if is_boolean else values[0].type, any_fails(values))

    def _element(self, node: exp.Expr) -> ValueSql:
        """An element of a list, by a number from 0 in x[0], from 1 in element_at(x, 1)."""
        listed, number = self.value(node.this), whole_number(node.expressions[0]) or 0
        position = number if node.args.get("offset") else number + 1
        # x[0] of Spark fails the run where the list has no such element.
        sql = f"TRY_ELEMENT_AT({listed.sql}, {position})"
        return ValueSql(sql, element_type(listed.type) or "", listed.fails)

    def _replace(self, node: exp.Expr) -> ValueSql:
        call, operands = self._call(node), (node.this, node.expression, node.args["replacement"])
        _, old, new = operands
        are_literals = isinstance(old, exp.Literal) and isinstance(new, exp.Literal)
        if are_literals and len(new.name.encode()) <= len(old.name.encode()):
            return call  # the text does not grow
        text, searched, written = (operand.sql for operand in self._values(*operands))
        replaced = f"OCTET_LENGTH({text}) - OCTET_LENGTH(REPLACE({text}, {searched}, ''))"
        times = f"(({replaced}) DIV NULLIF(OCTET_LENGTH({searched}), 0))"
        return _bounded(call, f"({times} * OCTET_LENGTH({written}))")

    def _concat(self, node: exp.Expr) -> ValueSql:
        values = self._values(*_joined_texts(node))
        joined = f"CONCAT({', '.join(value.sql for value in values)})"
        # 0L: the sum of lengths of 32 bits would overflow.
        lengths = [f"(0L + OCTET_LENGTH({value.sql}))" for value in values]
        return _bounded(ValueSql(joined, "string", any_fails(values)), _total(["0L", *lengths]))


def _literal(node: exp.Expr) -> ValueSql:
    if node.args["is_string"]:
        return ValueSql(node.sql("spark"), "string")
    text = node.name.lower()
    if "e" in text:
        return ValueSql(f"CAST({text} AS DOUBLE)", "double")
    if "." not in text:
        return ValueSql(f"{text}L", "bigint")
    whole, _, decimals = text.partition(".")
    kind = decimal_type(max(len(whole.lstrip("0")) + len(decimals), 1), len(decimals))
    return ValueSql(f"CAST({whole or '0'}.{decimals or '0'} AS {kind})", kind)


def _joined_texts(node: exp.Expr) -> list[exp.Expr]:
    """The texts that a `concat` joins, those of a `concat` within it among them."""
    found: list[exp.Expr] = []
    for operand in node.expressions:
        inner = operand.unnest()
        found += _joined_texts(inner) if isinstance(inner, exp.Concat) else [operand]
    return found


def _total(numbers: Sequence[str]) -> str:
    """A sum whose SQL is nested as little as possible: Spark's parser needs stack per level."""
    if len(numbers) == 1:
        return numbers[0]
    half = (len(numbers) + 1) // 2
    return f"({_total(numbers[:half])} + {_total(numbers[half:])})"


def _bounded(text: ValueSql, length: str) -> ValueSql:
    """Fails where a text would be too long, before Spark makes it."""
    is_long = f"{length} > {_MOST_BYTES}"
    sql = f"(CASE WHEN {is_long} THEN NULL ELSE {text.sql} END)"
    return ValueSql(sql, text.type, either_fails(text.fails, f"COALESCE({is_long}, FALSE)"))


def _within_years(time: str) -> str:
    """Null beyond the year 9999, where Spark's functions of times may overflow."""
    return f"(CASE WHEN YEAR({time}) BETWEEN 1 AND 9999 THEN {time} END)"
