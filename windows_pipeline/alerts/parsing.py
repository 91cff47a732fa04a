"""Parses the text of a rule or another expression: one tree, neither long nor deep.

`value_sql.written` says whether the tree is allowed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import groupby

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, SqlglotError

from windows_pipeline.text.limits import MAX_TEXT, TOO_LONG, shown

_SPARK = Dialect.get_or_raise("spark")
_OPENING = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSING = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_PREFIXES = frozenset({TokenType.NOT, TokenType.DASH, TokenType.TILDE})
_MOST_OPEN = 20
"""How many parentheses, cases and signs before a value may be open at once: few enough for any
caller's stack, Python's and that of Spark's parser."""
_MOST_LEVELS = 100
"""How deep operators and calls may be nested; a chain such as x or y or z nests, too."""
_OPERATOR_SIGNS = frozenset("<>=!&≥≤≠")
_FIXES = {
    "&&": "AND",
    "=>": "'>='",
    ">==": "'>='",
    "≥": "'>='",
    "=<": "'<='",
    "<==": "'<='",
    "≤": "'<='",
    "===": "'='",
    "!==": "'!='",
    "≠": "'!='",
}
_WITHOUT_BLANKS = ("==", "!=", "<>", ">=", "<=")


class RuleError(ValueError):
    """An expression that cannot be used; the message has its text, what is wrong and the fix.

    Attributes:
        reason: What is wrong and the fix, without the text.
    """

    def __init__(self, reason: str, text: str | None = None) -> None:
        """Sets the reason, and the text if it is known yet."""
        self.reason = reason
        super().__init__(reason if text is None else f"{_quoted(text)}: {reason}")


@lru_cache(maxsize=1_000)
def columns_read(text: str) -> frozenset[str]:
    """The names of the columns that an expression reads.

    Raises:
        RuleError: The text is not a single expression.
    """
    with errors_of(text):
        return frozenset(column.name for column in parse_expression(text).find_all(exp.Column))


@lru_cache(maxsize=1_000)
def canonical(text: str) -> str:
    """Returns one text for all expressions that differ only in blanks and the case of keywords.

    Raises:
        RuleError: The text is not a single expression.
    """
    tree = parse_expression(text)
    for field in list(tree.find_all(exp.PropertyEQ)):  # of a struct, whose columns name themselves
        column = field.expression
        if isinstance(column, exp.Column) and column.name == field.name:
            field.replace(column)
    return tree.sql(dialect="spark", comments=False)


@contextmanager
def errors_of(text: str) -> Iterator[None]:
    """Adds to errors the expression's text, and the usual mistake if the expression has one."""
    try:
        yield
    except RuleError as error:
        usual = _usual_mistake(text) if len(text) <= MAX_TEXT else None
        raise RuleError(usual or error.reason, text) from None
    except (RecursionError, SqlglotError):  # sqlglot wraps some of the former in its own
        raise RuleError("is nested too deeply; simplify it", text) from None


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


def _usual_mistake(text: str) -> str | None:
    """Returns the usual mistake in a refused rule, with its fix; None if the rule has none."""
    try:
        tokens = _SPARK.tokenize(text)
    except SqlglotError:
        return None
    # Signs within quotes are text, not operators.
    quoted = (TokenType.STRING, TokenType.IDENTIFIER)
    signs = [token.text for token in tokens if token.token_type not in quoted]
    for is_operator, run in groupby(signs, key=_OPERATOR_SIGNS.issuperset):
        parts = list(run)
        operator = "".join(parts)
        if is_operator and operator in _FIXES:
            return f"has {operator!r}, which is not an operator; write {_FIXES[operator]}"
        if is_operator and operator in _WITHOUT_BLANKS and len(parts) > 1:
            return f"has {' '.join(parts)!r}, an operator with a blank in it; write {operator!r}"
    opened, closed = signs.count("("), signs.count(")")
    if opened > closed:
        return f"has {opened} '(' and {closed} ')'; add the missing ')'"
    if opened < closed:
        return f"has {opened} '(' and {closed} ')'; add the missing '(', or remove a ')'"
    return None


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
