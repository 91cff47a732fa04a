"""The flights pipeline's file, and changes of its text, for tests."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.oracle.definitions import (
    Definition,
    ForwardDefinition,
    SessionDefinition,
    SlidingDefinition,
    TimeDefinition,
)
from windows_pipeline.config import ConfigError, Pipeline, load_pipeline
from windows_pipeline.storage.catalog import specs_of

PIPELINES = Path(__file__).parents[2] / "pipelines"
FLIGHTS = (PIPELINES / "flights.yaml").read_text().partition("  by_hour:")[0]
"""Its first definition only, so that a text to change is there once."""


def load_text(folder: Path, text: str) -> Pipeline:
    file = folder / "flights.yaml"
    file.write_text(text)
    return load_pipeline(file)


def changed(old: str, new: str) -> str:
    assert FLIGHTS.count(old) == 1, f"{old!r} must be there once"
    return FLIGHTS.replace(old, new)


def of_kind(fields: str) -> str:
    """The flights with windows of another kind."""
    text = re.sub(r"    emit_empty: true.*\n", "", FLIGHTS)
    return re.sub(r"kind: sliding *(#.*)?\n    time_difference: 60 minutes", fields, text)


def of_definition(definition: Definition) -> str:
    """The flights with the definition's windows."""
    match definition:
        case SessionDefinition(gap=gap):
            text = of_kind(f"kind: session\n    gap: {gap} ms")
        case TimeDefinition():
            text = of_kind(
                f"kind: hopping\n    size: {definition.size} ms\n"
                f"    advance: {definition.advance} ms"
            )
        case ForwardDefinition():
            text = of_kind(f"kind: forward\n    size: {definition.size} ms")
        case SlidingDefinition():
            text = of_kind(f"kind: sliding\n    time_difference: {definition.time_difference} ms")
        case _:
            raise ValueError(f"definition: must be one of a pipeline, not {definition}")
    return text.replace("grace: 6 hours", f"grace: {definition.grace} ms")


def line_of(text: str, part: str) -> int:
    assert text.count(part) == 1, f"{part!r} must be there once"
    return text[: text.index(part)].count("\n") + 1


def problems_of(folder: Path, text: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as refused:
        load_text(folder, text)
    return refused.value.problems


def table_definition(pipeline: Pipeline, windows_name: str | None, table: str) -> dict[str, str]:
    """The definition that the rows of a table follow, by the table's name."""
    tables = specs_of(pipeline, "warehouse")
    found = tables if windows_name is None else tables.of(windows_name)
    definition: dict[str, str] = getattr(found, table).definition
    return definition
