"""Checks of what a user passes: each refusal names the argument, the value and the fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import NoReturn, cast

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregation
from windows_pipeline.aggregates.functions import ColumnOrName

NO_KEYS = (T.ArrayType, T.MapType, T.VariantType, T.NullType, T.CalendarIntervalType)
"""Types that nothing is grouped by: they have no order."""
_SORTS_IN_ARROW = "numbers, strings, booleans, binary, dates, timestamps and structs of these"


def require_bounded(events: DataFrame) -> None:
    """Refuses what is no DataFrame, and a streaming one, which never ends (rule F3).

    Raises:
        ValueError: It is one; says what to do instead.
    """
    if not isinstance(events, DataFrame):
        raise ValueError(f"events: {events!r} is no DataFrame; pass one, as spark.table(...) gives")
    if events.isStreaming:
        raise ValueError(
            "events: this is a stream, and windows are computed of records that are all there; "
            "write its micro-batches to a table (foreachBatch) and let a pipeline, or a batch "
            "DataFrame of that table, compute the windows"
        )


def require_names(argument: str, names: Sequence[object]) -> None:
    """Refuses what is no list of names of columns.

    Raises:
        ValueError: Names the argument and what is no name.
    """
    for name in names:
        if not isinstance(name, str):
            raise ValueError(
                f"{argument}: {name!r} is no name of a column; pass its name as text, several as "
                f".{argument}('one', 'other')"
            )


def refuse_verb(builder: object, name: str, advice: Mapping[str, str]) -> NoReturn:
    """Says what to do in place of a verb that a builder does not have.

    Args:
        builder: What it was asked of.
        name: The verb.
        advice: What to do, by the verbs that other builders have.

    Raises:
        AttributeError: Always.
    """
    known = type(builder).__name__
    if name not in advice:
        raise AttributeError(f"{known!r} object has no attribute {name!r}")
    raise AttributeError(f"{name}: {known} does not have it: {advice[name]}")


def require_column(events: DataFrame, argument: str, name: str) -> T.DataType:
    """The type of a column.

    Raises:
        ValueError: There is none of this name, or more than one.
    """
    if not isinstance(name, str):
        raise ValueError(f"{argument}: {name!r} is no name of a column; pass its name as text")
    try:
        found = list(events.select(name).schema)
    except AnalysisException:
        found = []
    if len(found) != 1:
        raise ValueError(f"{argument}: {_unknown(events, name)}")
    return found[0].dataType


def _unknown(events: DataFrame, name: str) -> str:
    times = sum(name.lower() == each.lower() for each in events.columns)
    if times > 1:
        return f"column {name!r} is there {times} times; rename or drop one"
    if times == 1:
        return f"column {name!r} has a point in its name; write it in backticks, '`{name}`'"
    near = get_close_matches(name, events.columns, 1, 0.7)
    fix = f"did you mean {near[0]!r}?" if near else f"use one of {events.columns}"
    return f"there is no column {name!r}; {fix}"


def require_aggregates(aggregates: Sequence[object]) -> None:
    """Refuses what is no aggregate.

    Raises:
        ValueError: Names it.
    """
    for one in aggregates:
        if isinstance(one, (list, tuple)):
            raise ValueError(
                f"aggregates: {one!r} is a list; pass aggregates one by one, as in "
                ".agg(count(), sum_('n'))"
            )
        if not isinstance(one, Aggregation):
            raise ValueError(
                f"aggregates: {one!r} is no aggregate of windows_pipeline; take count(), "
                "sum_('n') and the like from there"
            )


def require_computable(events: DataFrame, one: Aggregation) -> None:
    """Refuses an aggregate whose column or condition these records do not have.

    Raises:
        ValueError: Names the result, and the column or the condition.
    """
    argument = f"aggregates: {one.result_name}"
    if isinstance(one.column, str) and one.column.isidentifier():
        require_column(events, argument, one.column)
    elif one.column is not None:
        _require_expression(events, argument, one.column)
    if one.condition is None:
        return
    where = f"{argument}: where"
    kind = _require_expression(events, where, one.condition)
    if not isinstance(kind, T.BooleanType):
        raise ValueError(
            f"{where}: {one.condition!r} is of type {kind.simpleString()}, no condition; "
            "compare it with something, as in where('n > 0')"
        )


def _require_expression(events: DataFrame, argument: str, expression: ColumnOrName) -> T.DataType:
    """The type of an expression over one record.

    Raises:
        ValueError: Spark cannot make a column of it.
    """
    try:
        column = column_of(events, expression)
        # Beside other columns, so that it is none over all records.
        return events.select("*", column).schema[-1].dataType
    except AnalysisException as error:
        reason = str(error).split("\n", 1)[0]
        raise ValueError(
            f"{argument}: {expression!r} is no expression over a record of {events.columns}: "
            f"{reason}"
        ) from None


def column_of(events: DataFrame, column: ColumnOrName) -> Column:
    """A column, or an expression; what is a column's name is that column, whatever else it says."""
    if not isinstance(column, str):
        return cast("Column", column)
    return F.col(column) if column in events.columns and "." not in column else F.expr(column)


def require_orderable(name: str, kind: T.DataType) -> None:
    """Refuses a key of a type that has no order, also in a struct's field.

    Raises:
        ValueError: Names the column.
    """
    if isinstance(kind, T.StructType):
        for part in kind:
            require_orderable(f"{name}.{part.name}", part.dataType)
    elif isinstance(kind, T.StringType) and not kind.isUTF8BinaryCollation():
        raise ValueError(
            f"by: {name!r} is of type {kind.simpleString()}; text goes by its bytes here: cast it "
            "to string, and make one text of those that are to be alike, as with lower"
        )
    elif isinstance(kind, NO_KEYS):
        raise ValueError(
            f"by: {name!r} is of type {kind.simpleString()}; a key takes {_SORTS_IN_ARROW}: "
            "cast it, as with to_json"
        )
