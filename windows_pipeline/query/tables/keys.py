"""A window's key in stored tables: its values as arguments, as text, and in order.

A key is one column, or a struct of parts; every condition is made of the key's parts, so both are
handled alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.query.tables.arrow_values import FALSE, scalar
from windows_pipeline.query.tables.arrow_values import text as text_scalar

KEY = "key"
"""The column of a window's key."""


@dataclass(frozen=True)
class KeyRange:
    """Which keys are wanted: all from one key to another, both included.

    Attributes:
        first: The parts of the first key; None for no bound.
        last: The parts of the last key; None for no bound.
        columns: The columns of the parts; a part of a struct has both names with a point between.
    """

    first: tuple[pa.Scalar, ...] | None = None
    last: tuple[pa.Scalar, ...] | None = None
    columns: tuple[str, ...] = (KEY,)

    @property
    def is_one_key(self) -> bool:
        """Whether the range is a single key."""
        return self.first is not None and self.first == self.last


class KeyColumn:
    """The key column of a table."""

    def __init__(self, kind: pa.DataType, comment: str = "") -> None:
        """Takes the column's type, and what the column is for error messages."""
        self._kind = kind
        self._of = f" ({comment})" if comment else ""

    @property
    def part_names(self) -> list[str]:
        """The names of the key's parts; the column's own name if the key is no struct."""
        if pa.types.is_struct(self._kind):
            return [field.name for field in self._kind]
        return [KEY]

    @property
    def _columns(self) -> tuple[str, ...]:
        if pa.types.is_struct(self._kind):
            return tuple(f"{KEY}.{name}" for name in self.part_names)
        return (KEY,)

    def one(self, value: object, argument: str) -> KeyRange:
        """A single key; see `value`."""
        parts = self.value(value, argument)
        return KeyRange(parts, parts, self._columns)

    def between(
        self, first: tuple[pa.Scalar, ...] | None, last: tuple[pa.Scalar, ...] | None
    ) -> KeyRange:
        """The keys from one to another, by their parts; None for no bound."""
        return KeyRange(first, last, self._columns)

    def value(self, value: object, argument: str) -> tuple[pa.Scalar, ...]:
        """The parts of a key.

        Args:
            value: The key as Python has it: a str for a string, an int for a bigint, a datetime
                with a zone for a timestamp, None for the null key; of a struct a tuple of the
                parts in order, or a dict by name.
            argument: The argument's name, for messages.

        Raises:
            ValueError: The value is not of the key's type.
        """
        if not pa.types.is_struct(self._kind):
            return (self._scalar(value, self._kind, argument),)
        names = self.part_names
        listed: Sequence[object]
        if isinstance(value, Mapping):
            if sorted(value) != sorted(names):
                raise ValueError(
                    f"{argument}: must have the parts {', '.join(names)}, not "
                    f"{', '.join(map(str, value))}; write each part once"
                )
            listed = [value[name] for name in names]
        elif isinstance(value, (tuple, list)) and len(value) == len(names):
            listed = value
        else:
            raise ValueError(
                f"{argument}: must be a tuple of {len(names)} parts ({', '.join(names)}), or a "
                f"dict of them by name, not {value!r}"
            )
        return tuple(
            self._scalar(part, field.type, f"{argument}, part {field.name}")
            for part, field in zip(listed, self._kind, strict=True)
        )

    def of_parts(self, parts: Sequence[object]) -> tuple[pa.Scalar, ...]:
        """The parts of a key that was read from a table; of a plain key there is one."""
        return tuple(
            self._scalar(part, kind, KEY) for part, kind in zip(parts, self._kinds, strict=True)
        )

    @property
    def _kinds(self) -> list[pa.DataType]:
        if pa.types.is_struct(self._kind):
            return [field.type for field in self._kind]
        return [self._kind]

    def parsed(self, text: str | None, argument: str, *, has_key: bool = True) -> object:
        """The key that a text of a command line stands for, as `value` takes it.

        Args:
            text: The text; of a struct the parts with commas between them, a part without text for
                null. None for the null key.
            argument: The argument's name, for messages.
            has_key: Whether the windows have a key; otherwise all records have the null key.

        Raises:
            ValueError: The text does not stand for a value of the key's type.
        """
        if not has_key and text:
            raise ValueError(
                f"{argument}: must be empty, as the windows have one key, of all records, not "
                f"{text!r}; write ''"
            )
        if text is None or not has_key:
            return (None,) * len(self._kinds) if pa.types.is_struct(self._kind) else None
        if not pa.types.is_struct(self._kind):
            return self._parsed(text, self._kind, argument)
        texts = [part.strip() for part in text.split(",")]
        if len(texts) != self._kind.num_fields:
            raise ValueError(
                f"{argument}: must have {self._kind.num_fields} parts "
                f"({', '.join(self.part_names)}) with commas between them, not {text!r}; write "
                "them as in 'AA,EWR'"
            )
        return tuple(
            self._parsed(part, field.type, f"{argument}, part {field.name}") if part else None
            for part, field in zip(texts, self._kind, strict=True)
        )

    def _parsed(self, text: str, kind: pa.DataType, argument: str) -> object:
        try:
            if pa.types.is_timestamp(kind):  # without a zone it is UTC, as commands print times
                instant = datetime.fromisoformat(text)
                return instant if instant.tzinfo is not None else instant.replace(tzinfo=UTC)
            return text_scalar(text).cast(kind).as_py()
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
            raise ValueError(
                f"{argument}: must be a key of type {_name(kind)}{self._of}, not {text!r}"
            ) from None

    def _scalar(self, value: object, kind: pa.DataType, argument: str) -> pa.Scalar:
        problem = f"{argument}: must be a key of type {_name(kind)}{self._of}, not {value!r}"
        if isinstance(value, datetime) and value.tzinfo is None:
            raise ValueError(f"{problem}, which has no zone; write datetime(..., tzinfo=UTC)")
        found = scalar(value, kind)
        if found is None:
            raise ValueError(problem)
        return found


