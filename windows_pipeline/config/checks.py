"""Checks between the fields of a pipeline: each check compares two or more fields."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from windows_pipeline.aggregates import Aggregate, ProjectAggregate
from windows_pipeline.alerts.rule_sql import RuleError, columns_read
from windows_pipeline.config.aggregates import is_computed, result_types, takes_key
from windows_pipeline.config.fields import RESULT_TYPES, result_type
from windows_pipeline.config.keys import filter_problems, key_problems
from windows_pipeline.config.own_checks import result_check_problems
from windows_pipeline.config.source import Source
from windows_pipeline.config.windows.window_kinds import Rule, Windows, fixed_result_columns
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
_NO_COLUMN = "there is no column "
_FIRING_COLUMNS = frozenset(
    {
        "firing_id",
        "reason",
        "cause",
        "stream_time",
        "fired_after",
        "fired_after_arrival_unit",
        "fired_after_partition",
        "is_final",
        "state",
    }
)


def windows_problems(windows: Windows, source: Source) -> list[Problem]:
    """Checks windows against their source: key, filter, kind, trigger, aggregates and rules."""
    problems = list(key_problems(windows.key, source, _RESULT_COLUMNS))
    has_key = not problems
    if has_key:
        source = windows.keyed(source)
    columns = fixed_result_columns(source)
    if not has_key:
        # Rules may read parts of the faulty key, which is not a mistake of the rules.
        columns = {**source.types, **columns}
    problems += filter_problems(windows.where, source, {**columns, **windows.aggregates})
    problems += [*_trigger_problems(windows), *windows.problems(source)]
    problems += [*_process_problems(windows, source)]
    faulty: set[str] = set()
    for aggregate in windows.aggregate_list:
        written = windows.aggregates[aggregate.name]
        problem = _frame_problem(aggregate, windows, written)
        problem = problem or _aggregate_problem(aggregate, source, written)
        if problem is None:
            columns |= result_types([aggregate], source)
            continue
        problems.append(problem)
        if not _is_taken(aggregate.name, source):
            faulty.add(aggregate.name)
    problems += _unused_frames(windows)
    found = [
        problem
        for name, rule in windows.alerts.items()
        for problem in _rule_problems(name, rule, columns)
    ]
    tables = ["final_windows", *(["firings"] if windows.trigger is not None else [])]
    types = {table: windows.checked_columns(columns, table) for table in tables}
    found += result_check_problems(windows.checks, types)
    # The type of a faulty aggregate is not known, so its problem comes first.
    found = [problem for problem in found if not _reads(str(problem.value), faulty)]
    return [*problems, *_with_key_hints(found, source)]


def _reads(text: str, columns: Collection[str]) -> bool:
    """Whether an expression reads one of the columns; not if it can't be parsed."""
    try:
        return not columns_read(text).isdisjoint(columns)
    except RuleError:
        return False


def _with_key_hints(problems: Iterable[Problem], source: Source) -> Iterator[Problem]:
    """Adds a hint where SQL over results names the key's column as the source does."""
    for problem in problems:
        is_unknown = problem.text.startswith(_NO_COLUMN)
        key_hint = _key_hint(str(problem.value), source) if is_unknown else None
        yield problem if key_hint is None else replace(problem, text=key_hint)


def _key_hint(text: str, source: Source) -> str | None:
    key, read = source.key, columns_read(text)
    if isinstance(key, str):
        if key not in read:
            return None
        return f"reads {key!r}, the key, which results have in the column 'key'; write key"
    if "key" not in read:
        return None
    if not key:
        return "reads 'key', but all records have one key, which is null; leave it out"
    return f"reads 'key', a key of several columns; write its parts' names: {', '.join(key)}"


def _trigger_problems(windows: Windows) -> Iterator[Problem]:
    """Checks that windows stay open until they fire on time, and that no result hides a column."""
    trigger = windows.trigger
    if trigger is None:
        return
    for problem in trigger.problems():
        yield Problem(("trigger", *problem.path), problem.value, problem.text)
    if not trigger.final_only and trigger.out_of_orderness > windows.grace:
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
            "'trigger: {final: true}' beside it, for a firing of each final result, or "
            "'trigger: {}', for firings on time and late"
        )
        yield Problem(("process", "function"), windows.process.function, text)
    for problem in windows.process.problems(source.values, windows.row_key):
        yield Problem(("process", *problem.path), problem.value, problem.text)


