"""The types of fields: their names, and values that they refuse, with the validators' own words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple, get_args, get_origin

from pydantic import TypeAdapter, ValidationError, WithJsonSchema
from pydantic.fields import FieldInfo

_TRIED: tuple[object, ...] = (
    *(5, True, "", "some text", "-1 hour", "0 ms", "2026-02-30", "Name", "5", "110 %", "decimal"),
    *(0, -1, 1.5, [1], "(a+)+", "lookup(x)", "2026-01-31T00:00:00", "avg", "x" * 250),
)
"""Values with which each type is tried."""
_MOST_SHOWN = 4
_LONGEST_SHOWN = 20


class NamedType(NamedTuple):
    """A type with a name of its own.

    Attributes:
        name: The name.
        example: A value as a file writes it.
        annotation: The type.
    """

    name: str
    example: object
    annotation: Any


def named_types(info: FieldInfo) -> Iterator[NamedType]:
    """Yields the types with a name of their own in a field's type."""
    annotated: Any = info.annotation
    for entry in info.metadata:
        annotated = Annotated[annotated, entry]
    yield from _named_in(annotated)


def _named_in(annotation: Any) -> Iterator[NamedType]:
    if get_origin(annotation) is Annotated:
        for entry in annotation.__metadata__:
            schema = (entry.json_schema or {}) if isinstance(entry, WithJsonSchema) else {}
            if "$comment" in schema:
                yield NamedType(schema["$comment"], schema["examples"][0], annotation)
                return
    for argument in get_args(annotation):
        yield from _named_in(argument)


def refusals(annotation: Any) -> list[str]:
    """Returns values that a type refuses, each with what its error says."""
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    found: dict[str, str] = {}
    for value in _TRIED:
        try:
            adapter.validate_python(value)
        except ValidationError as error:
            cause = error.errors()[0].get("ctx", {}).get("error")
            if isinstance(cause, ValueError):
                found.setdefault(str(cause), _shown(value))
    return [f"`{value}` {text}" for text, value in found.items()][:_MOST_SHOWN]


def _shown(value: object) -> str:
    is_plain = isinstance(value, str) and value and not value.isdigit()
    text = str(value) if is_plain else json.dumps(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
