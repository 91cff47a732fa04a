"""The key and the filter that a window definition may have of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated

from pydantic import BeforeValidator

from windows_pipeline.alerts.rule_sql import RuleError, columns_read, compile_rule
from windows_pipeline.config.columns.key import Key, key_columns
from windows_pipeline.config.fields import Text
from windows_pipeline.config.source import ROLE_TYPES, Source
from windows_pipeline.text.problems import Problem, listed, nearest


def _not_none(value: object) -> object:
    if value is None:
        raise ValueError("has no value; name a column")
    return value


def _filter(value: object) -> object:
    if value is None or isinstance(value, (bool, int, float)):
        raise ValueError(
            "is not a condition; write SQL over the source's columns, as in 'amount > 0'"
        )
    return value


OwnKey = Annotated[Key | None, BeforeValidator(_not_none)]
"""The key of a definition; None where the file leaves it out."""
Filter = Annotated[Text | None, BeforeValidator(_filter)]
"""SQL that is true of the records that a definition's windows hold; None for all."""


def filter_columns(source: Source) -> dict[str, str]:
    """The columns that a filter may read, with their types in raw_events."""
    as_stored = {source.event_time: "timestamp"}
    if source.source_partition is not None:
        as_stored[source.source_partition] = "string"
    return {**source.types, **as_stored}


def filter_sql(where: str, source: Source) -> str:
    """Compiles a filter to SQL for Spark, over `filter_columns`.

    A number or cast that does not fit its type is null there, so that no record fails a run.

    Raises:
        RuleError: See `windows_pipeline.alerts.rule_sql.compile_rule`.
    """
    return compile_rule(where, filter_columns(source), "boolean").sql


def key_problems(
    key: str | tuple[str, ...] | None, source: Source, taken: Collection[str]
) -> Iterator[Problem]:
    """Checks a definition's own key: columns of the source without another role.

    Args:
        key: The key; None where the definition has the source's.
        source: The source.
        taken: The names that the parts of a key cannot have, as results have such columns.
    """
    for column in () if key is None else key_columns(key):
        yield from _column_problems(column, source)
    parts = source.key if key is None else key
    if not isinstance(parts, str):
        for column in parts:
            if column in taken:
                text = (
                    "is a part of the key, and the name of a column that every result has; rename "
                    "the column"
                )
                yield Problem(("key",), column, text)


def _column_problems(column: str, source: Source) -> Iterator[Problem]:
    others = {name: role for role, name in source.role_columns if role != "key"}
    kinds, wanted = source.types, ROLE_TYPES["key"]
    fitting = [name for name in kinds if name not in others and kinds[name] in wanted]
    fix = f"use one of {listed(fitting)}" if fitting else "leave the field out"
    if not column:
        text = f"is not the name of a column; {fix}"
    elif column not in kinds:
        text = f"is not a column of the source; {nearest(column, fitting, fix)}"
    elif column in others:
        text = f"is the {others[column]}, which is no key; {fix}"
    elif kinds[column] not in wanted:
        text = f"is of type {kinds[column]}; a key must be {' or '.join(wanted)}: {fix}"
    else:
        return
    yield Problem(("key",), column, text)


def filter_problems(
    where: str | None, source: Source, results: Mapping[str, object]
) -> Iterator[Problem]:
    """Checks a definition's filter, which reads columns of records, not results of windows.

    Args:
        where: The filter.
        source: The source.
        results: The columns of the windows' results.
    """
    if where is None:
        return
    try:
        filter_sql(where, source)
    except RuleError as error:
        text = error.reason
        if read := _results_read(where, source, results):
            text = (
                f"reads {read!r}, a result of windows, but says which records windows hold; use "
                f"columns of the source ({listed(filter_columns(source))}), or write the condition "
                "in an alert's 'when'"
            )
        yield Problem(("where",), where, text)


def _results_read(where: str, source: Source, results: Mapping[str, object]) -> str | None:
    """The first result, by name, that a filter reads as if it were a column of the source."""
    try:
        read = columns_read(where)
    except RuleError:
        return None
    unknown = sorted(read - set(filter_columns(source)))
    return next((name for name in unknown if name in results), None)
