"""Parses the calls of window functions in SQL text, token by token; runs nothing.

`sliding_windows(TABLE(events) PARTITION BY user, time_col => 'ts', ...)` is what Spark's grammar
calls a table function with a table argument; sqlglot's does not know these arguments.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import Token, TokenType
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import SqlglotError

from windows_pipeline.text.limits import shown

_SPARK = Dialect.get_or_raise("spark")
_NAME = re.compile(r"\w+")
_OPENS, _CLOSES = TokenType.L_PAREN, TokenType.R_PAREN
_LITERALS = (TokenType.STRING, TokenType.NUMBER, TokenType.TRUE, TokenType.FALSE)

Value = str | int | bool


@dataclass(frozen=True, slots=True)
class WindowCall:
    """A call of a window function in SQL text.

    Attributes:
        function: The function's name in lower case.
        start: The index of the call's first character in the text.
        end: The index after the call's last character.
        table: The content of TABLE(...): a name or a query.
        partition_by: The key's columns.
        arguments: The named arguments.
    """

    function: str
    start: int
    end: int
    table: str
    partition_by: tuple[str, ...]
    arguments: Mapping[str, Value]


def tokens_of(text: str) -> list[Token]:
    """Splits Spark SQL into tokens.

    Raises:
        ValueError: The text is not SQL.
    """
    if not isinstance(text, str):
        raise ValueError(f"query: must be text, not {text!r}; pass SQL")
    try:
        return list(_SPARK.tokenize(text))
    except SqlglotError:
        fix = "look for a quote that is not closed"
        raise ValueError(f"{shown(text, 200)} is no SQL; {fix}") from None


def window_calls(text: str, functions: Collection[str]) -> Iterator[WindowCall]:
    """Parses the calls of the given functions, in the order of the text.

    Calls inside the TABLE(...) of another call are not parsed.

    Raises:
        ValueError: A call cannot be parsed; the error names the function, the text nearby and the
            fix.
    """
    tokens = tokens_of(text)
    position = 0
    while position + 1 < len(tokens):
        name = tokens[position].text.lower()
        is_call = name in functions and tokens[position + 1].token_type is _OPENS
        if is_call and tokens[position].token_type is not TokenType.STRING:
            reader = _Reader(text, tokens, position)
            yield reader.call()
            position = reader.position
        else:
            position += 1


class _Reader:
    """Parses a single call, starting at the token of its name."""

    def __init__(self, text: str, tokens: list[Token], position: int) -> None:
        self._text, self._tokens, self.position = text, tokens, position
        self._function = tokens[position].text.lower()

    def call(self) -> WindowCall:
        start = self._tokens[self.position].start
        self.position += 1
        self._expect(_OPENS, "(")
        self._expect(TokenType.TABLE, "TABLE(...), the records, as its first argument")
        table = self._table()
        partition_by = self._partition_by()
        arguments: dict[str, Value] = {}
        while self._kind() is TokenType.COMMA:
            self.position += 1
            name = self._name("the name of an argument").lower()
            if name in arguments:
                raise self._refusal(f"{name} comes twice; give it once")
            self._expect(TokenType.FARROW, f"'=>' after {name}")
            arguments[name] = self._value(name)
        end = self._tokens[min(self.position, len(self._tokens) - 1)].end + 1
        self._expect(_CLOSES, "',' or ')'")
        return WindowCall(self._function, start, end, table, partition_by, arguments)

    def _table(self) -> str:
        self._expect(_OPENS, "TABLE(...), with parentheses")
        first, depth = self.position, 1
        while depth:
            if self._kind() is None:
                raise self._refusal("its '(' is not closed; add ')'")
            depth += (self._kind() is _OPENS) - (self._kind() is _CLOSES)
            self.position += 1
        inside = self._tokens[first : self.position - 1]
        if not inside:
            raise self._refusal("TABLE() must contain a table or a query, but is empty; write one")
        return self._text[inside[0].start : inside[-1].end + 1]

    def _partition_by(self) -> tuple[str, ...]:
        """The columns of PARTITION BY, with or without parentheses; empty without PARTITION BY."""
        if self._kind() is not TokenType.PARTITION_BY:
            if self._kind() not in (TokenType.COMMA, _CLOSES, None):
                raise self._refusal(
                    f"{shown(self._tokens[self.position].text)} follows TABLE(...); only PARTITION "
                    "BY may, as the windows order records themselves"
                )
            return ()
        self.position += 1
        is_list = self._kind() is _OPENS
        self.position += is_list
        names = [self._name("a column's name in PARTITION BY")]
        while self._kind() is TokenType.COMMA and not self._is_argument(self.position + 1):
            self.position += 1
            names.append(self._name("a column's name in PARTITION BY"))
        if is_list:
            self._expect(_CLOSES, "')' after PARTITION BY's columns")
        return tuple(names)

    def _is_argument(self, position: int) -> bool:
        following = self._tokens[position + 1 : position + 2]
        return bool(following) and following[0].token_type is TokenType.FARROW

    def _value(self, name: str) -> Value:
        is_interval = self._kind() is TokenType.INTERVAL
        self.position += is_interval
        is_negative = not is_interval and self._kind() is TokenType.DASH
        self.position += is_negative
        if self._kind() not in ((TokenType.NUMBER,) if is_negative else _LITERALS):
            raise self._refusal(f"{name} takes a literal, such as '10 minutes' or 100")
        token = self._tokens[self.position]
        self.position += 1
        if is_interval:
            return f"{token.text} {self._name('a unit after INTERVAL')}"
        if token.token_type is TokenType.STRING:
            return token.text
        if token.token_type is not TokenType.NUMBER:
            return token.token_type is TokenType.TRUE
        if not token.text.isdecimal():
            raise self._refusal(f"{name}: must be a whole number, not {token.text}; write one")
        return -int(token.text) if is_negative else int(token.text)

    def _name(self, what: str) -> str:
        if self._kind() is not None:
            token = self._tokens[self.position]
            is_quoted = token.token_type is TokenType.IDENTIFIER
            is_word = _NAME.fullmatch(token.text) and token.token_type not in _LITERALS
            if is_quoted or is_word:
                self.position += 1
                return token.text
        raise self._refusal(f"{what} is missing; write it")

    def _expect(self, kind: TokenType, what: str) -> None:
        if self._kind() is not kind:
            raise self._refusal(f"{what} is missing; write it")
        self.position += 1

    def _kind(self) -> TokenType | None:
        return self._tokens[self.position].token_type if self.position < len(self._tokens) else None

    def _refusal(self, what: str) -> ValueError:
        at = self._tokens[min(self.position, len(self._tokens) - 1)].start
        near = self._text[max(at - 20, 0) : at + 20]
        return ValueError(f"{self._function}: near {near!r}: {what}")
