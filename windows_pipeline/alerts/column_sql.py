"""Compiles the expression of a derived column to safe SQL, and to SQL that says where it fails.

As for rules, the text itself never reaches Spark. An operation that would raise an error in Spark
(an overflow, a text that is no number) is null instead, and fails: one record must not end a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from sqlglot import exp
from sqlglot.errors import SqlglotError

from windows_pipeline.alerts.column_grammar import TEXT_ARGUMENTS, ColumnCheck, cast_type
from windows_pipeline.alerts.rule_grammar import Kind, RuleError
from windows_pipeline.alerts.rule_sql import parse_expression
from windows_pipeline.text.limits import MAX_TEXT, shown

KIND_OF_TYPE: dict[str, Kind] = {
    "string": "string",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
}
"""The kind that a column's expression must have, by the column's type; a number for others."""
_FULL_DATE = "'^ *[+-]?[0-9]{4,6}-[0-9]{1,2}-[0-9]{1,2}'"
"""Of a text without a full date Spark takes the day of the run."""
_LEAST = "-9223372036854775808"
_BEYOND = "9223372036854775808"
"""The least number of 64 bits, and the first above them."""
_MOST_SQL = 50_000
"""The most characters of the SQL that an expression may become."""
_MOST_BYTES = 1 << 20
"""The most bytes of a text that an expression joins or replaces, as UTF-8."""
_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {
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
}
"""Functions whose value is a whole number. Spark's is of 32 bits, and would overflow early."""
_OF_TEXTS: dict[type[exp.Expr], str] = {
    exp.Lower: "LOWER",
    exp.Upper: "UPPER",
    exp.Trim: "TRIM",
    exp.Replace: "REPLACE",
    exp.Contains: "CONTAINS",
    exp.StartsWith: "STARTSWITH",
    exp.EndsWith: "ENDSWITH",
}


_CALLS: dict[type[exp.Expr], tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    exp.Round: ("ROUND", ("this",), ("decimals",)),
    exp.AtTimeZone: ("FROM_UTC_TIMESTAMP", ("this",), ("zone",)),
    exp.Least: ("LEAST", ("this", "expressions"), ()),
    exp.Greatest: ("GREATEST", ("this", "expressions"), ()),
    exp.Left: ("LEFT", ("this",), ("expression",)),
    exp.Right: ("RIGHT", ("this",), ("expression",)),
    exp.Substring: ("SUBSTRING", ("this",), ("start", "length")),
    exp.Nullif: ("NULLIF", ("this", "expression"), ()),
}
"""Functions that fail only where an operand does: the name in Spark, then sqlglot's names of the
operands, and of the literals that follow them."""


class ColumnSql(NamedTuple):
    """A derived column's expression as SQL for a Spark session in UTC.

    Attributes:
        value: The expression's value; null where it fails.
        fails: Whether the expression fails for a record; never null.
    """

    value: str
    fails: str


class _Part(NamedTuple):
    """A node as SQL in parentheses; `fails` is empty for a node that cannot fail."""

    value: str
    fails: str = ""


def compile_column(
    text: str, columns: Mapping[str, str], column_type: str, table: str
) -> ColumnSql:
    """Compiles a derived column's expression.

    It may use what rules use, functions of texts, and casts to and from texts. Its value depends on
    the record alone (rule H1). A division by zero is null, as in rules.

    Args:
        text: The expression, in Spark's SQL.
        columns: The columns that it may name, unqualified, each with its Spark type.
        column_type: The type of the derived column.
        table: The struct that has the columns.

    Raises:
        RuleError: The text is not a single expression, uses something that the grammar does not
            list, names an unknown column, or has a value of another kind than the type.
    """
    kind = KIND_OF_TYPE.get(column_type, "number")
    return _compiled(text, tuple(columns.items()), kind, table)


@lru_cache(maxsize=1_000)
def _compiled(text: str, columns: tuple[tuple[str, str], ...], kind: Kind, table: str) -> ColumnSql:
    try:
        tree = parse_expression(text)
        check = ColumnCheck(dict(columns))
        found = check.kind(tree)
        if found != kind:
            fix = "declare a type that fits, or cast it"
            raise RuleError(f"is of kind {found}, but the column's type is of kind {kind}; {fix}")
        part = _Writer(check, dict(columns), table).part(tree)
    except RuleError as error:
        value = repr(text) if len(text) <= MAX_TEXT else shown(text)
        raise RuleError(f"{value}: {error}") from None
    except (RecursionError, SqlglotError):  # sqlglot wraps some of the former in its own
        raise RuleError(f"{text!r}: is nested too deeply; simplify it") from None
    return ColumnSql(part.value, part.fails or "FALSE")


