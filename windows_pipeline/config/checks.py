"""Checks between fields of a pipeline: each function here compares two or more of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.alerts.rule_hints import hint
from windows_pipeline.alerts.rule_sql import RuleError
from windows_pipeline.text.limits import MAX_TEXT, TOO_LONG
from windows_pipeline.text.problems import Problem, listed, nearest, without_value
from windows_pipeline.windows.durations import duration_text

if TYPE_CHECKING:
    from windows_pipeline.config.model import Partitions, Source
    from windows_pipeline.config.window_kinds import Rule, Windows

_RAW_COLUMNS = frozenset(
    {
        "key",
        "event_time",
        "source_partition",
        "offset",
        "running_max",
        "arrival_unit",
        "record_arrival_unit",
        "batch",
        "stream_time",
        "close_time",
        "late_by_ms",
        "file",
        "malformed",
        "original",
        "reason",
    }
)
_RESULT_COLUMNS = frozenset(
    {
        "key",
        "window_start",
        "window_end",
        "first_event_time",
        "last_event_time",
        "record_count",
        "closed",
        "arrival_unit",
        "record_arrival_unit",
        "rule",
        "severity",
        "episode_start",
        "correction",
        "retracted_by",
        # Delta's change data feed adds these.
        "_change_type",
        "_commit_version",
        "_commit_timestamp",
    }
)
_FIRING_COLUMNS = frozenset(
    {
        "firing_id",
        "reason",
        "cause",
        "stream_time",
        "fired_after",
        "fired_after_unit",
        "fired_after_partition",
        "is_final",
        "state",
    }
)
ROLE_TYPES = {
    "key": ("string", "bigint", "date", "timestamp"),
    "event_time": ("timestamp", "bigint"),
    "arrival": ("timestamp", "bigint", "date", "double", "string"),
    "source_partition": ("string", "bigint", "date", "timestamp"),
}
"""The types that a column may have, by the role that the source gives it."""


def fixed_result_columns(source: Source) -> dict[str, str]:
    """Returns the columns of every window's result, aggregates aside, with their Spark types."""
    times = ("window_start", "window_end", "first_event_time", "last_event_time")
    return {
        "key": source.types[source.key],
        **dict.fromkeys(times, "timestamp"),
        "record_count": "bigint",
    }


def source_problems(source: Source) -> list[Problem]:
    """Checks where a source's records are, which columns have roles, and the columns' names."""
    if not source.columns:
        text = "declares no column; write one 'name: type' line for each column"
        return [Problem(("columns",), {}, text)]
    return [*_location_problems(source), *_role_problems(source), *_column_problems(source)]


def _location_problems(source: Source) -> Iterator[Problem]:
    """Checks that files and Delta tables have a path, and Kafka a topic and no other order."""
    if source.format != "kafka":
        if source.path is None:
            folder = "that holds one folder a day" if source.is_landed else "of the Delta table"
            text = f"has no value; write 'path: ...' in source, the folder {folder}"
            yield Problem(("path",), None, text)
        if source.kafka is not None:
            text = f"names a topic, but the format is {source.format}; write format: kafka"
            yield Problem(("kafka",), source.kafka.topic, text)
        return
    if source.kafka is None:
        text = "has no value; write 'kafka: {servers: ..., topic: ...}' in source"
        yield Problem(("kafka",), None, text)
    in_order = "the topic's partitions and offsets order its records"
    reasons = {
        "path": "a topic has no folder",
        "arrival": in_order,
        "source_partition": in_order,
    }
    for field, reason in reasons.items():
        value = getattr(source, field)
        if value is not None:
            text = f"must be left out with format: kafka: {reason}; remove {field}"
            yield Problem((field,), value, text)


def _role_problems(source: Source) -> Iterator[Problem]:
    if source.arrival == "lines" and not source.is_landed and source.arrival_column is None:
        text = (
            f"orders the lines of landed files, but a source of format {source.format} has no "
            "lines; name a column, write event_time, or leave arrival out"
        )
        yield Problem(("arrival",), source.arrival, text)
    if source.idle_after is not None and not source.has_several_partitions:
        text = (
            "has no effect on a single source partition; name the column of the partitions under "
            "source_partition, or leave it out"
        )
        yield Problem(("idle_after",), source.idle_after, text)
    role_of: dict[str, str] = {}
    for role, column in source.roles.items():
        if column not in source.columns:
            fix = nearest(column, source.columns, f"use one of {listed(source.columns)}")
            text = f"is not a column of the source; declare it under columns, or {fix}"
            yield Problem((role,), column, text)
            continue
        if column in role_of:
            text = f"is already the {role_of[column]}; name another column"
            yield Problem((role,), column, text)
        role_of.setdefault(column, role)
        if source.types[column] not in ROLE_TYPES[role]:
            text = (
                f"is of type {source.columns[column]}; the {role} must be "
                f"{' or '.join(ROLE_TYPES[role])}: name another column"
            )
            yield Problem((role,), column, text)


