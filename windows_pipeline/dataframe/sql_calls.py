"""Calls of window functions in SQL text: found and read token by token, nothing is run.

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
    """One call.

    Attributes:
        function: Its name, in small letters.
        start: Where it begins in the text.
        end: Where it ends: the place after its last character.
        table: What stands in TABLE(...): a name or a query.
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
    """The tokens of Spark SQL.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(text, str):
        raise ValueError(f"query: {text!r} is no text; pass SQL")
    try:
        return list(_SPARK.tokenize(text))
    except SqlglotError:
        cure = "look for a quote that is not closed"
        raise ValueError(f"{shown(text, 200)} is no SQL; {cure}") from None


def window_calls(text: str, functions: Collection[str]) -> Iterator[WindowCall]:
    """Reads the calls of some functions, in the order of the text.

    What stands within one's TABLE(...) is not looked into.

    Raises:
        ValueError: A call that cannot be read; names the function, the place and the cure.
    """
    tokens = tokens_of(text)
    place = 0
    while place + 1 < len(tokens):
        name = tokens[place].text.lower()
        is_call = name in functions and tokens[place + 1].token_type is _OPENS
        if is_call and tokens[place].token_type is not TokenType.STRING:
            reader = _Reader(text, tokens, place)
            yield reader.call()
            place = reader.place
        else:
            place += 1


class _Reader:
    """Reads one call from the place of its name on."""

    def __init__(self, text: str, tokens: list[Token], place: int) -> None:
        self._text, self._tokens, self.place = text, tokens, place
        self._function = tokens[place].text.lower()

    def call(self) -> WindowCall:
        start = self._tokens[self.place].start
        self.place += 1
        self._expect(_OPENS, "(")
        self._expect(TokenType.TABLE, "TABLE(...), the records, as its first argument")
        table = self._table()
        partition_by = self._partition_by()
        arguments: dict[str, Value] = {}
        while self._kind() is TokenType.COMMA:
            self.place += 1
            name = self._name("the name of an argument").lower()
            if name in arguments:
                raise self._refusal(f"{name} comes twice; give it once")
            self._expect(TokenType.FARROW, f"'=>' after {name}")
            arguments[name] = self._value(name)
        end = self._tokens[min(self.place, len(self._tokens) - 1)].end + 1
        self._expect(_CLOSES, "',' or ')'")
        return WindowCall(self._function, start, end, table, partition_by, arguments)

    def _table(self) -> str:
        self._expect(_OPENS, "TABLE(...), with parentheses")
        first, depth = self.place, 1
        while depth:
            if self._kind() is None:
                raise self._refusal("its '(' is not closed; add ')'")
            depth += (self._kind() is _OPENS) - (self._kind() is _CLOSES)
            self.place += 1
        inside = self._tokens[first : self.place - 1]
        if not inside:
            raise self._refusal("TABLE() holds nothing; name a table or write a query in it")
        return self._text[inside[0].start : inside[-1].end + 1]

    def _partition_by(self) -> tuple[str, ...]:
        """The columns of PARTITION BY, in parentheses or not; none where there is no such."""
        if self._kind() is not TokenType.PARTITION_BY:
            if self._kind() not in (TokenType.COMMA, _CLOSES, None):
                raise self._refusal(
                    f"{shown(self._tokens[self.place].text)} follows TABLE(...); only PARTITION BY "
                    "may, as the windows order records themselves"
                )
            return ()
        self.place += 1
        is_list = self._kind() is _OPENS
        self.place += is_list
        names = [self._name("a column's name in PARTITION BY")]
        while self._kind() is TokenType.COMMA and not self._is_argument(self.place + 1):
            self.place += 1
            names.append(self._name("a column's name in PARTITION BY"))
        if is_list:
            self._expect(_CLOSES, "')' after PARTITION BY's columns")
        return tuple(names)

    def _is_argument(self, place: int) -> bool:
        following = self._tokens[place + 1 : place + 2]
        return bool(following) and following[0].token_type is TokenType.FARROW

    def _value(self, name: str) -> Value:
        is_interval = self._kind() is TokenType.INTERVAL
        self.place += is_interval
        if self._kind() not in _LITERALS:
            raise self._refusal(f"{name} takes a literal, such as '10 minutes' or 100")
        token = self._tokens[self.place]
        self.place += 1
        if is_interval:
            return f"{token.text} {self._name('a unit after INTERVAL')}"
        if token.token_type is TokenType.STRING:
            return token.text
        if token.token_type is not TokenType.NUMBER:
            return token.token_type is TokenType.TRUE
        if not token.text.isdecimal():
            raise self._refusal(f"{name}: {token.text} is no whole number; write one")
        return int(token.text)

    def _name(self, what: str) -> str:
        if self._kind() is not None:
            token = self._tokens[self.place]
            is_quoted = token.token_type is TokenType.IDENTIFIER
            is_word = _NAME.fullmatch(token.text) and token.token_type not in _LITERALS
            if is_quoted or is_word:
                self.place += 1
                return token.text
        raise self._refusal(f"{what} is missing; write it")

    def _expect(self, kind: TokenType, what: str) -> None:
        if self._kind() is not kind:
            raise self._refusal(f"{what} is missing; write it")
        self.place += 1

    def _kind(self) -> TokenType | None:
        return self._tokens[self.place].token_type if self.place < len(self._tokens) else None

    def _refusal(self, what: str) -> ValueError:
        at = self._tokens[min(self.place, len(self._tokens) - 1)].start
        near = self._text[max(at - 20, 0) : at + 20]
        return ValueError(f"{self._function}: near {near!r}: {what}")
