"""What must fit together in a pipeline: fields that only make sense side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.alerts.rule_hints import slip
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
        # Delta's own, in the change data feed.
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
"""The types that the column of a role may have."""


def fixed_result_columns(source: Source) -> dict[str, str]:
    """The columns that a rule finds in every result, aggregates aside, with their types."""
    times = ("window_start", "window_end", "first_event_time", "last_event_time")
    return {
        "key": source.types[source.key],
        **dict.fromkeys(times, "timestamp"),
        "record_count": "bigint",
    }


def source_problems(source: Source) -> list[Problem]:
    """Roles that name no fitting column, and columns that the tables could not hold."""
    if not source.columns:
        return [Problem(("columns",), {}, "holds no column; write one 'name: type' a line")]
    return [*_place_problems(source), *_role_problems(source), *_column_problems(source)]


def _place_problems(source: Source) -> Iterator[Problem]:
    """A path for files and tables, a topic for Kafka, which has an order of its own."""
    if source.format != "kafka":
        if source.path is None:
            place = "that holds one folder a day" if source.is_landed else "of the Delta table"
            text = f"has no value; write 'path: ...' in source, the folder {place}"
            yield Problem(("path",), None, text)
        if source.kafka is not None:
            text = f"names a topic, but the format is {source.format}; write format: kafka"
            yield Problem(("kafka",), source.kafka.topic, text)
        return
    if source.kafka is None:
        text = "has no value; write 'kafka: {servers: ..., topic: ...}' in source"
        yield Problem(("kafka",), None, text)
    for field in ("path", "arrival", "source_partition"):
        value = getattr(source, field)
        if value is not None:
            text = "has no place with format: kafka, whose partitions and offsets order records"
            yield Problem((field,), value, f"{text}; leave it out")


def _role_problems(source: Source) -> Iterator[Problem]:
    if source.arrival == "lines" and not source.is_landed and source.arrival_column is None:
        text = (
            f"is the order of landed files' lines, and format: {source.format} has none; name a "
            "column, write event_time, or leave it out"
        )
        yield Problem(("arrival",), source.arrival, text)
    if source.idle_after is not None and not source.has_several_partitions:
        text = "has no effect, as there is one source partition; name source_partition, the column"
        yield Problem(
            ("idle_after",), source.idle_after, f"{text} that tells them apart, or leave it out"
        )
    taken: dict[str, str] = {}
    for role, column in source.roles.items():
        if column not in source.columns:
            cure = nearest(column, source.columns, f"use one of {listed(source.columns)}")
            text = f"is no column of the source; declare it under columns, or {cure}"
            yield Problem((role,), column, text)
            continue
        if column in taken:
            text = f"is the {taken[column]} already; name another column"
            yield Problem((role,), column, text)
        taken.setdefault(column, role)
        if source.types[column] not in ROLE_TYPES[role]:
            text = (
                f"is of type {source.columns[column]}; "
                f"the {role} must be {' or '.join(ROLE_TYPES[role])}"
            )
            yield Problem((role,), column, text)


def _column_problems(source: Source) -> Iterator[Problem]:
    seen: dict[str, str] = {}
    for column in source.columns:
        # Spark does not tell names apart by case.
        folded = column.lower()
        if folded in seen:
            text = f"differs from {seen[folded]!r} in case only; rename one"
            yield Problem(("columns", column), column, text)
        seen.setdefault(folded, column)
        if folded in _RAW_COLUMNS and source.roles.get(folded) != column:
            names = ", ".join(sorted(_RAW_COLUMNS))
            text = f"is a column that the tables have themselves ({names}); rename it"
            yield Problem(("columns", column), column, text)


def partition_problems(partitions: Partitions) -> list[Problem]:
    """An end before the start."""
    if partitions.end is None or partitions.end >= partitions.start:
        return []
    text = f"lies before the start, {partitions.start}; write that day or a later one"
    return [Problem(("end",), str(partitions.end), text)]


def windows_problems(windows: Windows, source: Source) -> list[Problem]:
    """Aggregates that the source's columns do not fit, and rules that can't be compiled."""
    columns = fixed_result_columns(source)
    problems = [*_session_problems(windows, source), *_trigger_problems(windows)]
    problems += windows.problems(source)
    for aggregate in windows.aggregate_list:
        problem = _aggregate_problem(aggregate, source)
        if problem is None:
            columns[aggregate.name] = aggregate.result_type(source.types[aggregate.column])
        else:
            problems.append(problem)
            # Rules over it are checked as far as they can be.
            columns.setdefault(aggregate.name, "double")
    for name, rule in windows.alerts.items():
        problems.extend(_rule_problems(name, rule, columns))
    return problems


def _session_problems(windows: Windows, source: Source) -> Iterator[Problem]:
    """Several source partitions, whose order of arrival settles only as the slowest goes on."""
    if windows.kind == "session" and source.has_several_partitions:
        text = (
            "needs records that come in one order (rule D2), and this source may have several "
            "source partitions; leave source_partition out, or take another kind"
        )
        yield Problem(("kind",), windows.kind, text)


def _trigger_problems(windows: Windows) -> Iterator[Problem]:
    """Windows that close before they pass, or whose columns are taken."""
    trigger = windows.trigger
    if trigger is None or windows.row_name:
        return
    if trigger.out_of_orderness > windows.grace:
        text = (
            f"is above the grace, {duration_text(windows.grace)}: windows would close before "
            "they pass; write a grace that covers it"
        )
        path = ("trigger", "out_of_orderness")
        yield Problem(path, duration_text(trigger.out_of_orderness), text)
    for name in windows.aggregates:
        if name in _FIRING_COLUMNS:
            names = ", ".join(sorted(_FIRING_COLUMNS))
            text = f"is a column that every firing has ({names}); rename it"
            yield Problem(("aggregates", name), name, text)


def _aggregate_problem(aggregate: Aggregate, source: Source) -> Problem | None:
    path = ("aggregates", aggregate.name)
    column = aggregate.column
    if aggregate.name in _RESULT_COLUMNS:
        names = ", ".join(sorted(_RESULT_COLUMNS))
        text = f"is a column that every result has ({names}); rename it"
        return Problem(path, aggregate.name, text)
    if column not in source.values:
        role = next((role for role, name in source.roles.items() if name == column), None)
        if role:
            text = f"takes the {role}, which is no value column"
            return Problem(path, str(aggregate), f"{text}; {_other_column(aggregate, source)}")
        text = f"takes {column!r}, which is no column"
        return Problem(path, str(aggregate), f"{text}; {_other_column(aggregate, source, column)}")
    try:
        aggregate.result_type(source.values[column])
    except ValueError as error:
        text = without_value(str(error), str(aggregate), "")
        return Problem(path, str(aggregate), f"{text}; {_other_column(aggregate, source)}")
    return None


def _other_column(aggregate: Aggregate, source: Source, name: str = "") -> str:
    """The cure for a column that an aggregate can't take: those that it can."""
    fitting = [column for column, kind in source.values.items() if _takes(aggregate, kind)]
    if fitting:
        known = f"take one of {listed(fitting)}"
        near = nearest(name, fitting, known)
        return known if near == known else f"take a value column: {near}"
    return (
        f"the source has no value column that {aggregate.function} takes; declare one under "
        "source.columns, or take another function"
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
            path = ("alerts", name, field)
            is_long = len(text) > MAX_TEXT
            fault = TOO_LONG if is_long else slip(text) or without_value(str(error), "", text)
            yield Problem(path, text, fault)
