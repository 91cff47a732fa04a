"""The grammar of rules: every allowed node of the syntax tree, its operands' and its own kind.

The grammar fails closed: it refuses a node that it does not list, and an argument of a node
that it does not check.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from typing import Literal
from zoneinfo import available_timezones

from sqlglot import exp

Kind = Literal["boolean", "number", "string", "timestamp", "date", "interval", "list", "null"]

_FUNCTIONS = (
    "abs, array_contains, ceil, coalesce, date, day, dayofweek, element_at, floor, "
    "from_utc_timestamp, greatest, hour, if, least, minute, month, round, size, to_date, "
    "unix_millis, unix_seconds, year"
)
_NUMBER_TEXT = re.compile(r"[0-9]{0,18}(\.[0-9]{0,18})?(e[+-]?[0-9]{1,2})?", re.IGNORECASE)
_TIME_TEXT = re.compile(
    r"\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:\d\d)?)?", re.ASCII
)
_WHOLE_TEXT = re.compile(r"-?[0-9]{1,9}")
_MOST_PLACES = 18
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400, "WEEK": 604_800}
_UNITS = {f"{unit}{s}": seconds for unit, seconds in _SECONDS.items() for s in ("", "S")}
_MOST_SECONDS = 10_000 * 365 * 86_400
_LIST = re.compile(r"array<(.*)>")
_TYPE_KINDS: dict[str, Kind] = {
    "string": "string",
    "boolean": "boolean",
    "date": "date",
    "timestamp": "timestamp",
    "bigint": "number",
    "int": "number",
    "double": "number",
    "float": "number",
    "decimal": "number",
}
_CASTS: dict[exp.DType, Kind] = {
    exp.DType.BIGINT: "number",
    exp.DType.INT: "number",
    exp.DType.DOUBLE: "number",
    exp.DType.DATE: "date",
    exp.DType.TIMESTAMP: "timestamp",
    exp.DType.TIMESTAMPTZ: "timestamp",
}
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
    exp.TsOrDsToDate: "to_date()",
    exp.BitwiseAnd: "'&'",
    exp.BitwiseOr: "'|'",
    exp.BitwiseXor: "'^'",
    exp.BitwiseLeftShift: "'<<'",
    exp.BitwiseRightShift: "'>>'",
    exp.DPipe: "'||'",
}
# The fix for operators of other languages, which mean something else in SQL.
_OPERATOR_FIXES: dict[type[exp.Expr], str] = {
    exp.BitwiseLeftShift: "to compare, write one '<'",
    exp.BitwiseRightShift: "to compare, write one '>'",
    exp.BitwiseAnd: "if both conditions must hold, write AND",
    exp.BitwiseOr: "if either condition must hold, write OR",
    exp.DPipe: "it joins texts: if either condition must hold, write OR",
    exp.Command: "write if(condition, a, b), or case when condition then a else b end",
}


_OF_LISTS = "use size(x), x[0], element_at(x, -1) or array_contains(x, value)"


class RuleError(ValueError):
    """An expression that rules cannot use; the message has it, what is wrong and the fix."""


@dataclass(frozen=True, slots=True)
class _Form:
    """A node whose operands all have the same kinds.

    Attributes:
        result: The kind of the node's value.
        operands: The kinds that each operand may have.
        arguments: sqlglot's names of the operands.
    """

    result: Kind
    operands: frozenset[Kind]
    arguments: tuple[str, ...] = ("this",)


_BOOLEAN: frozenset[Kind] = frozenset({"boolean"})
_NUMBER: frozenset[Kind] = frozenset({"number"})
_TIMESTAMP: frozenset[Kind] = frozenset({"timestamp"})
_TIME: frozenset[Kind] = frozenset({"timestamp", "date"})
_LEFT_AND_RIGHT = ("this", "expression")
_FORMS: dict[type[exp.Expr], _Form] = {
    exp.And: _Form("boolean", _BOOLEAN, _LEFT_AND_RIGHT),
    exp.Or: _Form("boolean", _BOOLEAN, _LEFT_AND_RIGHT),
    exp.Not: _Form("boolean", _BOOLEAN),
    exp.Mul: _Form("number", _NUMBER, _LEFT_AND_RIGHT),
    exp.Div: _Form("number", _NUMBER, _LEFT_AND_RIGHT),
    exp.Mod: _Form("number", _NUMBER, _LEFT_AND_RIGHT),
    exp.Neg: _Form("number", _NUMBER),
    exp.Abs: _Form("number", _NUMBER),
    exp.Floor: _Form("number", _NUMBER),
    exp.Ceil: _Form("number", _NUMBER),
    exp.Hour: _Form("number", _TIMESTAMP),
    exp.Minute: _Form("number", _TIMESTAMP),
    exp.Day: _Form("number", _TIME),
    exp.DayOfWeek: _Form("number", _TIME),
    exp.Month: _Form("number", _TIME),
    exp.Year: _Form("number", _TIME),
    exp.UnixMillis: _Form("number", _TIMESTAMP),
    exp.UnixSeconds: _Form("number", _TIMESTAMP),
    exp.TsOrDsToDate: _Form("date", _TIME),
    exp.ArraySize: _Form("number", frozenset({"list"})),
}
COMPARISONS: tuple[type[exp.Expr], ...] = (
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.NullSafeEQ,
)


class ExpressionCheck:
    """Finds the kind of each node's value, and refuses nodes that the grammar does not list.

    Attributes:
        users: What the expressions are, for errors.
        functions: The functions that they may call, for errors.
    """

    users = "rules"
    functions = _FUNCTIONS

    def __init__(self, columns: Mapping[str, str]) -> None:
        """Sets the columns that a rule may name, each with its Spark type."""
        self._columns = columns
        self._interval_seconds = 0
        self._special: dict[type[exp.Expr], Callable[[exp.Expr], Kind]] = {
            exp.Column: self._column,
            exp.Literal: _literal,
            exp.Boolean: lambda _: "boolean",
            exp.Null: lambda _: "null",
            exp.Paren: self._paren,
            exp.Add: self._sum,
            exp.Sub: self._sum,
            exp.Interval: self._interval,
            exp.Between: self._between,
            exp.In: self._in,
            exp.Is: self._is,
            exp.Case: self._case,
            exp.If: self._if,
            exp.Coalesce: self._of_one_kind,
            exp.Least: self._of_one_kind,
            exp.Greatest: self._of_one_kind,
            exp.Cast: self._cast,
            exp.TryCast: self._cast,
            exp.AtTimeZone: self._local_time,
            exp.Bracket: self._element,
            exp.Round: self._round,
            exp.ArrayContains: self._array_contains,
            **dict.fromkeys(COMPARISONS, self._comparison),
        }

    def kind(self, node: exp.Expr) -> Kind:
        """Returns the kind of a node's value.

        Raises:
            RuleError: The grammar does not list the node, or not with these operands.
        """
        form = _FORMS.get(type(node))
        if form is not None:
            _require_only(node, *form.arguments)
            for name in _set_arguments(node, *form.arguments):
                self._require_kind(node, node.args[name], form.operands)
            return form.result
        special = self._special.get(type(node))
        if special is None:
            raise RuleError(
                f"uses {_named(node)}, which {self.users} cannot use; {self._fix(node)}"
            )
        return special(node)

    @staticmethod
    def _require_only(node: exp.Expr, *names: str) -> None:
        _require_only(node, *names)

    def _fix(self, node: exp.Expr) -> str:
        if isinstance(node, exp.AggFunc):
            return f"write it under aggregates, or use one of {', '.join(self._columns)}"
        if type(node) in _OPERATOR_FIXES:
            return _OPERATOR_FIXES[type(node)]
        listed = f"case, in, between, is null and {self.functions}"
        return f"use columns, literals, operators, {listed}"

    def _require_kind(self, node: exp.Expr, operand: exp.Expr, kinds: frozenset[Kind]) -> None:
        # sqlglot wraps the operand of year() and the like; Spark takes the column itself.
        wrapped = isinstance(operand, exp.TsOrDsToDate) and not isinstance(node, exp.TsOrDsToDate)
        inner = operand.this if wrapped else operand
        found = self.kind(inner)
        if found not in kinds:
            wanted = " or ".join(sorted(kinds))
            raise RuleError(
                f"{_named(node)} takes a {wanted}, but {inner.sql('spark')} is a {found}; "
                f"pass a {wanted}"
            )

    def _column(self, node: exp.Expr) -> Kind:
        name = node.this.name if isinstance(node.this, exp.Identifier) else str(node.this)
        if _set_arguments(node) != ["this"]:
            raise RuleError(
                f"{node.sql('spark')!r} is qualified; write the name of the column alone"
            )
        if name not in self._columns:
            near = get_close_matches(name, self._columns, 1)
            known = f"use one of {', '.join(self._columns)}, or put text in single quotes"
            fix = f"did you mean {near[0]!r}? Otherwise {known}" if near else known
            raise RuleError(f"there is no column {name!r}; {fix}")
        kind = _kind_of(self._columns[name])
        if kind is None:
            raise RuleError(
                f"column {name!r} is of type {self._columns[name]}, which rules cannot use; "
                "use another column"
            )
        return kind

    def _paren(self, node: exp.Expr) -> Kind:
        _require_only(node, "this")
        return self.kind(node.this)

    def _sum(self, node: exp.Expr) -> Kind:
        _require_only(node, "this", "expression")
        left, right = self.kind(node.this), self.kind(node.expression)
        if (left, right) == ("number", "number"):
            return "number"
        if (left, right) == ("timestamp", "interval"):
            return "timestamp"
        if isinstance(node, exp.Add) and (left, right) == ("interval", "timestamp"):
            return "timestamp"
        raise RuleError(
            f"{node.sql('spark')} adds or subtracts {left} and {right}; use two numbers, or a "
            "timestamp and one interval of one unit, such as interval 90 minutes"
        )

    def _interval(self, node: exp.Expr) -> Kind:
        _require_only(node, "this", "unit")
        amount, unit = node.this, node.args.get("unit")
        whole = isinstance(amount, exp.Literal) and _WHOLE_TEXT.fullmatch(amount.name)
        if not whole or type(unit) is not exp.Var or unit.name.upper() not in _UNITS:
            raise RuleError(
                f"{node.sql('spark')} is not a plain interval; write a whole number and one unit, "
                "such as interval 90 minutes"
            )
        seconds = abs(int(amount.name)) * _UNITS[unit.name.upper()]
        # All intervals count: a time to which many are added may lie beyond Spark's last one.
        self._interval_seconds += seconds
        if self._interval_seconds > _MOST_SECONDS:
            what = "is" if seconds > _MOST_SECONDS else "and the intervals before it together are"
            raise RuleError(
                f"{node.sql('spark')} {what} longer than 10,000 years; write a shorter one"
            )
        return "interval"

    def _comparison(self, node: exp.Expr) -> Kind:
        _require_only(node, "this", "expression")
        return self._comparable(node, node.this, node.expression)

    def _between(self, node: exp.Expr) -> Kind:
        _require_only(node, "this", "low", "high")
        return self._comparable(node, node.this, node.args["low"], node.args["high"])

    def _in(self, node: exp.Expr) -> Kind:
        _require_only(node, "this", "expressions")
        for item in node.expressions:
            bare = item.this if isinstance(item, exp.Neg) else item
            if not isinstance(bare, exp.Literal):
                raise RuleError(
                    f"{item.sql('spark')!r} in 'in (...)' is not a literal; write literals only"
                )
        if not node.expressions:
            raise RuleError("'in ()' is empty; write literals in it")
        return self._comparable(node, node.this, *node.expressions)

    def _comparable(self, node: exp.Expr, *operands: exp.Expr) -> Kind:
        """Checks that values can be compared: booleans use and, or, not; nulls use is null."""
        found = [self.kind(operand) for operand in operands]
        kinds = set(found)
        if "null" in kinds:
            raise RuleError(f"{node.sql('spark')} compares with null; write 'is null'")
        if kinds & _TIME and kinds <= {*_TIME, "string"}:
            for operand, kind in zip(operands, found, strict=True):
                if kind == "string":
                    require_time(operand)
        elif "list" in kinds:
            raise RuleError(f"{node.sql('spark')} compares a list; {_OF_LISTS}")
        elif len(kinds) > 1 or kinds & {"boolean", "interval"}:
            raise RuleError(
                f"{node.sql('spark')} compares {' with '.join(sorted(kinds))}; compare numbers "
                "with numbers, strings with strings, times with times, and join booleans by and, "
                "or, not"
            )
        return "boolean"

    def _is(self, node: exp.Expr) -> Kind:
        _require_only(node, "this", "expression")
        kind = self.kind(node.this)
        null = isinstance(node.expression, exp.Null)
        truth = isinstance(node.expression, exp.Boolean) and kind == "boolean"
        if not null and not truth:
            fix = "write 'is null' or 'is not null', or compare values by '='"
            raise RuleError(f"{node.sql('spark')}: 'is' takes null, true or false only; {fix}")
        return "boolean"

    def _case(self, node: exp.Expr) -> Kind:
        _require_only(node, "ifs", "default")
        branches = [branch.args["true"] for branch in node.args["ifs"]]
        for branch in node.args["ifs"]:
            _require_only(branch, "this", "true")
            self._require_kind(node, branch.this, _BOOLEAN)
        default = node.args.get("default")
        return self._common_kind(node, *branches, *([default] if default else []))

    def _if(self, node: exp.Expr) -> Kind:
        _require_only(node, "this", "true", "false")
        self._require_kind(node, node.this, _BOOLEAN)
        other = node.args.get("false")
        return self._common_kind(node, node.args["true"], *([other] if other else []))

    def _of_one_kind(self, node: exp.Expr) -> Kind:
        _require_only(node, "this", "expressions")
        if not node.expressions:
            raise RuleError(f"{_named(node)} takes two values or more; add another value")
        return self._common_kind(node, node.this, *node.expressions)

    def _common_kind(self, node: exp.Expr, *operands: exp.Expr) -> Kind:
        kinds = {self.kind(operand) for operand in operands} - {"null"}
        if "list" in kinds:
            raise RuleError(f"{_named(node)} takes no list; {_OF_LISTS}")
        if len(kinds) != 1:
            found = " or a ".join(sorted(kinds)) or "null"
            raise RuleError(
                f"{_named(node)} returns a {found}; make all its values of one kind, and not all "
                "null"
            )
        return kinds.pop()

    def _cast(self, node: exp.Expr) -> Kind:
        _require_only(node, "this", "to")
        found, target = self.kind(node.this), _CASTS.get(node.args["to"].this)
        if target is None or node.args["to"].expressions:
            fix = "cast to bigint, int, double, date or timestamp"
            raise RuleError(f"{node.sql('spark')}: rules cannot cast to that type; {fix}")
        if target in ("date", "timestamp") and found == "string":
            require_time(node.this)
        elif found != target and {found, target} != {"date", "timestamp"}:
            fix = "cast numbers to numbers, and times to times"
            raise RuleError(f"{node.sql('spark')} casts a {found} to a {target}; {fix}")
        return target

    def _round(self, node: exp.Expr) -> Kind:
        self._require_only(node, "this", "decimals")
        self._require_kind(node, node.this, _NUMBER)
        if node.args.get("decimals") is not None:
            require_whole(node, node.args["decimals"], -_MOST_PLACES, _MOST_PLACES)
        return "number"

    def _element(self, node: exp.Expr) -> Kind:
        """The kind of list[0], whose elements count from 0, and element_at(list, 1), from 1."""
        _require_only(node, "this", "expressions", "offset", "safe")
        kind, number = self._kind_of_elements(node), whole_number(node.expressions[0])
        from_1 = bool(node.args.get("offset"))
        is_none = number is None or (number == 0 if from_1 else number < 0)
        if len(node.expressions) > 1 or is_none:
            raise RuleError(
                f"{node.sql('spark')}: an element's number is a whole number; write x[0] or "
                "element_at(x, 1) for the first, element_at(x, -1) for the last"
            )
        return kind

    def _array_contains(self, node: exp.Expr) -> Kind:
        _require_only(node, "this", "expression")
        kind, found = self._kind_of_elements(node), self.kind(node.expression)
        if found != kind:
            raise RuleError(
                f"{node.sql('spark')} looks for a {found} among elements of kind {kind}; write a "
                f"{kind}"
            )
        return "boolean"

    def _kind_of_elements(self, node: exp.Expr) -> Kind:
        """The kind of the elements of the list that a node reads."""
        column = node.this
        if self.kind(column) != "list" or not isinstance(column, exp.Column):
            name = "[...]" if isinstance(node, exp.Bracket) else _named(node)
            raise RuleError(
                f"{name} takes a list, but {column.sql('spark')} is of kind {self.kind(column)}; "
                "name a column that is a list"
            )
        listed = element_type(self._columns[column.name])
        kind = None if listed is None else _kind_of(listed)
        if kind is None:
            raise RuleError(
                f"column {column.name!r} is of type {self._columns[column.name]}, whose elements "
                "rules cannot use; use size"
            )
        return kind

    def _local_time(self, node: exp.Expr) -> Kind:
        _require_only(node, "this", "zone")
        self._require_kind(node, node.this, _TIMESTAMP)
        zone = node.args["zone"]
        if not isinstance(zone, exp.Literal) or zone.this not in available_timezones():
            near = get_close_matches(zone.name, available_timezones(), 1)
            example = "write a time zone such as 'America/New_York'"
            fix = f"did you mean {near[0]!r}?" if near else example
            raise RuleError(f"{zone.sql('spark')} is not a known time zone; {fix}")
        return "timestamp"


def element_type(column_type: str) -> str | None:
    """The type of the elements of a list; None for other types."""
    listed = _LIST.fullmatch(column_type)
    return listed[1] if listed else None


def _kind_of(column_type: str) -> Kind | None:
    """The kind of a column's values; None if rules cannot use them."""
    if element_type(column_type) is not None:
        return "list"
    # Spark compares decimals with other numbers by value.
    return _TYPE_KINDS.get(column_type.partition("(")[0])