class _Writer:
    """Writes the SQL of a checked tree."""

    def __init__(self, check: ColumnCheck, columns: Mapping[str, str], table: str) -> None:
        self._kind = check.kind
        self._columns = columns
        self._table = table
        self._writers: dict[type[exp.Expr], Callable[[exp.Expr], _Part]] = {
            exp.Column: self._column,
            exp.Paren: lambda node: self.part(node.this),
            exp.Not: self._not,
            exp.Is: self._is,
            exp.In: self._in,
            exp.Between: self._between,
            exp.TsOrDsToDate: self._date,
            exp.Case: self._case,
            exp.If: self._if,
            exp.Coalesce: self._coalesce,
            exp.Concat: self._concat,
            **dict.fromkeys((exp.Literal, exp.Boolean, exp.Null, exp.Interval), _literal),
            **dict.fromkeys((exp.And, exp.Or), self._both),
            **dict.fromkeys(_ARITHMETIC, self._arithmetic),
            **dict.fromkeys((exp.Div, exp.Mod), self._division),
            **dict.fromkeys((exp.Neg, exp.Abs), self._negative),
            **dict.fromkeys((exp.Floor, exp.Ceil), self._whole),
            **dict.fromkeys((exp.Cast, exp.TryCast), self._cast),
            **dict.fromkeys(_SIGNS, self._comparison),
            **dict.fromkeys(_WHOLE_PARTS, self._whole_part),
            **dict.fromkeys(_OF_TEXTS, self._text_function),
            **dict.fromkeys(_CALLS, self._function),
            exp.Replace: self._replace,
        }

    def part(self, node: exp.Expr) -> _Part:
        """Returns a node's SQL, in parentheses where it is not a single word or call.

        Raises:
            RuleError: The SQL is too long.
        """
        writer = self._writers.get(type(node))
        if writer is None:
            raise RuleError(f"{node.sql('spark')} is not for derived columns; simplify it")
        part = writer(node)
        if max(map(len, part)) > _MOST_SQL:
            fix = "compute a part of it in a derived column of its own"
            raise RuleError(f"{node.sql('spark')[:60]}... is too large for one column; {fix}")
        return part

    def _date(self, node: exp.Expr) -> _Part:
        inner = self.part(node.this)
        return _Part(f"CAST({inner.value} AS DATE)", inner.fails)

    def _not(self, node: exp.Expr) -> _Part:
        inner = self.part(node.this)
        return _Part(f"(NOT {inner.value})", inner.fails)

    def _is(self, node: exp.Expr) -> _Part:
        inner = self.part(node.this)
        return _Part(f"({inner.value} IS {node.expression.sql('spark')})", inner.fails)

    def _in(self, node: exp.Expr) -> _Part:
        inner = self.part(node.this)
        items = ", ".join(self.part(item).value for item in node.expressions)
        return _Part(f"({inner.value} IN ({items}))", inner.fails)

    def _between(self, node: exp.Expr) -> _Part:
        parts = [self.part(node.args[name]) for name in ("this", "low", "high")]
        value, low, high = (part.value for part in parts)
        return _Part(f"({value} BETWEEN {low} AND {high})", _any(parts))

    def _comparison(self, node: exp.Expr) -> _Part:
        left, right = self.part(node.this), self.part(node.expression)
        return _Part(f"({left.value} {_SIGNS[type(node)]} {right.value})", _any([left, right]))

    def _text_function(self, node: exp.Expr) -> _Part:
        names = TEXT_ARGUMENTS[type(node)][1]
        return self._call(_OF_TEXTS[type(node)], [node.args[name] for name in names])

    def _concat(self, node: exp.Expr) -> _Part:
        operands = _joined_texts(node)
        # 0L: the sum of lengths of 32 bits would overflow.
        lengths = [f"(0L + OCTET_LENGTH({self.part(operand).value}))" for operand in operands]
        return _bounded(self._call("CONCAT", operands), _total(["0L", *lengths]))

    def _replace(self, node: exp.Expr) -> _Part:
        call = self._text_function(node)
        operands = (node.this, node.expression, node.args["replacement"])
        _, old, new = operands
        are_literals = isinstance(old, exp.Literal) and isinstance(new, exp.Literal)
        if are_literals and len(new.name.encode()) <= len(old.name.encode()):
            return call  # the text does not grow
        text, searched, written = (self.part(operand).value for operand in operands)
        replaced = f"OCTET_LENGTH({text}) - OCTET_LENGTH(REPLACE({text}, {searched}, ''))"
        times = f"(({replaced}) DIV NULLIF(OCTET_LENGTH({searched}), 0))"
        return _bounded(call, f"({times} * OCTET_LENGTH({written}))")

    def _function(self, node: exp.Expr) -> _Part:
        name, operands, literals = _CALLS[type(node)]
        values: list[exp.Expr] = []
        for operand in operands:
            found = node.args[operand]
            values += found if isinstance(found, list) else [found]
        return self._call(name, values, _texts(*(node.args.get(text) for text in literals)))

    def _column(self, node: exp.Expr) -> _Part:
        quoted = f"`{self._table}`.`{node.name}`"
        if self._columns[node.name] in ("date", "timestamp"):
            return _within_years(_Part(quoted))
        return _Part(quoted)

    def _call(self, name: str, operands: Iterable[exp.Expr], literals: Iterable[str] = ()) -> _Part:
        """A function that fails only where an operand fails."""
        parts = [self.part(operand) for operand in operands]
        arguments = ", ".join([*(part.value for part in parts), *literals])
        return _Part(f"{name}({arguments})", _any(parts))

    def _both(self, node: exp.Expr) -> _Part:
        """`and` and `or`: the right side is not computed where the left decides."""
        left, right = self.part(node.this), self.part(node.expression)
        is_and = isinstance(node, exp.And)
        value = f"({left.value} {'AND' if is_and else 'OR'} {right.value})"
        if not right.fails:
            return _Part(value, left.fails)
        undecided = f"COALESCE({left.value if is_and else f'NOT {left.value}'}, TRUE)"
        return _Part(value, _joined([left.fails, f"({undecided} AND {right.fails})"]))

    def _arithmetic(self, node: exp.Expr) -> _Part:
        parts = self._operands(node)
        left, right = (part.value for part in parts)
        part = _strict(f"{_ARITHMETIC[type(node)]}({left}, {right})", parts)
        sides = (node.this.unnest(), node.expression.unnest())
        has_interval = any(isinstance(side, exp.Interval) for side in sides)
        return _within_years(part) if has_interval else part

    def _operands(self, node: exp.Expr) -> list[_Part]:
        """Both operands; a whole number next to a column gets Spark's own, narrow type."""
        sides = [node.this.unnest(), node.expression.unnest()]
        return [
            _Part(side.name)
            if _is_whole_literal(side) and other.find(exp.Column)
            else self.part(side)
            for side, other in zip(sides, reversed(sides), strict=True)
        ]

    def _division(self, node: exp.Expr) -> _Part:
        left, right = self._operands(node)
        divisor = _Part(f"NULLIF({right.value}, 0)", right.fails)
        name = "TRY_DIVIDE" if isinstance(node, exp.Div) else "TRY_MOD"
        return _strict(f"{name}({left.value}, {divisor.value})", [left, divisor])

    def _negative(self, node: exp.Expr) -> _Part:
        inner = self.part(node.this)
        value = inner.value
        if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
            return _Part(f"(-{value})")
        negated = f"WHEN {value} <> {_LEAST} THEN -{value}"
        if isinstance(node, exp.Neg):
            return _strict(f"(CASE {negated} END)", [inner])
        return _strict(f"(CASE WHEN NOT {value} < 0 THEN {value} {negated} END)", [inner])

    def _whole(self, node: exp.Expr) -> _Part:
        """`floor` and `ceil`: of a double beyond 64 bits Spark returns another number."""
        inner = self.part(node.this)
        fits = f"{inner.value} >= {_LEAST} AND {inner.value} < {_BEYOND}"
        name = "FLOOR" if isinstance(node, exp.Floor) else "CEIL"
        return _strict(f"(CASE WHEN {fits} THEN {name}({inner.value}) END)", [inner])

    def _whole_part(self, node: exp.Expr) -> _Part:
        # sqlglot wraps the operand of year() and the like; Spark takes the column itself.
        operand = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
        part = self._call(_WHOLE_PARTS[type(node)], [operand])
        return _Part(f"CAST({part.value} AS BIGINT)", part.fails)

    def _cast(self, node: exp.Expr) -> _Part:
        inner = self.part(node.this)
        found, (name, kind) = self._kind(node.this), cast_type(node)
        if found == kind and kind != "number":
            return inner
        value = f"TRY_CAST({inner.value} AS {name})"
        if found == "string" and kind in ("date", "timestamp"):
            is_full = f"{inner.value} RLIKE {_FULL_DATE}"
            as_time = f"TRY_CAST({inner.value} AS TIMESTAMP)"
            # Spark's date cast ignores any text after the date.
            value = f"(CASE WHEN {is_full} AND {as_time} IS NOT NULL THEN {value} END)"
            value = _within_years(_Part(value)).value
        elif kind == "string" or {found, kind} <= {"date", "timestamp"}:
            return _Part(value, inner.fails)  # always fits
        if node.args.get("safe"):
            return _Part(value, inner.fails)  # the text says try_cast
        return _strict(value, [inner])

    def _case(self, node: exp.Expr) -> _Part:
        branches = [(branch.this, branch.args["true"]) for branch in node.args["ifs"]]
        return self._branches(branches, node.args.get("default"))

    def _if(self, node: exp.Expr) -> _Part:
        return self._branches([(node.this, node.args["true"])], node.args.get("false"))

    def _branches(
        self, branches: Iterable[tuple[exp.Expr, exp.Expr]], otherwise: exp.Expr | None
    ) -> _Part:
        """Computes conditions in order, until one is true; then its value alone."""
        parts = [(self.part(condition), self.part(value)) for condition, value in branches]
        last = _Part("NULL") if otherwise is None else self.part(otherwise)
        whens = " ".join(f"WHEN {when.value} THEN {then.value}" for when, then in parts)
        value = f"(CASE {whens} ELSE {last.value} END)"
        if not any(part.fails for part in (last, *(part for pair in parts for part in pair))):
            return _Part(value)
        fails = " ".join(
            f"WHEN {when.fails or 'FALSE'} THEN TRUE WHEN {when.value} THEN {then.fails or 'FALSE'}"
            for when, then in parts
        )
        return _Part(value, f"(CASE {fails} ELSE {last.fails or 'FALSE'} END)")

    def _coalesce(self, node: exp.Expr) -> _Part:
        """Values after the first that is not null are not computed."""
        parts = [self.part(operand) for operand in (node.this, *node.expressions)]
        value = f"COALESCE({', '.join(part.value for part in parts)})"
        if not _any(parts):
            return _Part(value)
        fails = " ".join(
            f"WHEN {part.fails or 'FALSE'} THEN TRUE WHEN {part.value} IS NOT NULL THEN FALSE"
            for part in parts
        )
        return _Part(value, f"(CASE {fails} ELSE FALSE END)")


