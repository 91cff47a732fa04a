"""Windows in SQL: `sql(spark, "SELECT * FROM tumbling_windows(TABLE(events) ...)")`.

Each call of a window function becomes the plan that `windowed` makes; Spark runs the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from sqlglot import TokenType

from windows_pipeline.aggregates import Aggregation, parse_aggregate, split_arguments
from windows_pipeline.aggregates.aggregation import aggregation_of
from windows_pipeline.aggregates.counts import count
from windows_pipeline.compat.query_context_log import without_query_context
from windows_pipeline.dataframe.builder import windowed
from windows_pipeline.dataframe.names import quoted, require_once, split_name, unquoted
from windows_pipeline.dataframe.sql_calls import Value, WindowCall, tokens_of, window_calls
from windows_pipeline.dataframe.windowed import Windowed
from windows_pipeline.text.limits import require_short
from windows_pipeline.windows import (
    GroupWindow,
    RowCount,
    SessionWindows,
    Slide,
    SlidingWindows,
    TimeWindows,
    WindowSpec,
)

_QUERIES = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES)
_NAME = re.compile(r"\w+")
_COUNT_ALL = re.compile(r"\s*count\s*\(\s*\*\s*\)\s*", re.IGNORECASE)
_COUNT_WINDOWS = "count_windows"

_OTHERS = {"CUMULATE", "HOP", "SESSION", "SLIDE", "TUMBLE"}
"""Functions of windows in other engines' SQL."""

