"""Finds usual mistakes in the text of a refused rule: foreign operators and parentheses."""

from __future__ import annotations

from itertools import groupby

from sqlglot import TokenType
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

_SPARK = Dialect.get_or_raise("spark")
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


def hint(text: str) -> str | None:
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
