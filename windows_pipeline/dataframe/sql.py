"""Windows in SQL: `sql(spark, "SELECT * FROM tumbling_windows(TABLE(events) ...)")`.

Each call of a window function becomes the plan that `windowed` makes; Spark runs the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from sqlglot import TokenType

from windows_pipeline.aggregates import UserModules
from windows_pipeline.compat.query_context_log import without_query_context
from windows_pipeline.dataframe.names import unquoted
from windows_pipeline.dataframe.sql_calls import WindowCall, tokens_of, window_calls
from windows_pipeline.dataframe.sql_functions import FUNCTIONS, computed

_QUERIES = (TokenType.SELECT, TokenType.WITH, TokenType.FROM, TokenType.VALUES)
_OTHERS = {"CUMULATE", "HOP", "SESSION", "SLIDE", "TUMBLE"}
"""Functions of windows in other engines' SQL."""


def sql(spark: SparkSession, query: str, *, modules: Sequence[str | Path] = ()) -> DataFrame:
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

    | function           | needs                                  | may have                      |
    |--------------------|----------------------------------------|-------------------------------|
    | `tumbling_windows` | `time_col`, `size`                     | `grace`                       |
    | `hopping_windows`  | `time_col`, `size`, `advance`          | `grace`                       |
    | `sliding_windows`  | `time_col`, `time_difference`, `grace` |                               |
    | `forward_windows`  | `time_col`, `size`, `grace`            |                               |
    | `session_windows`  | `time_col`, `gap`                      | `grace`                       |
    | `count_windows`    | `order_col`, `size`                    | `advance`, `short_first`      |
    | `slide_rows`       | `preceding` or `following`, or both    | `time_col`, `order_col`       |
    | `tumble_rows`      | `size`                                 | `time_col`, `order_col`       |
    | `session_rows`     | `time_col`, `order_col`, `gap`         |                               |

    A `grace` that is left out is '0 ms'. All functions need `aggregates`: calls of the library's
    functions, such as 'count(*), sum(price * quantity) AS total, avg(price) where price > 0 AS
    mean', or of your own, as in 'my_module:spread(price) AS spread', which may take a struct of
    several columns: 'my_module:spent(struct(price, quantity)) AS spent'. The expression and the
    condition are Spark's SQL over the columns of a record; an aggregate of an expression needs a
    name. All functions take `on_error` (see `Windowed.agg`).

    Functions of windows by time take `offset_col`, `source_partition_col` and `idle_after` (see
    `Windowed.arrival`), and `pre_aggregate`; tumbling, hopping and sliding windows also
    `first_window_start_ms` and `emit_empty`. With `late_records => TRUE`, instead of `aggregates`,
    the rows are the late records (see `Windowed.late`). With `early_every`, `late`, `panes`,
    `out_of_orderness`, `final` or `input_ends` the rows are firings (see `Windowed.firings`).

    Functions of rows take `alias`, the name of the column of bounds. Bounds are durations,
    '5 rows', 'unbounded' or 'unbounded rows'; a size of `tumble_rows` may be '5 rows' or 5.

    Args:
        spark: The session.
        query: Any query or command except CREATE VIEW.
        modules: Python files whose `UserAggregate`s the query may name. Their code runs.

    Returns:
        The query's result. A function of windows by time has the columns of `Windowed.agg`, `late`
        or `firings`, a function of rows those of `RowWindowed.agg`; `count_windows` has the key's
        columns, `window_start`, `window_end` (`order_col` of the first and last row) and the
        aggregates.

    Raises:
        ValueError: A call has a mistake; the error names the function, the argument and the fix.
    """
    return _run(spark, query, _user_modules(modules))


def _run(spark: SparkSession, query: str, modules: UserModules) -> DataFrame:
    kinds = [token.token_type for token in tokens_of(query)]
    calls = list(window_calls(query, FUNCTIONS))
    if calls and kinds[0] is TokenType.CREATE and TokenType.VIEW in kinds:
        raise ValueError(
            "query: a view stores its text, and Spark does not know window functions in it; use "
            "sql(spark, 'SELECT ...').createOrReplaceTempView(...)"
        )
    frames: dict[str, Any] = {
        f"windows_{index}": _windows(spark, call, modules) for index, call in enumerate(calls)
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
            f"query: there is no window function {unknown!r}; use one of {', '.join(FUNCTIONS)}, "
            "as in sliding_windows(TABLE(events) PARTITION BY user, time_col => 'ts', ...)"
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


def _user_modules(modules: Sequence[str | Path]) -> UserModules:
    files = modules if isinstance(modules, (list, tuple)) else (None,)
    if not all(isinstance(file, (str, Path)) for file in files):
        raise ValueError(
            f"modules: must be a list of Python files, not {modules!r}; pass one such as "
            "['my_module.py']"
        )
    fix = "add its file, as in modules=['{module}.py']"
    return UserModules(tuple(map(Path, modules)), "windows_pipeline.sql", fix)


def _windows(spark: SparkSession, call: WindowCall, modules: UserModules) -> DataFrame:
    is_query = tokens_of(call.table)[0].token_type in _QUERIES
    records = _run(spark, call.table, modules) if is_query else spark.table(call.table)
    return computed(records, call, modules)