def _literal(node: exp.Expr) -> Kind:
    text = node.name
    if not node.args["is_string"]:
        if not _NUMBER_TEXT.fullmatch(text):
            raise RuleError(f"{text} has too many digits; use at most 18")
        return "number"
    if not text.isprintable() or "\\" in text:
        raise RuleError(f"{text!r} holds a backslash or an unprintable character; remove it")
    if "${" in text:
        # Spark substitutes configuration and environment variables, even within a literal.
        raise RuleError(f"{text!r} holds '${{', which Spark would replace; remove it")
    return "string"


def require_whole(node: exp.Expr, argument: exp.Expr | None, least: int, most: int) -> None:
    """Refuses an argument that is no whole number within bounds: Spark would refuse it in a run.

    Args:
        node: The function.
        argument: The argument; None if it is missing.
        least: The least number.
        most: The largest number.
    """
    number = None if argument is None else whole_number(argument)
    if number is None or not least <= number <= most:
        raise RuleError(
            f"{node.sql('spark')} needs a whole number from {least} to {most:,} there; write such "
            "a number"
        )


def whole_number(node: exp.Expr) -> int | None:
    """The value of a literal of up to 9 digits, with or without a minus; None for other nodes."""
    bare = node.this if isinstance(node, exp.Neg) else node
    if not isinstance(bare, exp.Literal) or bare.is_string or not _WHOLE_TEXT.fullmatch(bare.name):
        return None
    return int(bare.name) if bare is node else -int(bare.name)


