"""A key as a pipeline's file writes it: the name of a column, or a list of names.

With the list `[]` all records have one key, which is null in tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import PlainSerializer, PlainValidator

from windows_pipeline.config.fields import COLUMN_NAME, looks
from windows_pipeline.text.limits import require_short


def _key(value: object) -> str | tuple[str, ...]:
    if isinstance(value, list):
        return _parts(value)
    if value is None:
        raise ValueError("has no value; name a column")
    if not isinstance(value, str):
        raise ValueError("is not the name of a column; write a name, or a list as [carrier, dest]")
    require_short(value)
    return value


def _parts(values: list[object]) -> str | tuple[str, ...]:
    names: list[str] = []
    for value in values:
        if not isinstance(value, str):
            raise ValueError(
                f"holds {value!r}, which is not the name of a column; write names, as in "
                "[carrier, dest]"
            )
        require_short(value)
        if value in names:
            raise ValueError(f"names {value!r} twice; name each column once")
        names.append(value)
    return names[0] if len(names) == 1 else tuple(names)


def _text(key: str | tuple[str, ...]) -> str:
    return ", ".join(key_columns(key)) or "[]"


_NAME = {"type": "string", "pattern": f"^{COLUMN_NAME.pattern}$"}
_NAMES = {"type": "array", "items": _NAME, "uniqueItems": True}
Key = Annotated[
    str | tuple[str, ...],
    PlainValidator(_key),
    PlainSerializer(_text),
    looks("column, or list of columns", "origin", anyOf=[_NAME, _NAMES]),
]
"""The name of a key's column, or the names of its parts; of a single part its name alone."""
NO_KEY = ()
"""The key that all records have."""


def key_columns(key: str | tuple[str, ...]) -> tuple[str, ...]:
    """The columns of a key, in the order of the file."""
    return (key,) if isinstance(key, str) else key


def key_type(key: str | tuple[str, ...], types: Mapping[str, str]) -> str:
    """Spark's type of the column `key`: the column's, or a struct of the parts.

    Where all records have one key, the column is text, and null.

    Args:
        key: The key.
        types: The types of the source's columns.
    """
    if isinstance(key, str):
        return types[key]
    if key == NO_KEY:
        return "string"
    return f"struct<{','.join(f'{name}:{types[name]}' for name in key)}>"