Arguments = dict[str, Value]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A window function of SQL: its arguments, and how to make windows from them."""

    make_windows: Callable[[Arguments], WindowSpec | GroupWindow]
    required: tuple[str, ...]
    optional: tuple[str, ...] = ("grace", "offset_col", "source_partition_col")


def _hopping(arguments: Arguments) -> WindowSpec:
    tumbling = TimeWindows.of_size_and_grace(_text(arguments, "size"), _grace(arguments))
    return tumbling.advance_by(_text(arguments, "advance")) if "advance" in arguments else tumbling


def _sliding(arguments: Arguments) -> WindowSpec:
    difference = _text(arguments, "time_difference")
    return SlidingWindows.of_time_difference_and_grace(difference, _grace(arguments))


def _forward(arguments: Arguments) -> WindowSpec:
    return SlidingWindows.of(_text(arguments, "size")).grace(_grace(arguments))


def _session(arguments: Arguments) -> WindowSpec:
    return SessionWindows.of_inactivity_gap_and_grace(_text(arguments, "gap"), _grace(arguments))


def _counted(arguments: Arguments) -> GroupWindow:
    size = _whole(arguments, "size")
    advance = _whole(arguments, "advance") if "advance" in arguments else size
    window = Slide.over(RowCount(size)).every(RowCount(advance))
    window = window.on(quoted(_text(arguments, "order_col")))
    return window.with_short_first() if arguments.get("short_first", False) else window


_KINDS = {
    "tumbling_windows": _Kind(_hopping, ("time_col", "size", "aggregates")),
    "hopping_windows": _Kind(_hopping, ("time_col", "size", "advance", "aggregates")),
    "sliding_windows": _Kind(_sliding, ("time_col", "time_difference", "aggregates")),
    "forward_windows": _Kind(_forward, ("time_col", "size", "aggregates")),
    "session_windows": _Kind(_session, ("time_col", "gap", "aggregates")),
    _COUNT_WINDOWS: _Kind(
        _counted, ("order_col", "size", "aggregates"), ("advance", "short_first")
    ),
}


def sql(spark: SparkSession, query: str) -> DataFrame:
    """Runs Spark SQL that may call window functions where a table may stand.

    `sql` is a function, not a verb of `windowed`, because a query names its tables and may call
    several window functions on different records.

    For example:

        SELECT user, window_end, sum_amount
        FROM sliding_windows(TABLE(events) PARTITION BY user, time_col => 'ts',
             time_difference => '10 minutes', grace => '0 seconds',
             aggregates => 'count(*), sum(amount)')
        WHERE sum_amount > 100

    The first argument is TABLE(name) or TABLE(query). The session must know all names in it; names
    from the outer query's WITH are unknown there. PARTITION BY takes columns (several in
    parentheses); without it windows are over all records. Further arguments are named literals:

    | function           | needs                                 |
    |--------------------|---------------------------------------|
    | `tumbling_windows` | `time_col`, `size`                    |
    | `hopping_windows`  | `time_col`, `size`, `advance`         |
    | `sliding_windows`  | `time_col`, `time_difference`         |
    | `forward_windows`  | `time_col`, `size`                    |
    | `session_windows`  | `time_col`, `gap`                     |
    | `count_windows`    | `order_col`, `size`                   |

    All functions need `aggregates`: calls of the library's functions, such as
    'count(*), sum(price * quantity) AS total, avg(price) where price > 0 AS mean'. The expression
    and the condition are Spark's SQL over the columns of a record; an aggregate of an expression
    needs a name. Optional arguments are `grace`, `offset_col` and `source_partition_col` (see
    `Windowed.arrival`); for `count_windows` they are `advance` and `short_first` (see
    `CountWindows`).

    Args:
        spark: The session.
        query: Any query or command except CREATE VIEW.

    Returns:
        The query's result. A window function has the columns of `Windowed.agg`; `count_windows`
        has the key's columns, `window_start`, `window_end` (`order_col` of the first and last
        row) and the aggregates.

    Raises:
        ValueError: A call has a mistake; the error names the function, the argument and the fix.
    """
    kinds = [token.token_type for token in tokens_of(query)]
    calls = list(window_calls(query, _KINDS))
    if calls and kinds[0] is TokenType.CREATE and TokenType.VIEW in kinds:
        raise ValueError(
            "query: a view stores its text, and Spark does not know window functions in it; use "
            "sql(spark, 'SELECT ...').createOrReplaceTempView(...)"
        )
    frames: dict[str, Any] = {
        f"windows_{index}": _windows(spark, call) for index, call in enumerate(calls)
    }
    bounds = [0, *(each for call in calls for each in (call.start, call.end)), len(query)]
    between = [query[start:end] for start, end in zip(bounds[::2], bounds[1::2], strict=True)]
    # Spark replaces names in braces by DataFrames, so the braces of the query are doubled.
    text, *others = [each.replace("{", "{{").replace("}", "}}") for each in between]
    for name, other in zip(frames, others, strict=True):
        text += f"{{{name}}}{other}"
    try:
        with without_query_context():
            # Without windows the text is as it was: Spark looks for braces where it has frames.
            return spark.sql(text, **frames) if frames else spark.sql(query)
    except AnalysisException as error:
        unknown = _unknown_windows(query, error)
        if unknown is None:
            raise
        raise ValueError(
            f"query: there is no window function {unknown!r}; use one of {', '.join(_KINDS)}, as "
            "in sliding_windows(TABLE(events) PARTITION BY user, time_col => 'ts', ...)"
        ) from None


def _unknown_windows(query: str, error: AnalysisException) -> str | None:
    """The function of windows that a query calls and nothing has; None if that is not why it fails.

    Spark knows no table function of the name, or does not read the arguments of another engine.
    """
    if error.getCondition() == "UNRESOLVABLE_TABLE_VALUED_FUNCTION":
        return unquoted((error.getMessageParameters() or {})["name"])
    tokens = tokens_of(query)
    names = (
        token.text
        for token, following in pairwise(tokens)
        if following.token_type is TokenType.L_PAREN and token.text.upper() in _OTHERS
    )
    return next(names, None)


def _windows(spark: SparkSession, call: WindowCall) -> DataFrame:
    kind, arguments = _KINDS[call.function], dict(call.arguments)
    _require_arguments(call, kind)
    is_query = tokens_of(call.table)[0].token_type in _QUERIES
    records = sql(spark, call.table) if is_query else spark.table(call.table)
    try:
        aggregates = parse_aggregates(_text(arguments, "aggregates"))
        # Spark reports what is wrong with an expression.
        texts = (each.column for each in aggregates if isinstance(each.column, str))
        of = [text for text in texts if _NAME.fullmatch(text)]
        _require_columns(records, [*call.partition_by, *_columns(arguments), *of])
        windows = kind.make_windows(arguments)
        if isinstance(windows, GroupWindow):
            return _count_windows(records, windows, call.partition_by, aggregates)
        timed = windowed(records, windows).by(*(quoted(name) for name in call.partition_by))
        return _arriving(timed.event_time(quoted(_text(arguments, "time_col"))), arguments).agg(
            *aggregates
        )
    except ValueError as error:
        raise ValueError(f"{call.function}: {error}") from None


def _count_windows(
    records: DataFrame,
    window: GroupWindow,
    by: Sequence[str],
    aggregates: Sequence[Aggregation],
) -> DataFrame:
    names = [*by, "window_start", "window_end", *(each.result_name for each in aggregates)]
    require_once("aggregates", names, "rename one, as in 'count(*) AS n'")
    keys = [quoted(name) for name in by]
    # A name that is longer than every column's and result's differs from all of them.
    alias = "w" * (1 + max(map(len, [*names, *records.columns])))
    found = windowed(records, window.alias(alias)).by(*keys).agg(*aggregates)
    bounds = (F.col(f"{alias}.{part}").alias(f"window_{part}") for part in ("start", "end"))
    results = (F.col(f"`{each.result_name}`") for each in aggregates)
    return found.select(*keys, *bounds, *results)


def _require_arguments(call: WindowCall, kind: _Kind) -> None:
    known = (*kind.required, *kind.optional)
    for name in call.arguments:
        if name not in known:
            raise ValueError(f"{call.function}: has no argument {name!r}; use {', '.join(known)}")
    for name in kind.required:
        if name not in call.arguments:
            raise ValueError(f"{call.function}: {name!r} is missing; add {name} => ...")


def _columns(arguments: Arguments) -> list[str]:
    return [_text(arguments, name) for name in arguments if name.endswith("_col")]


def _require_columns(records: DataFrame, names: Sequence[str]) -> None:
    known = {name.lower() for name in records.columns}
    for name in names:
        if name.lower() not in known:
            raise ValueError(f"there is no column {name!r}; use one of {records.columns}")


def _arriving(timed: Windowed[DataFrame], arguments: Arguments) -> Windowed[DataFrame]:
    """The windows with the order of arrival, if the call names one."""
    partition = "source_partition_col"
    if "offset_col" in arguments:
        of_partition = quoted(_text(arguments, partition)) if partition in arguments else None
        return timed.arrival(quoted(_text(arguments, "offset_col")), partition=of_partition)
    if partition in arguments:
        raise ValueError(f"{partition} needs offset_col, which is missing; add offset_col => ...")
    return timed


def _grace(arguments: Arguments) -> str:
    return _text(arguments, "grace") if "grace" in arguments else "0 ms"


def _text(arguments: Arguments, name: str) -> str:
    value = arguments[name]
    if not isinstance(value, str):
        raise ValueError(f"{name}: must be text, not {value!r}; put it in quotes")
    return value


def _whole(arguments: Arguments, name: str) -> int:
    value = arguments[name]
    if type(value) is not int:
        raise ValueError(
            f"{name}: must be a whole number of rows, not {value!r}; write one, as in 100"
        )
    return value


def parse_aggregates(text: str) -> list[Aggregation]:
    """Parses 'count(*), sum(amount) AS total' in the syntax of pipeline files."""
    try:
        return [_aggregate(part) for part in split_arguments(text)]
    except ValueError as error:
        raise ValueError(f"aggregates: {error}") from None


def _aggregate(text: str) -> Aggregation:
    require_short(text, "call")
    call, name = split_name(text)
    if _COUNT_ALL.fullmatch(call):
        return count().alias(name or "count")
    parsed = parse_aggregate(name or "", call)
    if parsed.written == "*":
        return count().where(str(parsed.condition)).alias(name or "count")
    column = parsed.written or parsed.column
    aggregation = aggregation_of(parsed.function, column, parsed.percentage, parsed.by)
    if name is not None:
        aggregation = aggregation.alias(name)
    elif aggregation.name is None:
        raise ValueError(f"{call!r} has no name; give it one, as in '{call} AS total'")
    return aggregation if parsed.condition is None else aggregation.where(parsed.condition)
