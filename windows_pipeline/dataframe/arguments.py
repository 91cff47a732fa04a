"""Checks a user's arguments: each error names the argument, the value and the fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Literal, NoReturn, cast

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import Aggregation
from windows_pipeline.aggregates.aggregation import ColumnOrName
from windows_pipeline.compat.query_context_log import without_query_context

OnError = Literal["raise", "null"]
"""What an aggregate that can't be computed does (rule G3)."""
NO_KEYS = (T.ArrayType, T.MapType, T.VariantType, T.NullType, T.CalendarIntervalType)
"""Types that have no order, so that no key or order of arrival can have them."""
_SORTS_IN_ARROW = "numbers, strings, booleans, binary, dates, timestamps and structs of these"


def require_frame(events: DataFrame) -> None:
    """Requires a DataFrame of Spark; the error has nothing of another table's content.

    Raises:
        ValueError: `events` is no DataFrame of Spark.
    """
    if isinstance(events, DataFrame):
        return
    library, name = type(events).__module__.partition(".")[0], type(events).__name__
    whole = "events.collect()" if name == "LazyFrame" else "events"
    frames = {
        "pandas": "spark.createDataFrame(events)",
        "polars": f"spark.createDataFrame({whole}.to_arrow())",
        "pyarrow": "spark.createDataFrame(events)",
    }
    known = f"a {library} {name}" if library in frames else f"of type {name}"
    raise ValueError(
        f"events: must be a DataFrame of Spark, but is {known}; pass "
        f"{frames.get(library, 'one, such as spark.table(...)')}, where spark is the session: "
        "SparkSession.builder.getOrCreate()"
    )


def require_bounded(events: DataFrame) -> None:
    """Requires a batch DataFrame: a streaming DataFrame never ends (rule F3).

    Raises:
        ValueError: `events` is no DataFrame of Spark, or is a streaming DataFrame.
    """
    require_frame(events)
    if events.isStreaming:
        raise ValueError(
            "events: must be a batch DataFrame, but is a streaming DataFrame, which never ends; "
            "write its micro-batches to a table (foreachBatch) and let a pipeline, or a batch "
            "DataFrame of that table, compute the windows"
        )


def require_names(argument: str, names: Sequence[object]) -> None:
    """Requires that each column name is a string.

    Raises:
        ValueError: A name is not a string.
    """
    for name in names:
        if not isinstance(name, str):
            raise ValueError(
                f"{argument}: must be a column's name, not {name!r}; pass its name as text, "
                f"several as .{argument}('one', 'other')"
            )


def refuse_verb(builder: object, name: str, advice: Mapping[str, str]) -> NoReturn:
    """Raises an error that says what to do instead of a verb that a builder does not have.

    Args:
        builder: The builder.
        name: The verb, or any other missing attribute.
        advice: What to do instead, by verb of other builders.

    Raises:
        AttributeError: Always.
    """
    builder_name = type(builder).__name__
    if name not in advice:
        raise AttributeError(f"{builder_name!r} object has no attribute {name!r}")
    raise AttributeError(f"{name}: {builder_name} does not have this verb: {advice[name]}")


def require_column(events: DataFrame, argument: str, name: str) -> T.DataType:
    """The type of a column.

    Raises:
        ValueError: No column, or more than one column, has this name.
    """
    if not isinstance(name, str):
        raise ValueError(
            f"{argument}: must be a column's name, not {name!r}; pass its name as text"
        )
    try:
        with without_query_context():
            found = list(events.select(name).schema)
    except AnalysisException:
        found = []
    if len(found) != 1:
        raise ValueError(f"{argument}: {_unknown(events, name)}")
    return found[0].dataType


