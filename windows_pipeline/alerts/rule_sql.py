"""Compiles an alert rule, which is text from a file, to SQL that is safe to run.

The compiler parses the text, checks the tree against the grammar of rules and writes SQL from
the tree. The text itself never reaches Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Literal

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError

from windows_pipeline.alerts.rule_grammar import COMPARISONS, ExpressionCheck, RuleError
from windows_pipeline.text.limits import MAX_TEXT, TOO_LONG, shown

__all__ = [
    "EPISODE_MS",
    "RuleError",
    "columns_read",
    "compile_expression",
    "errors_of",
    "parse_expression",
    "struct_fields",
]

EPISODE_MS = "episode_ms"
"""A column that only severities read: how long an alert's episode has lasted, up to the end of the
alert's window."""
_SPARK = Dialect.get_or_raise("spark")
_OPERATORS: tuple[type[exp.Expr], ...] = (
    *(exp.And, exp.Or, exp.Not, exp.Mul, exp.Div, exp.Mod, exp.Neg, exp.Add, exp.Sub),
    *(exp.Between, exp.In, exp.Is),
    *COMPARISONS,
)
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_PREFIXES = frozenset({TokenType.NOT, TokenType.DASH, TokenType.TILDE})
_MOST_OPEN = 20
"""How many parentheses, cases and signs before a value may be open at once: few enough for any
caller's stack, Python's and that of Spark's parser."""
_MOST_LEVELS = 100
"""How deep operators and calls may be nested; a chain such as x or y or z nests, too."""
_STRUCT = "struct<"
_TRY: dict[type[exp.Expr], str] = {
    exp.Add: "try_add",
    exp.Sub: "try_subtract",
    exp.Mul: "try_multiply",
}


def compile_expression(
    text: str,
    columns: Mapping[str, str],
    want: Literal["boolean", "number"],
    *,
    null_if_unfit: bool = False,
) -> str:
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
        null_if_unfit: Whether a sum, difference, product or cast that does not fit its type is
            null; otherwise it fails a run.

    Returns:
        SQL for a Spark session in UTC, with all names quoted and every operand in parentheses.

    Raises:
        RuleError: The text is not a single expression, uses something that the grammar does not
            list, names an unknown column, combines operands of different kinds, or has a value
            of another kind than wanted.
    """
    return _compiled(text, tuple(columns.items()), want, null_if_unfit)


@lru_cache(maxsize=1_000)
def columns_read(text: str) -> frozenset[str]:
    """The names of the columns that a rule's expression reads.

    Raises:
        RuleError: The text is not a single expression.
    """
    return frozenset(column.name for column in parse_expression(text).find_all(exp.Column))


@lru_cache(maxsize=1_000)
def _compiled(
    text: str,
    columns: tuple[tuple[str, str], ...],
    want: Literal["boolean", "number"],
    null_if_unfit: bool,  # noqa: FBT001  a cache's key
) -> str:
    """Compiles an expression once: a step uses each rule several times, and compiling is slow."""
    with errors_of(text):
        tree = parse_expression(text)
        readable, struct_of = _readable(columns)
        found = ExpressionCheck(readable).kind(tree)
        if found != want:
            fix = {"boolean": "compare it, as in 'x > 3'", "number": "write a number, as in 'x'"}
            raise RuleError(f"must be a {want}, not a {found}; {fix[want]}")
        safe = _rewritten(_null_if_unfit(tree) if null_if_unfit else tree)
        for column in list(safe.find_all(exp.Column)) if struct_of else ():
            if column.name in struct_of:
                column.set("table", exp.to_identifier(struct_of[column.name]))
        return safe.sql(dialect="spark", identify=True, comments=False)


@contextmanager
def errors_of(text: str) -> Iterator[None]:
    """Puts an expression's text before the errors of its compilation."""
    try:
        yield
    except RuleError as error:
        raise RuleError(f"{_quoted(text)}: {error}") from None
    except (RecursionError, SqlglotError):  # sqlglot wraps some of the former in its own
        raise RuleError(f"{_quoted(text)}: is nested too deeply; simplify it") from None


def _quoted(text: str) -> str:
    return repr(text) if len(text) <= MAX_TEXT else shown(text)


