"""Binds the aggregates of a definition to the columns of its source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from windows_pipeline.aggregates import (
    FUNCTIONS,
    Aggregate,
    ProjectAggregate,
    UserModules,
    parse_aggregate,
)
from windows_pipeline.alerts.rule_sql import (
    RuleError,
    ValueSql,
    canonical,
    case_of,
    compile_value,
    pair_of,
)
from windows_pipeline.config.columns.key import key_type
from windows_pipeline.config.source import Source

_FAILED = "_failed_"
"""The prefix of the columns that count the records for which an expression fails."""

_ARRIVAL = {
    "_stream_time_ms": "bigint",
    "source_partition": "string",
    "arrival_unit": "date",
    "offset": "bigint",
}
"""The columns of records that order arrival across source partitions (rule A1)."""


@dataclass(frozen=True, slots=True)
class BoundAggregates:
    """Aggregates over columns of records, some of which have to be added to the records.

    Attributes:
        aggregates: What to compute: the definition's aggregates, and the counts of `failed`.
        added: The columns to add to the records: their SQL by name.
        failed: The count of records for which an aggregate's expression or condition fails, by
            the aggregate's name; the aggregate fails in windows where it is above 0 (rule G3).
        of_users: The names of users' aggregates, whose errors say why they fail.
    """

    aggregates: tuple[Aggregate, ...]
    added: Mapping[str, str]
    failed: Mapping[str, str]
    of_users: frozenset[str] = frozenset()


def aggregates_of(texts: Mapping[str, str], modules: UserModules) -> list[Aggregate]:
    """The aggregates of a definition, by the name of their result; their texts are canonical."""
    parsed = (parse_aggregate(name, text, modules, frames=True) for name, text in texts.items())
    return [_canonical(each) for each in parsed]


def modules_of(aggregates: Iterable[Aggregate]) -> dict[str, str]:
    """The modules of users' aggregates, with the digests of their texts."""
    functions = [each.function for each in aggregates]
    return {each.module: each.digest for each in functions if isinstance(each, ProjectAggregate)}


def is_computed(aggregate: Aggregate) -> bool:
    """Whether an aggregate has an expression or a condition."""
    return aggregate.written is not None


def takes_key(aggregate: Aggregate) -> bool:
    """Whether an aggregate's texts may name the columns of the key: those of users' aggregates."""
    return isinstance(aggregate.function, ProjectAggregate)


def value_of(aggregate: Aggregate, source: Source) -> ValueSql:
    """The value that an aggregate with an expression or a condition takes of each record.

    Args:
        aggregate: The aggregate.
        source: The source with the definition's key.

    Raises:
        RuleError: The expression or the condition is wrong, or the condition is not a boolean.
    """
    columns, key, of_user = source.values, "", takes_key(aggregate)
    if of_user and source.key_columns:
        columns = {**columns, "key": key_type(source.key, source.types)}
        if isinstance(source.key, str):
            key, columns[source.key] = source.key, columns.pop("key")
    value = ValueSql("1", "bigint")
    if aggregate.written != "*":
        value = compile_value(str(aggregate.written), columns, key, may_be_struct=of_user)
    if aggregate.by is not None:
        value = pair_of(value, compile_value(aggregate.by, columns), _ARRIVAL)
    if aggregate.condition is None:
        return value
    condition = compile_value(aggregate.condition, columns, key)
    if condition.type != "boolean":
        raise RuleError(
            f"must be a boolean after where, not of type {condition.type}; compare it, as in "
            "'x > 3'",
            aggregate.condition,
        )
    return case_of([(condition, value)])


def failure_of(aggregate: Aggregate, result_type: str) -> str | None:
    """The text for an aggregate that fails: why, and what to do (rule G3); None if it can't."""
    overflows, function = aggregate.may_overflow(result_type), aggregate.function
    if isinstance(function, ProjectAggregate):
        return (
            f"{aggregate}: {function.reference} raised, or its expression overflows; correct "
            f"{function.file}, or leave such records out"
        )
    if not is_computed(aggregate):
        return aggregate.overflow(result_type) if overflows else None
    text = f"{aggregate}: a number or time of a record overflows its type in the expression"
    if overflows:
        text += f", or the result overflows {result_type}"
    return f"{text}: cast an operand to double, as in cast(x as double), or leave such records out"


def result_types(aggregates: Iterable[Aggregate], source: Source) -> dict[str, str]:
    """The types of the aggregates' results, by the aggregates' names.

    Args:
        aggregates: The aggregates.
        source: The source with the definition's key.
    """
    types = source.types
    return {
        each.name: each.result_type(
            value_of(each, source).type if is_computed(each) else types[each.column]
        )
        for each in aggregates
    }


def bound(aggregates: Iterable[Aggregate], source: Source) -> BoundAggregates:
    """Binds aggregates to the columns of a source with the definition's key.

    Raises:
        RuleError: See `value_of`.
    """
    wanted, counts = [], []
    added: dict[str, str] = {}
    failed: dict[str, str] = {}
    for each in aggregates:
        wanted.append(each)
        if not is_computed(each):
            continue
        value = value_of(each, source)
        added[each.column] = f"CAST({value.sql} AS {value.type})"
        if value.fails is not None:
            count = f"{_FAILED}{each.name}"
            added[f"{count}_record"] = f"CASE WHEN {value.fails} THEN TRUE END"
            counts.append(Aggregate(count, FUNCTIONS["count"], f"{count}_record", over=each.over))
            failed[each.name] = count
    of_users = {each.name for each in wanted if isinstance(each.function, ProjectAggregate)}
    return BoundAggregates((*wanted, *counts), added, failed, frozenset(of_users))


def _canonical(aggregate: Aggregate) -> Aggregate:
    """The aggregate with texts that are the same for equal expressions."""
    if not is_computed(aggregate):
        return aggregate
    return replace(
        aggregate,
        written=_readable(aggregate.written),
        by=_readable(aggregate.by),
        condition=_readable(aggregate.condition),
    )


def _readable(text: str | None) -> str | None:
    try:
        return text if text in (None, "*") else canonical(str(text))
    except RuleError:
        return text  # the check of the definition says what is wrong
