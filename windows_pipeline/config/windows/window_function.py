"""The `process` field of a pipeline's windows: a user's function of each firing (rule E3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, ValidationInfo, field_serializer
from pydantic_core import PydanticCustomError

from windows_pipeline.aggregates.column_type import MAX_DECIMAL_DIGITS
from windows_pipeline.config.fields import (
    RESULT_TYPES,
    ColumnReference,
    Identifier,
    looks,
    modules_in,
    result_type,
)
from windows_pipeline.config.strict import Strict
from windows_pipeline.config.windows.firing_trigger import EMPTY
from windows_pipeline.text.limits import require_short
from windows_pipeline.text.problems import Problem, listed, nearest, without_value

PROCESSED_COLUMNS = (
    *("arrival_unit", "key", "window_start", "window_end"),
    *("firing_id", "reason", "row_number"),
)
"""The columns of each row of `processed`, besides those of the function."""
_LOOKS_NAMED = r"^\s*[A-Za-z_][A-Za-z0-9_]*:[A-Za-z_][A-Za-z0-9_]*\s*$"
_LOOKS_PLAIN = rf"({'|'.join(RESULT_TYPES)}|decimal ?\(.*\))"
_LOOKS_TYPED = rf"^\s*({_LOOKS_PLAIN}|array\s*<\s*{_LOOKS_PLAIN}\s*>)\s*$"
_FORM = "{function: my_module:warn, columns: {name: type}}"


def _reference(value: object, info: ValidationInfo) -> object:
    if not isinstance(value, str):
        return value  # pydantic refuses values that are not text
    require_short(value)
    try:
        modules_in(info.context).function(value.strip())
    except ValueError as error:
        raise ValueError(without_value(str(error), "", value)) from None
    return value.strip()


def _type(value: object) -> str:
    """Returns the canonical text of a type: as Spark writes it."""
    if isinstance(value, str):
        require_short(value)
        found = result_type(value)
        if found is not None:
            return found
    raise ValueError(
        f"is not a type of a result; use {', '.join(RESULT_TYPES)}, decimal(p,s) of at most "
        f"{MAX_DECIMAL_DIGITS} digits, or array<...> of one of these"
    )


def _some_columns(columns: dict[str, str]) -> dict[str, str]:
    if not columns:
        raise ValueError("names no columns; write a line 'name: type' for each column of a row")
    return columns


def _some_records(names: list[str]) -> list[str]:
    if not names:
        raise ValueError(
            "names no columns; name those that the function needs, or leave records out, so that "
            "the function gets the aggregates"
        )
    return names


def as_process(value: object) -> object:
    """Refuses a `process` that is empty, or names a function alone."""
    if value is None:
        raise PydanticCustomError(EMPTY, f"is empty; write {_FORM}, or leave it out")
    if isinstance(value, str):
        require_short(value)
        form = _FORM.replace("my_module:warn", value) if ":" in value else _FORM
        raise ValueError(f"does not say which columns the function's rows have; write {form}")
    return value


_ResultType = Annotated[
    str,
    BeforeValidator(_type),
    looks("type of a result", "array<string>", type="string", pattern=_LOOKS_TYPED),
]


class Process(Strict):
    """A Python function that turns each firing into rows of the table `processed`.

    Attributes:
        function: The function, of a module that settings.yaml names under `modules`.
        columns: The columns of the rows that it returns, with their types; tuples have their
            order.
        records: The value columns of the pane's records, which the function then gets as a list
            of dicts; None for the aggregates, as a dict.
    """

    function: Annotated[
        str,
        BeforeValidator(_reference),
        looks("function", "my_module:warn", type="string", pattern=_LOOKS_NAMED),
    ]
    columns: Annotated[dict[Identifier, _ResultType], AfterValidator(_some_columns)]
    records: Annotated[list[ColumnReference], AfterValidator(_some_records)] | None = None

    @property
    def schema_text(self) -> str:
        """The columns as Spark's DDL writes them."""
        return ", ".join(f"{name} {kind}" for name, kind in self.columns.items())

    @field_serializer("columns")
    def _columns_text(self, columns: dict[str, str]) -> str:
        """One text, as the order of the columns is part of the definition."""
        del columns
        return self.schema_text

    @field_serializer("records")
    def _records_text(self, records: list[str] | None) -> str | None:
        return None if records is None else ", ".join(sorted(records))

    def problems(self, values: Mapping[str, str], row_key: Sequence[str]) -> Iterator[Problem]:
        """Yields what is wrong for a source with these value columns.

        Args:
            values: The value columns, with their types.
            row_key: The columns that identify the row of a window; none of windows by time.
        """
        taken = (*PROCESSED_COLUMNS, *row_key)
        for name in self.columns:
            if name in taken:
                text = (
                    "is the name of a column that every row of processed has "
                    f"({', '.join(taken)}); rename it"
                )
                yield Problem(("columns", name), name, text)
        for number, name in enumerate(self.records or ()):
            if name not in values:
                fix = nearest(name, values, f"use one of {listed(values)}")
                text = f"is not a value column of the source; {fix}"
                yield Problem(("records", str(number)), name, text)
            elif name in (self.records or ())[:number]:
                yield Problem(("records", str(number)), name, "is named twice; name it once")
