"""What is slipped in a rule that cannot be parsed: signs of other languages, parentheses."""

from __future__ import annotations

from itertools import groupby

from sqlglot import TokenType
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

_SPARK = Dialect.get_or_raise("spark")
_SIGNS = frozenset("<>=!&≥≤≠")
_MEANT = {
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
_IN_ONE_PIECE = ("==", "!=", "<>", ">=", "<=")


def slip(text: str) -> str | None:
    """What is slipped in a refused rule, with the cure; None where it is something else."""
    try:
        tokens = _SPARK.tokenize(text)
    except SqlglotError:
        return None
    # What stands in quotes means itself.
    quoted = (TokenType.STRING, TokenType.IDENTIFIER)
    signs = [token.text for token in tokens if token.token_type not in quoted]
    for is_operator, run in groupby(signs, key=_SIGNS.issuperset):
        parts = list(run)
        operator = "".join(parts)
        if is_operator and operator in _MEANT:
            return f"has {operator!r}, which is no operator; write {_MEANT[operator]}"
        if is_operator and operator in _IN_ONE_PIECE and len(parts) > 1:
            return f"has {' '.join(parts)!r} in two pieces; write {operator!r}"
    opened, closed = signs.count("("), signs.count(")")
    if opened > closed:
        return f"has {opened} '(' and {closed} ')'; write the missing ')'"
    if opened < closed:
        return f"has {opened} '(' and {closed} ')'; write the missing '(', or leave a ')' out"
    return None
