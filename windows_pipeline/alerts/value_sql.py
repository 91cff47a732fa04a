"""Writes the SQL of an expression's tree, with its type and the condition that it fails.

The grammar fails closed: it refuses a node that it does not list, and a node's argument that it
does not list. Each operator has one type: bigint, double, or a decimal that is wide enough for
every result. No expression raises: where a number, time or text does not fit, the value is null,
and a condition says so (rules A6, E5, G3).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches

from sqlglot import exp

from windows_pipeline.alerts.casts import CAST_FROM, cast
from windows_pipeline.alerts.nodes import (
    bounded_whole,
    named,
    require_literal,
    require_only,
    require_time,
    require_zone,
    seconds_of,
    whole_number,
)
from windows_pipeline.alerts.parsing import RuleError
from windows_pipeline.alerts.typed_sql import (
    NULL,
    Kind,
    ValueSql,
    alike,
    any_fails,
    as_type,
    case_of,
    decimal_type,
    digits,
    either_fails,
    element_type,
    kind_of,
    result_type,
    tried,
    within_years,
)

_FUNCTIONS = (
    "abs, array_contains, ceil, coalesce, concat, contains, date, day, dayofweek, element_at, "
    "endswith, floor, from_utc_timestamp, greatest, hour, if, least, left, length, lower, minute, "
    "month, nullif, replace, right, round, size, startswith, substring, to_date, trim, try_cast, "
    "unix_millis, unix_seconds, upper, year"
)
_MOST_SQL = 100_000
_MOST_BYTES = 1 << 20
"""The most bytes of a text that an expression joins or replaces, as UTF-8."""
_LONGEST_TEXT = 1_000_000
_MOST_PLACES = 18
_MOST_SECONDS = 10_000 * 365 * 86_400
_LEAST_BIGINT = "(-9223372036854775807L - 1L)"
_TIME: tuple[Kind, ...] = ("date", "timestamp")
_SIGNS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.NullSafeEQ: "<=>",
}
_ARITHMETIC: dict[type[exp.Expr], tuple[str, str]] = {
    exp.Add: ("+", "TRY_ADD"),
    exp.Sub: ("-", "TRY_SUBTRACT"),
    exp.Mul: ("*", "TRY_MULTIPLY"),
    exp.Mod: ("%", ""),
}
"""The operator, and the function that is null where whole numbers overflow."""
_WHOLE_PARTS: dict[type[exp.Expr], tuple[str, tuple[Kind, ...]]] = {
    exp.Hour: ("HOUR", ("timestamp",)),
    exp.Minute: ("MINUTE", ("timestamp",)),
    exp.Day: ("DAY", _TIME),
    exp.DayOfWeek: ("DAYOFWEEK", _TIME),
    exp.Month: ("MONTH", _TIME),
    exp.Year: ("YEAR", _TIME),
    exp.UnixMillis: ("UNIX_MILLIS", ("timestamp",)),
    exp.UnixSeconds: ("UNIX_SECONDS", ("timestamp",)),
    exp.Length: ("LENGTH", ("string",)),
    exp.ArraySize: ("SIZE", ("list",)),
}
"""Functions whose value is a whole number, and what they take. Spark's value is of 32 bits, and
would overflow early."""
_OF_TEXTS: dict[type[exp.Expr], tuple[str, str, tuple[str, ...]]] = {
    exp.Lower: ("LOWER", "string", ("this",)),
    exp.Upper: ("UPPER", "string", ("this",)),
    exp.Trim: ("TRIM", "string", ("this",)),
    exp.Contains: ("CONTAINS", "boolean", ("this", "expression")),
    exp.StartsWith: ("STARTSWITH", "boolean", ("this", "expression")),
    exp.EndsWith: ("ENDSWITH", "boolean", ("this", "expression")),
}
"""Functions that take only texts: the name in Spark, the value's type, sqlglot's names of the
texts."""
_PARTS_OF_TEXTS: dict[type[exp.Expr], tuple[str, Mapping[str, int]]] = {
    exp.Left: ("LEFT", {"expression": 0}),
    exp.Right: ("RIGHT", {"expression": 0}),
    exp.Substring: ("SUBSTRING", {"start": 1, "length": 0}),
}
"""Functions of a text and numbers: the name in Spark, and the least value of each number."""
# The fix for operators of other languages, which mean something else in SQL.
_OPERATOR_FIXES: dict[type[exp.Expr], str] = {
    exp.BitwiseLeftShift: "to compare, write one '<'",
    exp.BitwiseRightShift: "to compare, write one '>'",
    exp.BitwiseAnd: "if both conditions must hold, write AND",
    exp.BitwiseOr: "if either condition must hold, write OR",
    exp.DPipe: "to join texts, write concat(a, b); if either condition must hold, write OR",
    exp.Command: "write if(condition, a, b), or case when condition then a else b end",
}
_OF_LISTS = "use size(x), x[0], element_at(x, -1) or array_contains(x, value)"
_ONE, _TWO = ("this",), ("this", "expression")
_FIELD = re.compile(r"[A-Za-z]\w*", re.ASCII)


def written(
    tree: exp.Expr, columns: Mapping[str, ValueSql], *, may_be_struct: bool = False
) -> ValueSql:
    """Writes the SQL of a tree.

    Args:
        tree: The tree.
        columns: What each name that the tree may have stands for.
        may_be_struct: Whether the whole may be `struct(...)`, which no part may be.

    Raises:
        RuleError: The grammar does not list a node, or not with these operands or arguments; a
            column is unknown; a result needs a decimal of more than 38 digits; or the SQL is too
            long for Spark.
    """
    return _Writer(columns, tree.unnest() if may_be_struct else None).value(tree)


class _Writer:
    """Checks and writes each node of a tree."""

    def __init__(self, columns: Mapping[str, ValueSql], may_be_struct: exp.Expr | None) -> None:
        self._columns = columns
        self._may_be_struct = may_be_struct
        self._interval_seconds = 0
        self._nodes: dict[
            type[exp.Expr], tuple[Callable[[exp.Expr], ValueSql], tuple[str, ...]]
        ] = {
            exp.Column: (self._column, ("this", "table", "db", "catalog")),
            exp.Literal: (_literal, ("this", "is_string")),
            exp.Boolean: (lambda node: ValueSql(str(node.this).upper(), "boolean"), _ONE),
            exp.Null: (lambda _: NULL, ()),
            exp.Interval: (self._interval, ("this", "unit")),
            exp.Paren: (lambda node: self.value(node.this), _ONE),
            exp.Not: (self._not, _ONE),
            exp.Is: (self._is, _TWO),
            exp.In: (self._in, ("this", "expressions")),
            exp.Between: (self._between, ("this", "low", "high")),
            **dict.fromkeys((exp.And, exp.Or), (self._joined, _TWO)),
            **dict.fromkeys(_SIGNS, (self._comparison, _TWO)),
            **dict.fromkeys(_ARITHMETIC, (self._arithmetic, _TWO)),
            exp.Div: (self._division, _TWO),
            exp.Neg: (lambda node: self._sign("(-{})", node), _ONE),
            exp.Abs: (lambda node: self._sign("ABS({})", node), _ONE),
            exp.Round: (self._round, ("this", "decimals")),
            exp.Floor: (lambda node: self._whole("FLOOR", node), _ONE),
            exp.Ceil: (lambda node: self._whole("CEIL", node), _ONE),
            **dict.fromkeys(_WHOLE_PARTS, (self._whole_part, _ONE)),
            exp.TsOrDsToDate: (self._date, _ONE),
            exp.AtTimeZone: (self._local_time, ("this", "zone")),
            **dict.fromkeys((exp.Cast, exp.TryCast), (self._cast, ("this", "to", "safe"))),
            exp.Case: (self._case, ("ifs", "default")),
            exp.If: (self._if, ("this", "true", "false")),
            exp.Coalesce: (self._coalesce, ("this", "expressions")),
            exp.Least: (lambda node: self._extreme("LEAST", node), ("this", "expressions")),
            exp.Greatest: (lambda node: self._extreme("GREATEST", node), ("this", "expressions")),
            exp.Nullif: (self._nullif, _TWO),
            **{node: (self._of_texts, arguments) for node, (_, _, arguments) in _OF_TEXTS.items()},
            **{
                node: (self._part_of_text, ("this", *numbers))
                for node, (_, numbers) in _PARTS_OF_TEXTS.items()
            },
            exp.Replace: (self._replace, ("this", "expression", "replacement")),
            exp.Concat: (self._concat, ("expressions",)),
            exp.Bracket: (self._element, ("this", "expressions", "offset", "safe")),
            exp.ArrayContains: (self._array_contains, _TWO),
            exp.Struct: (self._struct, ("expressions",)),
        }
        """What writes each node that an expression may have, and the node's arguments."""

    def value(self, node: exp.Expr) -> ValueSql:
        if type(node) not in self._nodes:
            raise RuleError(f"uses {named(node)}, which expressions cannot use; {self._fix(node)}")
        write, arguments = self._nodes[type(node)]
        require_only(node, *arguments)
        found = write(node)
        if len(found.sql) + len(found.fails or "") > _MOST_SQL:
            raise RuleError("is too long for Spark; split it up, or simplify it")
        return found

    def _struct(self, node: exp.Expr) -> ValueSql:
        """A struct of values; each has the name of its column, or the one after `as`."""
        if node is not self._may_be_struct:
            raise RuleError(
                f"uses {named(node)}, which expressions cannot use; a struct is the whole value of "
                "an aggregate of your own, as in my_module:name(struct(a, b))"
            )
        fields: dict[str, ValueSql] = {}
        for field in node.expressions:
            require_only(field, *_TWO)
            name, value = field.name, self.value(field.expression)
            written = field.expression.sql("spark")
            if not _FIELD.fullmatch(name):
                raise RuleError(
                    f"names a field of the struct {name!r}; use letters, digits and _, as in "
                    f"{written} as x"
                )
            if name.lower() in map(str.lower, fields):
                raise RuleError(f"has two fields {name!r}; rename one, as in {written} as other")
            if value.kind in ("null", "interval"):
                raise RuleError(f"{written} is no value of a record; name a column")
            fields[name] = value
        if not fields:
            raise RuleError("is a struct of nothing; name its columns, as in struct(a, b)")
        sql = ", ".join(f"'{name}', {value.sql}" for name, value in fields.items())
        kind = ",".join(f"{name}:{value.type}" for name, value in fields.items())
        return ValueSql(f"NAMED_STRUCT({sql})", f"struct<{kind}>", any_fails(fields.values()))

    def _fix(self, node: exp.Expr) -> str:
        if isinstance(node, exp.AggFunc):
            return f"write it under aggregates, or use one of {', '.join(self._columns)}"
        if type(node) in _OPERATOR_FIXES:
            return _OPERATOR_FIXES[type(node)]
        listed = f"case, in, between, is null and {_FUNCTIONS}"
        return f"use columns, literals, operators, {listed}"

    def _operand(self, node: exp.Expr, operand: exp.Expr | None, *kinds: Kind) -> ValueSql:
        """The value of a node's operand, which must be of one of the kinds."""
        if operand is None:
            raise RuleError(f"{node.sql('spark')} lacks an argument; write all of them")
        value = self.value(operand)
        if value.kind not in kinds:
            wanted, written = " or ".join(kinds), operand.sql("spark")
            castable = kinds == ("string",) and value.kind in CAST_FROM
            example = f", as in cast({written} as string)" if castable else ""
            raise RuleError(
                f"{named(node)} takes a {wanted}, but {written} is a {value.kind}; pass a "
                f"{wanted}{example}"
            )
        return value

    def _column(self, node: exp.Expr) -> ValueSql:
        name = node.name
        if any(node.args.get(part) for part in ("table", "db", "catalog")):
            raise RuleError(
                f"{node.sql('spark')!r} is qualified; write the name of the column alone"
            )
        if name not in self._columns:
            near = get_close_matches(name, self._columns, 1)
            known = f"use one of {', '.join(self._columns)}, or put text in single quotes"
            fix = f"did you mean {near[0]!r}? Otherwise {known}" if near else known
            raise RuleError(f"there is no column {name!r}; {fix}")
        column = self._columns[name]
        if column.kind is None:
            raise RuleError(
                f"column {name!r} is of type {column.type}, which expressions cannot use; use "
                "another column"
            )
        return column

    def _interval(self, node: exp.Expr) -> ValueSql:
        seconds = seconds_of(node)
        # All intervals count: a time to which many are added may lie beyond Spark's last one.
        self._interval_seconds += seconds
        if self._interval_seconds > _MOST_SECONDS:
            what = "is" if seconds > _MOST_SECONDS else "and the intervals before it together are"
            raise RuleError(
                f"{node.sql('spark')} {what} longer than 10,000 years; write a shorter one"
            )
        return ValueSql(node.sql("spark"), "interval")

    def _not(self, node: exp.Expr) -> ValueSql:
        value = self._operand(node, node.this, "boolean")
        return ValueSql(f"(NOT {value.sql})", "boolean", value.fails)

    def _joined(self, node: exp.Expr) -> ValueSql:
        """`and` and `or`: the right side is not computed where the left decides."""
        left = self._operand(node, node.this, "boolean")
        right = self._operand(node, node.expression, "boolean")
        sign, goes_on = (
            ("AND", left.sql) if isinstance(node, exp.And) else ("OR", f"NOT {left.sql}")
        )
        fails = left.fails
        if right.fails:
            fails = either_fails(fails, f"(COALESCE({goes_on}, TRUE) AND {right.fails})")
        return ValueSql(f"({left.sql} {sign} {right.sql})", "boolean", fails)

    def _comparison(self, node: exp.Expr) -> ValueSql:
        left, right = values = self._comparable(node, node.this, node.expression)
        sql = f"({left.sql} {_SIGNS[type(node)]} {right.sql})"
        return ValueSql(sql, "boolean", any_fails(values))

    def _between(self, node: exp.Expr) -> ValueSql:
        operands = (node.this, node.args["low"], node.args["high"])
        value, low, high = values = self._comparable(node, *operands)
        sql = f"({value.sql} BETWEEN {low.sql} AND {high.sql})"
        return ValueSql(sql, "boolean", any_fails(values))

    def _in(self, node: exp.Expr) -> ValueSql:
        for item in node.expressions:
            bare = item.this if isinstance(item, exp.Neg) else item
            if not isinstance(bare, exp.Literal):
                raise RuleError(
                    f"{item.sql('spark')!r} in 'in (...)' is not a literal; write literals only"
                )
        if not node.expressions:
            raise RuleError("'in ()' is empty; write literals in it")
        value, *items = values = self._comparable(node, node.this, *node.expressions)
        sql = f"({value.sql} IN ({', '.join(item.sql for item in items)}))"
        return ValueSql(sql, "boolean", any_fails(values))

    def _nullif(self, node: exp.Expr) -> ValueSql:
        value, other = values = self._comparable(node, node.this, node.expression)
        return ValueSql(f"NULLIF({value.sql}, {other.sql})", value.type, any_fails(values))

    def _comparable(self, node: exp.Expr, *operands: exp.Expr) -> list[ValueSql]:
        """Checks that values can be compared: booleans use and, or, not; nulls use is null."""
        values = [self.value(operand) for operand in operands]
        kinds = {value.kind for value in values}
        if "null" in kinds:
            raise RuleError(f"{node.sql('spark')} compares with null; write 'is null'")
        if kinds & {*_TIME} and kinds <= {*_TIME, "string"}:
            for operand, value in zip(operands, values, strict=True):
                if value.kind == "string":
                    require_time(operand)
        elif "list" in kinds:
            raise RuleError(f"{node.sql('spark')} compares a list; {_OF_LISTS}")
        elif len(kinds) > 1 or kinds & {"boolean", "interval"}:
            raise RuleError(
                f"{node.sql('spark')} compares {' with '.join(sorted(map(str, kinds)))}; compare "
                "numbers with numbers, strings with strings, times with times, and join booleans "
                "by and, or, not"
            )
        return values

    def _is(self, node: exp.Expr) -> ValueSql:
        value = self.value(node.this)
        null = isinstance(node.expression, exp.Null)
        truth = isinstance(node.expression, exp.Boolean) and value.kind == "boolean"
        if not null and not truth:
            fix = "write 'is null' or 'is not null', or compare values by '='"
            raise RuleError(f"{node.sql('spark')}: 'is' takes null, true or false only; {fix}")
        sql = f"({value.sql} IS {node.expression.sql('spark')})"
        return ValueSql(sql, "boolean", value.fails)

    def _arithmetic(self, node: exp.Expr) -> ValueSql:
        sign, try_function = _ARITHMETIC[type(node)]
        if isinstance(node, (exp.Add, exp.Sub)):
            left, right = self.value(node.this), self.value(node.expression)
            kinds = (left.kind, right.kind)
            if isinstance(node, exp.Add) and kinds == ("interval", "timestamp"):
                left, right, kinds = right, left, (kinds[1], kinds[0])
            if kinds == ("timestamp", "interval"):
                moved = f"{try_function}({left.sql}, {right.sql})"
                return tried(within_years(moved), "timestamp", [left])
            if kinds != ("number", "number"):
                raise RuleError(
                    f"{node.sql('spark')} adds or subtracts {left.kind} and {right.kind}; use two "
                    "numbers, or a timestamp and one interval of one unit, such as interval 90 "
                    "minutes"
                )
        else:
            left = self._operand(node, node.this, "number")
            right = self._operand(node, node.expression, "number")
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
            return tried(f"{try_function}({first}, {second})", kind, operands)
        return ValueSql(f"({first} {sign} {second})", kind, any_fails(operands))

    def _division(self, node: exp.Expr) -> ValueSql:
        sides = (node.this, node.expression)
        operands = [as_type("double", self._operand(node, side, "number")) for side in sides]
        first, second = (operand.sql for operand in operands)
        return ValueSql(f"({first} / NULLIF({second}, 0D))", "double", any_fails(operands))

    def _sign(self, form: str, node: exp.Expr) -> ValueSql:
        value = self._operand(node, node.this, "number")
        if value.type == "bigint" and not isinstance(node.this, exp.Literal):
            return tried(form.format(f"NULLIF({value.sql}, {_LEAST_BIGINT})"), "bigint", [value])
        return ValueSql(form.format(value.sql), value.type, value.fails)

    def _round(self, node: exp.Expr) -> ValueSql:
        """Spark's `round`, which keeps the type; a decimal loses the digits that are rounded."""
        value, decimals = self._operand(node, node.this, "number"), node.args.get("decimals")
        places = 0
        if decimals is not None:
            places = bounded_whole(node, decimals, -_MOST_PLACES, _MOST_PLACES)
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

    def _whole(self, name: str, node: exp.Expr) -> ValueSql:
        value = self._operand(node, node.this, "number")
        if value.type == "double":
            # Spark's floor of a large number is the largest bigint.
            fitting = f"CASE WHEN TRY_CAST({value.sql} AS BIGINT) IS NOT NULL THEN {value.sql} END"
            return tried(f"{name}({fitting})", "bigint", [value])
        precision, scale = digits(value)
        if scale == 0:
            return value
        return ValueSql(f"{name}({value.sql})", decimal_type(precision - scale + 1, 0), value.fails)

    def _whole_part(self, node: exp.Expr) -> ValueSql:
        name, kinds = _WHOLE_PARTS[type(node)]
        # sqlglot wraps the operand of year() and the like; Spark takes the column itself.
        inner = node.this.this if isinstance(node.this, exp.TsOrDsToDate) else node.this
        value = self._operand(node, inner, *kinds)
        return ValueSql(f"CAST({name}({value.sql}) AS BIGINT)", "bigint", value.fails)

    def _date(self, node: exp.Expr) -> ValueSql:
        value = self._operand(node, node.this, *_TIME)
        return ValueSql(f"CAST({value.sql} AS DATE)", "date", value.fails)

    def _local_time(self, node: exp.Expr) -> ValueSql:
        value, zone = self._operand(node, node.this, "timestamp"), node.args["zone"]
        require_zone(zone)
        sql = f"FROM_UTC_TIMESTAMP({value.sql}, {zone.sql('spark')})"
        return ValueSql(sql, "timestamp", value.fails)

    def _cast(self, node: exp.Expr) -> ValueSql:
        return cast(node, self.value(node.this))

    def _case(self, node: exp.Expr) -> ValueSql:
        for branch in node.args["ifs"]:
            require_only(branch, "this", "true")
        return self._branches(node, node.args["ifs"], node.args.get("default"))

    def _if(self, node: exp.Expr) -> ValueSql:
        return self._branches(node, [node], node.args.get("false"))

    def _branches(
        self, node: exp.Expr, branches: Sequence[exp.Expr], default: exp.Expr | None
    ) -> ValueSql:
        conditions = [self._operand(node, branch.this, "boolean") for branch in branches]
        results = [self.value(branch.args["true"]) for branch in branches]
        otherwise = NULL if default is None else self.value(default)
        *taken, other = _of_one_type(node, [*results, otherwise])
        return case_of(list(zip(conditions, taken, strict=True)), other)

    def _coalesce(self, node: exp.Expr) -> ValueSql:
        values = self._one_of(node)
        fails: str | None = None
        # A value is computed only where all earlier values are null.
        for value in reversed(values):
            later = f"({value.sql} IS NULL AND {fails})" if fails else None
            fails = either_fails(value.fails, later)
        return ValueSql(_call("COALESCE", values), values[0].type, fails)

    def _extreme(self, name: str, node: exp.Expr) -> ValueSql:
        values = self._one_of(node)
        return ValueSql(_call(name, values), values[0].type, any_fails(values))

    def _one_of(self, node: exp.Expr) -> list[ValueSql]:
        if not node.expressions:
            raise RuleError(f"{named(node)} takes two values or more; add another value")
        return _of_one_type(node, [self.value(each) for each in (node.this, *node.expressions)])

    def _of_texts(self, node: exp.Expr) -> ValueSql:
        name, kind, arguments = _OF_TEXTS[type(node)]
        values = [self._operand(node, node.args.get(each), "string") for each in arguments]
        return ValueSql(_call(name, values), kind, any_fails(values))

    def _part_of_text(self, node: exp.Expr) -> ValueSql:
        name, numbers = _PARTS_OF_TEXTS[type(node)]
        text, arguments = self._operand(node, node.this, "string"), ""
        for argument, least in numbers.items():
            number = node.args.get(argument)
            if number is not None or argument != "length":
                # Spark's numbers of characters have 32 bits.
                arguments += f", {bounded_whole(node, number, least, _LONGEST_TEXT)}"
        return ValueSql(f"{name}({text.sql}{arguments})", "string", text.fails)

    def _replace(self, node: exp.Expr) -> ValueSql:
        arguments = ("this", "expression", "replacement")
        values = [self._operand(node, node.args.get(each), "string") for each in arguments]
        replaced = ValueSql(_call("REPLACE", values), "string", any_fails(values))
        old, new = node.expression, node.args["replacement"]
        are_literals = isinstance(old, exp.Literal) and isinstance(new, exp.Literal)
        if are_literals and len(new.name.encode()) <= len(old.name.encode()):
            return replaced  # the text does not grow
        text, searched, added = (value.sql for value in values)
        removed = f"OCTET_LENGTH({text}) - OCTET_LENGTH(REPLACE({text}, {searched}, ''))"
        times = f"(({removed}) DIV NULLIF(OCTET_LENGTH({searched}), 0))"
        return _bounded(replaced, f"({times} * OCTET_LENGTH({added}))")

    def _concat(self, node: exp.Expr) -> ValueSql:
        values = [self._operand(node, text, "string") for text in _joined_texts(node)]
        # 0L: the sum of lengths of 32 bits would overflow.
        lengths = [f"(0L + OCTET_LENGTH({value.sql}))" for value in values]
        joined = ValueSql(_call("CONCAT", values), "string", any_fails(values))
        return _bounded(joined, _total(["0L", *lengths]))

    def _element(self, node: exp.Expr) -> ValueSql:
        """An element of a list, by a number from 0 in x[0], from 1 in element_at(x, 1)."""
        listed, kind = self._list(node)
        number, from_1 = whole_number(node.expressions[0]), bool(node.args.get("offset"))
        is_none = number is None or (number == 0 if from_1 else number < 0)
        if number is None or len(node.expressions) > 1 or is_none:
            raise RuleError(
                f"{node.sql('spark')}: an element's number is a whole number; write x[0] or "
                "element_at(x, 1) for the first, element_at(x, -1) for the last"
            )
        # x[0] of Spark fails the run where the list has no such element.
        sql = f"TRY_ELEMENT_AT({listed.sql}, {number if from_1 else number + 1})"
        return ValueSql(sql, kind, listed.fails)

    def _array_contains(self, node: exp.Expr) -> ValueSql:
        listed, kind = self._list(node)
        value, wanted = self.value(node.expression), kind_of(kind)
        if value.kind != wanted:
            raise RuleError(
                f"{node.sql('spark')} looks for a {value.kind} among elements of kind {wanted}; "
                f"write a {wanted}"
            )
        values = [listed, value]
        return ValueSql(_call("ARRAY_CONTAINS", values), "boolean", any_fails(values))

    def _list(self, node: exp.Expr) -> tuple[ValueSql, str]:
        """The list that a node reads, which must be a column, and the type of its elements."""
        listed = self.value(node.this)
        if listed.kind != "list" or not isinstance(node.this, exp.Column):
            raise RuleError(
                f"{named(node)} takes a list, but {node.this.sql('spark')} is of kind "
                f"{listed.kind}; name a column that is a list"
            )
        kind = element_type(listed.type) or ""
        if kind_of(kind) is None:
            raise RuleError(
                f"column {node.this.name!r} is of type {listed.type}, whose elements expressions "
                "cannot use; use size"
            )
        return listed, kind


def _call(name: str, values: Sequence[ValueSql]) -> str:
    return f"{name}({', '.join(value.sql for value in values)})"


def _of_one_type(node: exp.Expr, values: Sequence[ValueSql]) -> list[ValueSql]:
    """The values, which must be of one kind, cast to one type that holds all of them."""
    kinds = {str(value.kind) for value in values} - {"null"}
    if "list" in kinds:
        raise RuleError(f"{named(node)} takes no list; {_OF_LISTS}")
    if len(kinds) != 1:
        found = " or a ".join(sorted(kinds)) or "null"
        raise RuleError(
            f"{named(node)} returns a {found}; make all its values of one kind, and not all null"
        )
    return alike(values)


def _literal(node: exp.Expr) -> ValueSql:
    require_literal(node)
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
    require_only(node, "expressions")
    found: list[exp.Expr] = []
    for operand in node.expressions:
        inner = operand.unnest()
        found += _joined_texts(inner) if type(inner) is exp.Concat else [operand]
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