def _literal(node: exp.Expr) -> _Part:
    text: str = node.sql(dialect="spark")
    if _is_whole_literal(node):
        return _Part(f"CAST({text} AS BIGINT)")  # Spark's whole numbers have 32 bits
    return _Part(f"({text})" if isinstance(node, exp.Interval) else text)


def _is_whole_literal(node: exp.Expr) -> bool:
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdecimal()


def _texts(*literals: exp.Expr | None) -> list[str]:
    return [literal.sql(dialect="spark") for literal in literals if literal is not None]


def _strict(value: str, operands: Iterable[_Part]) -> _Part:
    """An operation that fails where its result is null though no operand is null."""
    operands = list(operands)
    present = " AND ".join(f"{part.value} IS NOT NULL" for part in operands)
    return _Part(value, _joined([*_fails(operands), f"({present} AND {value} IS NULL)"]))


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


def _bounded(part: _Part, length: str) -> _Part:
    """Fails where a text would be too long, before Spark makes it."""
    is_long = f"{length} > {_MOST_BYTES}"
    value = f"(CASE WHEN {is_long} THEN NULL ELSE {part.value} END)"
    return _Part(value, _joined([part.fails, f"COALESCE({is_long}, FALSE)"]))


def _within_years(part: _Part) -> _Part:
    """Refuses times beyond the year 9999, with which Spark's functions of times may overflow."""
    inside = f"YEAR({part.value}) BETWEEN 1 AND 9999"
    value = f"(CASE WHEN {inside} THEN {part.value} END)"
    return _strict(value, [part])


def _any(parts: Iterable[_Part]) -> str:
    return _joined(_fails(parts))


def _fails(parts: Iterable[_Part]) -> list[str]:
    return [part.fails for part in parts]


def _joined(fails: Iterable[str]) -> str:
    """Whether any of some parts fails; empty if none can."""
    found = list(dict.fromkeys(text for text in fails if text))
    return found[0] if len(found) == 1 else f"({' OR '.join(found)})" if found else ""
