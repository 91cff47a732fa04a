"""Checks between fields of a pipeline: each function here compares two or more of them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from windows_pipeline.aggregates import Aggregate, ProjectAggregate
from windows_pipeline.alerts.rule_hints import hint
from windows_pipeline.alerts.rule_sql import RuleError, columns_read
from windows_pipeline.config.aggregates import is_computed, result_types
from windows_pipeline.config.keys import filter_problems, key_problems
from windows_pipeline.config.own_checks import result_check_problems
from windows_pipeline.config.source import Source
from windows_pipeline.config.windows.window_kinds import Rule, Windows, fixed_result_columns
from windows_pipeline.text.limits import MAX_TEXT, TOO_LONG
from windows_pipeline.text.problems import Problem, listed, nearest, without_value
from windows_pipeline.windows.durations import duration_text

_RESULT_COLUMNS = frozenset(
    {
        "key",
        "window_start",
        "window_end",
        "first_event_time",
        "last_event_time",
        "record_count",
        "closed",
        "failed",
        "arrival_unit",
        "record_arrival_unit",
        "rule",
        "severity",
        "episode_start",
        "episode_ms",
        "correction",
        "retracted_by",
        # Delta's change data feed adds these.
        "_change_type",
        "_commit_version",
        "_commit_timestamp",
    }
)
_RESULT_TYPES = ("string", "bigint", "double", "boolean", "date", "timestamp")
_RESULT_TYPE = re.compile(rf"{'|'.join(_RESULT_TYPES)}|decimal\(\d+, ?\d+\)")
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


def windows_problems(windows: Windows, source: Source) -> list[Problem]:
    """Checks windows against their source: key, filter, kind, trigger, aggregates and rules."""
    problems = list(key_problems(windows.key, source, _RESULT_COLUMNS))
    if not problems:
        source = windows.keyed(source)
    columns = fixed_result_columns(source)
    problems += filter_problems(windows.where, source, {**columns, **windows.aggregates})
    problems += [*_session_problems(windows, source), *_trigger_problems(windows)]
    problems += [*windows.problems(source), *_process_problems(windows, source)]
    for aggregate in windows.aggregate_list:
        written = windows.aggregates[aggregate.name]
        problem = _frame_problem(aggregate, windows, written)
        problem = problem or _aggregate_problem(aggregate, source, written)
        if problem is None:
            columns |= result_types([aggregate], source.types, source.values)
        else:
            problems.append(problem)
            # A rule may use the faulty aggregate; with any type, the rule's own mistakes show.
            columns.setdefault(aggregate.name, "double")
    problems += _unused_frames(windows)
    for name, rule in windows.alerts.items():
        problems.extend(_rule_problems(name, rule, columns))
    tables = ["final_windows", *(["firings"] if windows.trigger is not None else [])]
    types = {table: windows.checked_columns(columns, table) for table in tables}
    problems.extend(result_check_problems(windows.checks, types))
    return problems


def _session_problems(windows: Windows, source: Source) -> Iterator[Problem]:
    """Refuses sessions of several source partitions: a slow partition may yet join sessions."""
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


def _process_problems(windows: Windows, source: Source) -> Iterator[Problem]:
    """Checks a window function: its windows must have firings, and its columns must be valid."""
    if windows.process is None:
        return
    if windows.trigger is None:
        text = (
            "is called at each firing, and windows without a trigger have none; write "
            "'trigger: {}' beside it, for firings on time and late"
        )
        yield Problem(("process", "function"), windows.process.function, text)
    for problem in windows.process.problems(source.values):
        yield Problem(("process", *problem.path), problem.value, problem.text)


def _frame_problem(aggregate: Aggregate, windows: Windows, written: str) -> Problem | None:
    """Checks that an aggregate names a frame where there are several, and none elsewhere."""
    path, names, over = ("aggregates", aggregate.name), windows.frame_names, aggregate.over
    if over is None:
        if not names:
            return None
        text = f"names no frame; write '{written} over {names[0]}', with one of {', '.join(names)}"
        return Problem(path, written, text)
    if not names:
        text = (
            f"is over the frame {over!r}, and these windows name no frames; leave 'over {over}' "
            f"out, or use kind: slide_rows with 'frames: {{{over}: {{preceding: 1 hour}}}}'"
        )
        return Problem(path, written, text)
    if over not in names:
        fix = nearest(over, names, f"use one of {', '.join(names)}")
        return Problem(
            path, written, f"is over {over!r}, which is not a frame of these windows; {fix}"
        )
    return None


def _unused_frames(windows: Windows) -> Iterator[Problem]:
    """Refuses frames without an aggregate: they would only delay the results of the others."""
    used = {aggregate.over for aggregate in windows.aggregate_list}
    for name in windows.frame_names:
        if name not in used:
            text = f"has no aggregate; write one, as in 'count() over {name}', or remove the frame"
            yield Problem(("frames", name), name, text)


def _aggregate_problem(aggregate: Aggregate, source: Source, written: str) -> Problem | None:
    path = ("aggregates", aggregate.name)
    column = aggregate.column
    if aggregate.name in _RESULT_COLUMNS:
        names = ", ".join(sorted(_RESULT_COLUMNS))
        text = f"is the name of a column that every result has ({names}); rename it"
        return Problem(path, aggregate.name, text)
    if not isinstance(source.key, str) and aggregate.name in source.key:
        return Problem(path, aggregate.name, "is the name of a part of the key; rename it")
    if isinstance(aggregate.function, ProjectAggregate):
        problem = _code_problem(aggregate, aggregate.function, written)
        if problem is not None:
            return problem
    if is_computed(aggregate):
        return _computed_problem(aggregate, source, written)
    if column not in source.values:
        role = next((role for role, name in source.role_columns if name == column), None)
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


def _code_problem(aggregate: Aggregate, code: ProjectAggregate, written: str) -> Problem | None:
    """Checks a user's aggregate: its result type, and that with a condition it skips nulls."""
    path = ("aggregates", aggregate.name)
    element = code.result_type.removeprefix("array<").removesuffix(">")
    if not _RESULT_TYPE.fullmatch(element):
        text = (
            f"returns {code.result_type} by its result_type ({code.file}), which no column of "
            f"these tables can have; return one of {', '.join(_RESULT_TYPES)}, decimal(p,s), or "
            "array<...> of one"
        )
        return Problem(path, written, text)
    if aggregate.condition is not None and not code.skip_nulls:
        # Records that the condition leaves out reach the code as nulls.
        text = f"has a condition, but takes nulls; set skip_nulls=True in {code.file}"
        return Problem(path, written, text)
    return None