def parts_of(keys: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The columns of a key's parts: the key itself, or the fields of a struct."""
    if not pa.types.is_struct(keys.type):
        return [keys]
    return [pc.struct_field(keys, [number]) for number in range(keys.type.num_fields)]


def flattened(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    """The columns of these names, in order, with a struct's parts in its place."""
    found = dict(_flat(rows, names))
    return pa.Table.from_arrays(list(found.values()), names=list(found))


def in_order(rows: pa.Table, names: Sequence[str], *, backward: bool = False) -> pa.Table:
    """The rows in the order of these columns, null before all values, or in the reverse."""
    columns = {}
    for name, values in _flat(rows, names):
        if values.null_count:
            columns[f"{name}?"] = pc.is_valid(values)
        columns[name] = values
    order = "descending" if backward else "ascending"
    sorted_by = pa.Table.from_arrays(list(columns.values()), names=list(columns))
    return rows.take(pc.sort_indices(sorted_by, [(name, order) for name in columns]))


def _flat(rows: pa.Table, names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    for name in names:
        parts = parts_of(rows[name])
        if len(parts) == 1:
            yield name, parts[0]
        else:
            yield from ((f"{name}.{number}", part) for number, part in enumerate(parts))


def differ(first: Any, second: Any) -> Any:
    """The mask of the positions at which two columns have different values; null equals null."""
    different = pc.fill_null(pc.not_equal(first, second), FALSE)
    one_is_null = pc.xor(pc.is_null(first), pc.is_null(second))
    if pa.types.is_floating(first.type):  # NaN is equal to itself (rule G2)
        both_nan = pc.and_(pc.is_nan(first), pc.is_nan(second))
        different = pc.and_not(different, pc.fill_null(both_nan, FALSE))
    return pc.or_(different, one_is_null)


def _name(kind: pa.DataType) -> str:
    if pa.types.is_timestamp(kind):
        return "timestamp"
    return {"int64": "bigint", "date32[day]": "date", "bool": "boolean"}.get(str(kind), str(kind))
