"""Parses Spark's text of a column type, without Spark."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

from windows_pipeline.text.limits import shown

MAX_DECIMAL_DIGITS = 38

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_FLOATS = ("float", "double")
_PLAIN = (*_INTEGERS, *_FLOATS, "boolean", "string", "binary", "date", "timestamp", "timestamp_ntz")
_SYNONYMS = {"integer": "int", "long": "bigint"}
_TOKEN = re.compile(r"\w+|[<>(),:]|\S")


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A Spark type, as a tree.

    Attributes:
        name: The type's name without parameters: 'bigint', 'decimal', 'array' or 'struct'.
        precision: The number of a decimal's digits; 0 for other types.
        scale: The number of a decimal's digits after the point.
        fields: The fields of a struct; for an array, its element type as the only field.
    """

    name: str
    precision: int = 0
    scale: int = 0
    fields: tuple[tuple[str, ColumnType], ...] = ()

    def __str__(self) -> str:
        """The type as Spark writes it."""
        if self.name == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.name == "array":
            return f"array<{self.fields[0][1]}>"
        fields = ",".join(f"{name}:{kind}" for name, kind in self.fields)
        return f"struct<{fields}>" if self.name == "struct" else self.name

    @property
    def is_integer(self) -> bool:
        """Whether values are integers of up to 64 bits."""
        return self.name in _INTEGERS

    @property
    def is_number(self) -> bool:
        """Whether values can be added."""
        return self.is_integer or self.name in _FLOATS or self.name == "decimal"

    @property
    def is_orderable(self) -> bool:
        """Whether values can be sorted: plain types can, and structs of types that can."""
        if self.name == "struct":
            return all(kind.is_orderable for _, kind in self.fields)
        return self.name != "array"


def parse_type(text: str) -> ColumnType:
    """Reads a type such as 'bigint', 'decimal(10,2)' or 'array<struct<a:int,b:string>>'.

    Raises:
        ValueError: The text is not such a type; the message has the text and the known types.
    """
    tokens = deque(_TOKEN.findall(str(text)))  # None, say, becomes a text that is not a type
    try:
        kind = _read_type(tokens)
        if tokens:
            raise ValueError
    except (ValueError, IndexError, RecursionError):
        raise ValueError(
            f"{shown(text, 200)} is not a column type that aggregates support; use "
            f"{', '.join(_PLAIN)}, decimal(p,s), array<type> or struct<name:type,...>"
        ) from None
    return kind


def _read_type(tokens: deque[str]) -> ColumnType:
    word = tokens.popleft().lower()
    name = _SYNONYMS.get(word, word)
    if name == "decimal":
        return _read_decimal(tokens)
    if name == "array":
        _expect(tokens, "<")
        element = _read_type(tokens)
        _expect(tokens, ">")
        return ColumnType(name, fields=(("element", element),))
    if name == "struct":
        return ColumnType(name, fields=_read_fields(tokens))
    if name not in _PLAIN:
        raise ValueError
    return ColumnType(name)


def _read_decimal(tokens: deque[str]) -> ColumnType:
    precision, scale = 10, 0  # Spark's defaults
    if tokens and tokens[0] == "(":
        tokens.popleft()
        precision = int(tokens.popleft())
        if tokens[0] == ",":
            tokens.popleft()
            scale = int(tokens.popleft())
        _expect(tokens, ")")
    if not 0 <= scale <= precision <= MAX_DECIMAL_DIGITS or precision == 0:
        raise ValueError
    return ColumnType("decimal", precision, scale)


def _read_fields(tokens: deque[str]) -> tuple[tuple[str, ColumnType], ...]:
    fields = []
    _expect(tokens, "<")
    separator = ","
    while separator == ",":
        name = tokens.popleft()
        if tokens[0] == ":":  # Spark reads both 'a: int' and 'a int'
            tokens.popleft()
        fields.append((name, _read_type(tokens)))
        separator = tokens.popleft()
    if separator != ">":
        raise ValueError
    return tuple(fields)


def _expect(tokens: deque[str], wanted: str) -> None:
    if tokens.popleft() != wanted:
        raise ValueError
