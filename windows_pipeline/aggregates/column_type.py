"""Column types, read from the text that Spark writes them as, without Spark."""

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
    """A type of Spark's, as a tree.

    Attributes:
        name: Such as 'bigint', 'decimal', 'array' or 'struct'.
        precision: A decimal's digits; 0 for other types.
        scale: A decimal's digits after the point.
        fields: A struct's fields; an array's elements as its only field.
    """

    name: str
    precision: int = 0
    scale: int = 0
    fields: tuple[tuple[str, ColumnType], ...] = ()

    @property
    def is_integer(self) -> bool:
        """Whether it holds whole numbers of up to 64 bits."""
        return self.name in _INTEGERS

    @property
    def is_number(self) -> bool:
        """Whether values can be added."""
        return self.is_integer or self.name in _FLOATS or self.name == "decimal"

    @property
    def is_orderable(self) -> bool:
        """Whether values can be sorted: those of plain types, and structs of such."""
        if self.name == "struct":
            return all(kind.is_orderable for _, kind in self.fields)
        return self.name != "array"


def parse_type(text: str) -> ColumnType:
    """Reads a type such as 'bigint', 'decimal(10,2)' or 'array<struct<a:int,b:string>>'.

    Raises:
        ValueError: Not such a type; names the text and what there is.
    """
    tokens = deque(_TOKEN.findall(str(text)))  # what is no text is no type either
    try:
        kind = _read_type(tokens)
        if tokens:
            raise ValueError
    except (ValueError, IndexError, RecursionError):
        raise ValueError(
            f"{shown(text, 200)} is no column type that aggregates know; they know "
            f"{', '.join(_PLAIN)}, decimal(p,s), array<type> and struct<name:type,...>"
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
    precision, scale = 10, 0  # Spark's own where none is given
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
        if tokens[0] == ":":  # 'a: int' and 'a int' are both written
            tokens.popleft()
        fields.append((name, _read_type(tokens)))
        separator = tokens.popleft()
    if separator != ">":
        raise ValueError
    return tuple(fields)


def _expect(tokens: deque[str], wanted: str) -> None:
    if tokens.popleft() != wanted:
        raise ValueError