def _unknown(events: DataFrame, name: str) -> str:
    times = sum(name.lower() == column.lower() for column in events.columns)
    if times > 1:
        return f"the name {name!r} must be unique, but {times} columns have it; rename or drop one"
    if times == 1:
        return f"column {name!r} has a dot in its name; write it in backticks, '`{name}`'"
    near = get_close_matches(name, events.columns, 1, 0.7)
    fix = f"did you mean {near[0]!r}?" if near else f"use one of {events.columns}"
    return f"there is no column {name!r}; {fix}"


def require_aggregates(aggregates: Sequence[object]) -> None:
    """Requires that each argument is an aggregate.

    Raises:
        ValueError: An argument is not an aggregate.
    """
    for aggregate in aggregates:
        if isinstance(aggregate, (list, tuple)):
            raise ValueError(
                f"aggregates: {aggregate!r} is a list; pass aggregates one by one, as in "
                ".agg(count(), sum_('n'))"
            )
        if not isinstance(aggregate, Aggregation):
            raise ValueError(
                f"aggregates: must be aggregates of windows_pipeline, not {aggregate!r}; pass "
                "count(), sum_('n') or the like"
            )


def require_on_error(on_error: object) -> None:
    """Requires that `on_error` is one of its two values (rule G3).

    Raises:
        ValueError: It is not.
    """
    if on_error not in ("raise", "null"):
        raise ValueError(
            f"on_error: must be 'raise' or 'null', not {on_error!r}; with 'null' an aggregate that "
            "can't be computed is null, and the column 'failed' names it"
        )


def require_computable(events: DataFrame, aggregation: Aggregation) -> None:
    """Requires that the records have an aggregate's columns and condition.

    Raises:
        ValueError: A column or the condition is not an expression over these records.
    """
    argument = f"aggregates: {aggregation.result_name}"
    for column in (aggregation.column, aggregation.by):
        if isinstance(column, str) and column.isidentifier():
            require_column(events, argument, column)
        elif column is not None:
            _require_expression(events, argument, column)
    if aggregation.condition is None:
        return
    where = f"{argument}: where"
    kind = _require_expression(events, where, aggregation.condition)
    if not isinstance(kind, T.BooleanType):
        raise ValueError(
            f"{where}: must be a boolean condition, but {aggregation.condition!r} is of type "
            f"{kind.simpleString()}; compare it with a value, as in where('n > 0')"
        )


def _require_expression(events: DataFrame, argument: str, expression: ColumnOrName) -> T.DataType:
    """The type of an expression over one record.

    Raises:
        ValueError: Spark cannot evaluate the expression over one record.
    """
    try:
        with without_query_context():
            column = column_of(events, expression)
            # The other columns make Spark refuse an aggregate over all records.
            return events.select("*", column).schema[-1].dataType
    except AnalysisException as error:
        reason = str(error).split("\n", 1)[0]
        raise ValueError(
            f"{argument}: {expression!r} must be an expression over a record of "
            f"{events.columns}: {reason}; correct it, or name a column"
        ) from None


def column_of(events: DataFrame, column: ColumnOrName) -> Column:
    """The column of this name if there is one; else the expression that the text contains."""
    if not isinstance(column, str):
        return cast("Column", column)
    return F.col(column) if column in events.columns and "." not in column else F.expr(column)


def require_orderable(name: str, kind: T.DataType) -> None:
    """Requires that a key's type, and the types of a struct's fields, can be sorted.

    Raises:
        ValueError: The type cannot be sorted, or its collation does not sort by bytes.
    """
    if isinstance(kind, T.StructType):
        for part in kind:
            require_orderable(f"{name}.{part.name}", part.dataType)
    elif isinstance(kind, T.StringType) and not kind.isUTF8BinaryCollation():
        raise ValueError(
            f"by: {name!r} is of type {kind.simpleString()}; a key must compare by its bytes: cast "
            "it to string, and make texts that shall be equal the same before, as with lower"
        )
    elif isinstance(kind, NO_KEYS):
        raise ValueError(
            f"by: {name!r} is of type {kind.simpleString()}; a key must be of {_SORTS_IN_ARROW}: "
            "cast it, as with to_json"
        )