def require_time(node: exp.Expr) -> None:
    """Refuses text that is not a time when the rule is loaded: Spark would refuse it in a run."""
    fix = "write it as '2013-07-01' or '2013-07-01 12:30:00'"
    if not isinstance(node, exp.Literal) or not _TIME_TEXT.fullmatch(node.name):
        raise RuleError(f"{node.sql('spark')} is not a time; {fix}")
    try:
        datetime.fromisoformat(node.name)
    except ValueError:
        raise RuleError(f"{node.sql('spark')} is not a time; {fix}") from None


def _set_arguments(node: exp.Expr, *names: str) -> list[str]:
    """Returns the names of a node's arguments that have a value, of those in `names` if any."""
    return [
        name
        for name, value in node.args.items()
        if value not in (None, False, []) and (not names or name in names)
    ]


def _require_only(node: exp.Expr, *names: str) -> None:
    """Refuses a node with an argument that the grammar does not check."""
    for name in _set_arguments(node):
        if name not in names and name not in _SILENT_FLAGS.get(type(node), ()):
            raise RuleError(
                f"{node.sql('spark')}: {_named(node)} takes no {name!r} in a rule; remove it"
            )


def _named(node: exp.Expr) -> str:
    if isinstance(node, exp.Anonymous):
        return f"{node.name.lower()}()"
    if type(node) in _SPARK_NAMES:
        return _SPARK_NAMES[type(node)]
    if isinstance(node, exp.Func) and not isinstance(node, (exp.And, exp.Or, exp.Case)):
        return f"{node.sql_name().lower()}()"
    return f"{type(node).__name__.lower()!r}"
