"""The columns of expressions and conditions that aggregates take, and windows where one fails."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregate, ProjectAggregate
from windows_pipeline.config import BoundAggregates

_BREAK = ProjectAggregate.BEFORE_REASON
REASONS = "_reasons"
"""The names of failed aggregates, each with a line break and the reason where code has one."""


def bound_aggregates(aggregates: Sequence[Aggregate] | BoundAggregates) -> BoundAggregates:
    """Aggregates of columns that the records have, or that are to be added to them."""
    if isinstance(aggregates, BoundAggregates):
        return aggregates
    return BoundAggregates(tuple(aggregates), {}, {})


def with_values(records: DataFrame, bound: BoundAggregates) -> DataFrame:
    """Adds the columns that the aggregates take to records with a source's value columns."""
    return records.withColumns({name: F.expr(sql) for name, sql in bound.added.items()})


def with_failures(windows: DataFrame, bound: BoundAggregates) -> DataFrame:
    """Makes an aggregate fail in windows that hold a record for which its expression fails (G3).

    Args:
        windows: Windows or firings with all aggregates of `bound`, and `failed`, where a name may
            be followed by a line break and the reason.
        bound: The aggregates.

    Returns:
        The rows without the counts of such records; the aggregate is null there, and its name is
        in `failed`, in the order of the aggregates. With users' aggregates also `_reasons`: the
        names with their reasons.
    """
    if bound.of_users:
        name_of = F.transform("failed", lambda text: F.substring_index(text, _BREAK, 1))
        windows = windows.withColumns({REASONS: F.col("failed"), "failed": name_of})
    if not bound.failed:
        return windows
    counts = set(bound.failed.values())
    fails = {name: F.coalesce(F.col(of) > 0, F.lit(False)) for name, of in bound.failed.items()}
    named = [
        F.when(
            F.array_contains("failed", each.name) | fails.get(each.name, F.lit(False)),
            F.lit(each.name),
        )
        for each in bound.aggregates
        if each.name not in counts
    ]
    # The rows of records that no window counts have no list.
    failed = F.when(F.col("failed").isNotNull(), F.array_compact(F.array(*named)))
    values = {name: F.when(~condition, F.col(name)) for name, condition in fails.items()}
    return windows.withColumns({**values, "failed": failed}).drop(*counts)


def reason_of(name: Column) -> Column:
    """Why a failed aggregate of a user failed, in rows with `_reasons`; null for another."""
    named = F.filter(REASONS, lambda text: text.startswith(F.concat(name, F.lit(_BREAK))))
    return F.substr(F.get(named, F.lit(0)), F.length(name) + F.lit(len(_BREAK) + 1))