def _frame_problem(aggregate: Aggregate, windows: Windows, written: str) -> Problem | None:
    """Checks that an aggregate names a frame where there are several, and none elsewhere."""
    path, names, over = ("aggregates", aggregate.name), windows.frame_names, aggregate.over
    if "frames" in windows.model_fields_set and not names:
        return None  # the definition names no frame, which is a problem of its own
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
    """Refuses frames without an aggregate, which would only delay the results of other frames."""
    used = {aggregate.over for aggregate in windows.aggregate_list}
    if not used <= set(windows.frame_names):
        return  # the aggregate that names no frame, or another one, may be meant for it
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
    if _is_taken(aggregate.name, source):
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
            if role == "key" and takes_key(aggregate):
                fix = f"write {_called(aggregate)}(struct({column}))"
                return Problem(path, str(aggregate), f"{text}; {fix}")
            return Problem(path, str(aggregate), f"{text}; {_other_column(aggregate, source)}")
        text = f"takes {column!r}, which is not a column of the source"
        return Problem(path, str(aggregate), f"{text}; {_other_column(aggregate, source, column)}")
    try:
        aggregate.result_type(source.values[column])
    except ValueError as error:
        text = without_value(str(error), str(aggregate), "")
        return Problem(path, str(aggregate), f"{text}; {_other_column(aggregate, source)}")
    return None


def _is_taken(name: str, source: Source) -> bool:
    """Whether a result has a column of this name without the aggregate."""
    is_part = not isinstance(source.key, str) and name in source.key
    return name in _RESULT_COLUMNS or is_part


def _code_problem(aggregate: Aggregate, code: ProjectAggregate, written: str) -> Problem | None:
    """Checks a user's aggregate: its result type, and that with a condition it skips nulls."""
    path = ("aggregates", aggregate.name)
    if result_type(code.result_type) is None:
        text = (
            f"returns {code.result_type} by its result_type ({code.file}), which no column of "
            f"these tables can have; return one of {', '.join(RESULT_TYPES)}, decimal(p,s), or "
            "array<...> of one"
        )
        return Problem(path, written, text)
    if aggregate.condition is not None and not code.skip_nulls:
        # The code gets nulls for the records that the condition excludes.
        text = f"has a condition, but takes nulls; set skip_nulls=True in {code.file}"
        return Problem(path, written, text)
    return None


def _computed_problem(aggregate: Aggregate, source: Source, written: str) -> Problem | None:
    """Checks an aggregate with an expression or a condition."""
    path, parts = ("aggregates", aggregate.name), aggregate.texts
    for part in parts:
        problem = _sql_problem(part)
        if problem is not None:
            return Problem(path, written, problem)
    try:
        read = frozenset().union(*map(columns_read, parts))
        of_key = source.key_columns if takes_key(aggregate) else ()
        roles = {name: role for role, name in source.role_columns if name in read - {*of_key}}
        if roles:
            name, role = min(roles.items())
            fix = f"use value columns: {listed([*source.values, *of_key])}"
            return Problem(path, written, f"takes {name!r}, the {role}; {fix}")
        result_types([aggregate], source)
    except RuleError as error:
        return Problem(path, written, f"in {error}")
    except ValueError as error:  # the function takes no value of the expression's type
        return Problem(path, written, without_value(str(error), str(aggregate), ""))
    return None


def _sql_problem(part: str) -> str | None:
    """Says why an aggregate's expression or condition is not SQL; None if it is SQL."""
    if not part:
        return "has nothing after 'where'; write a condition, as in 'x > 3'"
    try:
        columns_read(part)
    except RuleError as error:
        return f"holds {part!r}, which {error.reason}"
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
            yield Problem(("alerts", name, field), text, error.reason)