def parse_expression(text: str) -> exp.Expr:
    """Parses a text as one expression; the tree is not checked against the grammar.

    Raises:
        RuleError: The text is not a single expression; the message leaves it out.
    """
    if len(text) > MAX_TEXT:
        raise RuleError(TOO_LONG)
    try:
        tokens = _SPARK.tokenize(text)
        _require_few_open(tokens)
        trees = _SPARK.parse_into(exp.Condition, text)
    except ParseError as error:
        raise RuleError(_not_parsed(error)) from None
    except SqlglotError:
        raise RuleError("is not SQL; look for a quote that is not closed") from None
    if any(token.token_type is TokenType.SEMICOLON for token in tokens):
        raise RuleError("holds a ';'; write one expression without it")
    if not trees or trees[0] is None:
        raise RuleError("is empty; write an expression, as in 'x > 3'")
    _require_few_levels(trees[0])
    return trees[0]


def _not_parsed(error: ParseError) -> str:
    """Says why a text is not a single expression, and the fix."""
    first = error.errors[0] if error.errors else {}
    near = f" at {first['highlight']!r}" if first else ""
    if first.get("description") == "Expecting )":
        fix = "close the parenthesis there"
    elif first.get("highlight") == ")" and first["start_context"].rstrip().endswith("("):
        fix = "write what the function is of, as in 'abs(x)'"
    else:
        fix = "write one expression, as in 'x > 3'"
    return f"is not a single SQL expression{near}; {fix}"


def _require_few_open(tokens: Sequence[Token]) -> None:
    opened, prefixes = 0, 0
    for token in tokens:
        opened += (token.token_type in _OPENING) - (token.token_type in _CLOSING)
        prefixes = prefixes + 1 if token.token_type in _PREFIXES else 0
        if opened + prefixes > _MOST_OPEN:
            raise RuleError(
                f"must have at most {_MOST_OPEN} parentheses, cases, minus signs and 'not' open at "
                "once, but has more; simplify it, or divide it into several rules"
            )


def _require_few_levels(tree: exp.Expr) -> None:
    level, nodes = 0, [tree]
    while nodes:
        level += 1
        if level > _MOST_LEVELS:
            raise RuleError(
                f"must have at most {_MOST_LEVELS} levels, where each operator of a chain is one, "
                "but has more; simplify it ('x in (...)' for many 'or'), or divide it into several "
                "rules"
            )
        nodes = [child for node in nodes for child in node.iter_expressions()]


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


def _rewritten(tree: exp.Expr) -> exp.Expr:
    """Puts operands into parentheses, and makes a division by zero null.

    With the parentheses Spark evaluates the tree that was checked, whatever precedence it gives
    to an operator.
    """
    return tree.transform(_rewritten_node)


def _rewritten_node(node: exp.Expr) -> exp.Expr:
    if isinstance(node, (exp.Div, exp.Mod)):
        zero = exp.Literal.number(0)
        node.set("expression", exp.Nullif(this=node.expression, expression=zero))
    if isinstance(node, exp.Bracket):
        _count_from_1(node)
    for name, value in list(node.args.items()):
        if isinstance(node, _OPERATORS) and isinstance(value, _OPERATORS):
            node.set(name, exp.Paren(this=value))
    return node


def _count_from_1(node: exp.Bracket) -> None:
    """Makes an element that a list does not have null; Spark would fail the run."""
    index = node.expressions[0]
    if not node.args.get("offset"):
        node.set("expressions", [exp.Literal.number(int(index.name) + 1)])
    node.set("offset", 1)
    node.set("safe", True)


def _null_if_unfit(tree: exp.Expr) -> exp.Expr:
    """Replaces operations that fail on a value beyond their type by others that return null."""
    for node in reversed(list(tree.walk())):  # operands before their operation
        safe = _safe_node(node)
        if node is tree:
            tree = safe
        elif safe is not node:
            node.replace(safe)
    return tree


def _safe_node(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Neg) and not isinstance(node.this, exp.Literal):
        return exp.func("try_subtract", exp.Literal.number(0), node.this)
    if isinstance(node, (exp.Cast, exp.TryCast)):
        return exp.TryCast(this=node.this.copy(), to=node.args["to"].copy(), safe=True)
    if isinstance(node, exp.Abs):  # a bigint's least number has no counterpart
        least = exp.Neg(this=exp.Literal.number(2**63))
        return exp.Abs(this=exp.Nullif(this=node.this.copy(), expression=least))
    name = _TRY.get(type(node))
    return node if name is None else exp.func(name, node.this, node.expression)