def _column_problems(source: Source) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for column in source.columns:
        # Spark ignores the case of column names.
        folded = column.lower()
        if folded in seen:
            text = f"differs from {seen[folded]!r} in case only; rename one of them"
            yield Problem(("columns", column), column, text)
        seen.setdefault(folded, column)
        if folded in _RAW_COLUMNS and source.roles.get(folded) != column:
            names = ", ".join(sorted(_RAW_COLUMNS))
            text = f"is the name of a column that the tables add ({names}); rename it"
            yield Problem(("columns", column), column, text)


def partition_problems(partitions: Partitions) -> list[Problem]:
    """Checks that the last arrival day is not before the first."""
    if partitions.end is None or partitions.end >= partitions.start:
        return []
    text = f"must not be before the start, {partitions.start}; write that day or a later one"
    return [Problem(("end",), str(partitions.end), text)]


def windows_problems(windows: Windows, source: Source) -> list[Problem]:
    """Checks windows against their source: kind, trigger, aggregates and alert rules."""
    columns = fixed_result_columns(source)
    problems = [*_session_problems(windows, source), *_trigger_problems(windows)]
    problems += windows.problems(source)
    for aggregate in windows.aggregate_list:
        problem = _aggregate_problem(aggregate, source)
        if problem is None:
            columns[aggregate.name] = aggregate.result_type(source.types[aggregate.column])
        else:
            problems.append(problem)
            # A rule may use the faulty aggregate: as a number, so that other mistakes show.
            columns.setdefault(aggregate.name, "double")
    for name, rule in windows.alerts.items():
        problems.extend(_rule_problems(name, rule, columns))
    return problems


def _session_problems(windows: Windows, source: Source) -> Iterator[Problem]:
    """Refuses sessions over several source partitions: a slow one may still join two sessions."""
    if windows.kind == "session" and source.has_several_partitions:
        text = (
            "needs one order of arrival (rule D2), but this source may have several source "
            "partitions; leave source_partition out, or use another kind"
        )
        yield Problem(("kind",), windows.kind, text)


def _trigger_problems(windows: Windows) -> Iterator[Problem]:
    """Checks that windows stay open until they fire on time, and that no result hides a column."""
    trigger = windows.trigger
    if trigger is None or windows.row_key:
        return
    if trigger.out_of_orderness > windows.grace:
        text = (
            f"is above the grace, {duration_text(windows.grace)}: windows would close before "
            f"they fire on time; write a grace of {duration_text(trigger.out_of_orderness)} or more"
        )
        path = ("trigger", "out_of_orderness")
        yield Problem(path, duration_text(trigger.out_of_orderness), text)
    for name in windows.aggregates:
        if name in _FIRING_COLUMNS:
            names = ", ".join(sorted(_FIRING_COLUMNS))
            text = f"is the name of a column that every firing has ({names}); rename it"
            yield Problem(("aggregates", name), name, text)


def _aggregate_problem(aggregate: Aggregate, source: Source) -> Problem | None:
    path = ("aggregates", aggregate.name)
    column = aggregate.column
    if aggregate.name in _RESULT_COLUMNS:
        names = ", ".join(sorted(_RESULT_COLUMNS))
        text = f"is the name of a column that every result has ({names}); rename it"
        return Problem(path, aggregate.name, text)
    if column not in source.values:
        role = next((role for role, name in source.roles.items() if name == column), None)
        if role:
            text = f"takes the {role}, which is not a value column"
            return Problem(path, str(aggregate), f"{text}; {_other_column(aggregate, source)}")
        text = f"takes {column!r}, which is not a column of the source"
        return Problem(path, str(aggregate), f"{text}; {_other_column(aggregate, source, column)}")
    try:
        aggregate.result_type(source.values[column])
    except ValueError as error:
        text = without_value(str(error), str(aggregate), "")
        return Problem(path, str(aggregate), f"{text}; {_other_column(aggregate, source)}")
    return None


def _other_column(aggregate: Aggregate, source: Source, name: str = "") -> str:
    """Says which columns an aggregate can take, where it can't take the one it names."""
    fitting = [column for column, kind in source.values.items() if _takes(aggregate, kind)]
    if fitting:
        return nearest(name, fitting, f"use one of {listed(fitting)}")
    return (
        f"the source has no value column that {aggregate.function} takes; declare one under "
        "source.columns, or use another function"
    )


def _takes(aggregate: Aggregate, column_type: str) -> bool:
    try:
        aggregate.result_type(column_type)
    except ValueError:
        return False
    return True


def _rule_problems(name: str, rule: Rule, columns: dict[str, str]) -> Iterator[Problem]:
    fields = {
        "when": (rule.when, rule.when_sql),
        "severity": (rule.severity, rule.severity_sql),
    }
    for field, (text, compiled) in fields.items():
        try:
            compiled(columns)
        except RuleError as error:
            if len(text) > MAX_TEXT:
                reason = TOO_LONG
            else:
                reason = hint(text) or without_value(str(error), "", text)
            yield Problem(("alerts", name, field), text, reason)
