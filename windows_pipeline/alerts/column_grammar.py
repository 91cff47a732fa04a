"""The grammar of derived columns: that of rules, with functions of texts and more casts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from sqlglot import exp

from windows_pipeline.alerts.rule_grammar import (
    ExpressionCheck,
    Kind,
    RuleError,
    require_time,
    require_whole,
)

MAX_DEPTH = 50
"""How deep an expression may be nested: Spark's parser needs stack for each level."""
_LONGEST_TEXT = 1_000_000
_TEXT_FUNCTIONS = (
    "concat, contains, endswith, left, length, lower, nullif, replace, right, startswith, "
    "substring, trim, try_cast, upper"
)
TEXT_ARGUMENTS: dict[type[exp.Expr], tuple[Kind, tuple[str, ...]]] = {
    exp.Lower: ("string", ("this",)),
    exp.Upper: ("string", ("this",)),
    exp.Trim: ("string", ("this",)),
    exp.Length: ("number", ("this",)),
    exp.Replace: ("string", ("this", "expression", "replacement")),
    exp.Contains: ("boolean", ("this", "expression")),
    exp.StartsWith: ("boolean", ("this", "expression")),
    exp.EndsWith: ("boolean", ("this", "expression")),
}
"""Functions that take only texts: their value's kind, and sqlglot's names of the texts."""
CASTS: dict[exp.DType, tuple[str, Kind]] = {
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
_CAST_FROM: dict[Kind, frozenset[Kind]] = {
    "string": frozenset({"number", "boolean", "date", "timestamp", "string"}),
    "number": frozenset({"number", "string"}),
    "boolean": frozenset({"boolean", "string"}),
    "date": frozenset({"date", "timestamp", "string"}),
    "timestamp": frozenset({"timestamp", "date", "string"}),
}


class ColumnCheck(ExpressionCheck):
    """Finds the kind of each node of a derived column's expression."""

    users = "derived columns"
    functions = f"{ExpressionCheck.functions}, {_TEXT_FUNCTIONS}"

    def __init__(self, columns: Mapping[str, str]) -> None:
        """Sets the columns that the expression may name, each with its Spark type."""
        super().__init__(columns)
        self._depth = 0
        self._found: dict[int, Kind] = {}
        self._of_columns: dict[type[exp.Expr], Callable[[exp.Expr], Kind]] = {
            exp.Cast: self._cast_value,
            exp.TryCast: self._cast_value,
            exp.Concat: self._concat,
            exp.Left: self._end_of_text,
            exp.Right: self._end_of_text,
            exp.Substring: self._substring,
            exp.Nullif: self._nullif,
            **dict.fromkeys(TEXT_ARGUMENTS, self._of_texts),
        }

    def kind(self, node: exp.Expr) -> Kind:
        """Returns the kind of a node's value.

        Raises:
            RuleError: The grammar does not list the node, or not with these operands.
        """
        if id(node) in self._found:
            return self._found[id(node)]
        if self._depth >= MAX_DEPTH:
            raise RuleError(
                f"is nested more than {MAX_DEPTH} levels deep; compute a part of it in a derived "
                "column of its own"
            )
        self._depth += 1
        try:
            of_columns = self._of_columns.get(type(node), super().kind)
            self._found[id(node)] = of_columns(node)
            return self._found[id(node)]
        finally:
            self._depth -= 1

    def _fix(self, node: exp.Expr) -> str:
        if isinstance(node, exp.DPipe):
            return "to join texts, write concat(a, b)"
        return super()._fix(node)

    def _of_texts(self, node: exp.Expr) -> Kind:
        result, names = TEXT_ARGUMENTS[type(node)]
        self._require_only(node, *names)
        for name in names:
            if node.args.get(name) is None:
                raise RuleError(f"{node.sql('spark')} lacks an argument; write all of them")
            self._require_text(node, node.args[name])
        return result

    def _require_text(self, node: exp.Expr, operand: exp.Expr) -> None:
        found = self.kind(operand)
        if found != "string":
            written = operand.sql("spark")
            raise RuleError(
                f"{node.sql('spark')} takes texts, but {written} is a {found}; write "
                f"cast({written} as string)"
            )

    def _concat(self, node: exp.Expr) -> Kind:
        self._require_only(node, "expressions")
        for operand in node.expressions:
            self._require_text(node, operand)
        return "string"

    def _end_of_text(self, node: exp.Expr) -> Kind:
        self._require_only(node, "this", "expression")
        self._require_text(node, node.this)
        require_whole(node, node.args.get("expression"), 0, _LONGEST_TEXT)
        return "string"

    def _substring(self, node: exp.Expr) -> Kind:
        self._require_only(node, "this", "start", "length")
        self._require_text(node, node.this)
        require_whole(node, node.args.get("start"), 1, _LONGEST_TEXT)
        if node.args.get("length") is not None:
            require_whole(node, node.args["length"], 0, _LONGEST_TEXT)
        return "string"

    def _nullif(self, node: exp.Expr) -> Kind:
        self._require_only(node, "this", "expression")
        self._comparable(node, node.this, node.expression)
        return self.kind(node.this)

    def _cast_value(self, node: exp.Expr) -> Kind:
        self._require_only(node, "this", "to", "safe")
        found, target = self.kind(node.this), cast_type(node)[1]
        if target not in _CAST_FROM.get(found, ()):
            fix = "cast numbers and booleans to and from string, and times to times or string"
            raise RuleError(f"{node.sql('spark')} casts a {found} to a {target}; {fix}")
        is_text = isinstance(node.this, exp.Literal) and found == "string"
        if is_text and target in ("date", "timestamp") and not node.args.get("safe"):
            require_time(node.this)
        return target


def cast_type(node: exp.Expr) -> tuple[str, Kind]:
    """Returns the type that a cast names, as Spark writes it, and its kind.

    Raises:
        RuleError: A value cannot be cast to that type.
    """
    to = node.args["to"]
    digits = [parameter.name for parameter in to.expressions]
    if to.this is exp.DType.DECIMAL and len(digits) == 2 and all(map(str.isdecimal, digits)):
        precision, scale = map(int, digits)
        if 1 <= precision <= 38 and scale <= precision:
            return f"DECIMAL({precision},{scale})", "number"
    if to.this not in CASTS or digits:
        fix = "cast to string, boolean, bigint, int, double, decimal(12,2), date or timestamp"
        raise RuleError(f"{node.sql('spark')}: derived columns cannot cast to that type; {fix}")
    return CASTS[to.this]