def _computed_problem(aggregate: Aggregate, source: Source, written: str) -> Problem | None:
    """Checks an aggregate with an expression or a condition."""
    path, texts = ("aggregates", aggregate.name), (aggregate.written, aggregate.condition)
    parts = [text for text in texts if text not in (None, "*")]
    try:
        read = frozenset().union(*map(columns_read, parts))
        roles = {name: role for role, name in source.role_columns if name in read}
        if roles:
            name, role = min(roles.items())
            fix = f"use value columns: {listed(source.values)}"
            return Problem(path, written, f"takes {name!r}, the {role}; {fix}")
        result_types([aggregate], source.types, source.values)
    except RuleError as error:
        hints = (hint(text) for text in parts)
        return Problem(path, written, next(filter(None, hints), f"in {error}"))
    except ValueError as error:  # the function takes no value of the expression's type
        return Problem(path, written, without_value(str(error), str(aggregate), ""))
    return None


def _other_column(aggregate: Aggregate, source: Source, name: str = "") -> str:
    """The fix for an aggregate that can't take the column it names: columns that it can."""
    fitting = [column for column, kind in source.values.items() if _takes(aggregate, kind)]
    if fitting:
        return nearest(name, fitting, f"use one of {listed(fitting)}")
    return (
        f"the source has no value column that {_called(aggregate)} takes; declare one under "
        "source.columns, or use another function"
    )


def _called(aggregate: Aggregate) -> str:
    """The function's name as the file writes it."""
    return str(aggregate).partition("(")[0]


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
