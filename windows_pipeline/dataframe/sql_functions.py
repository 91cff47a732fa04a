"""The window functions of SQL: the parameters of the code behind a function are its arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import (
    Aggregation,
    ProjectAggregate,
    UserModules,
    parse_aggregate,
    split_arguments,
)
from windows_pipeline.aggregates.aggregation import aggregation_of
from windows_pipeline.aggregates.counts import count
from windows_pipeline.dataframe.arguments import OnError
from windows_pipeline.dataframe.builder import windowed
from windows_pipeline.dataframe.groups import GroupWindowed
from windows_pipeline.dataframe.names import quoted, require_once, split_name
from windows_pipeline.dataframe.rows import RowWindowed
from windows_pipeline.dataframe.sql_calls import Value, WindowCall
from windows_pipeline.dataframe.windowed import Windowed
from windows_pipeline.text.limits import require_short
from windows_pipeline.windows import (
    CountWindows,
    ForwardSlidingWindows,
    GroupWindow,
    RowWindow,
    SessionRows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    TumbleRows,
    WindowSpec,
    rows,
)
from windows_pipeline.windows.arguments import require_flag
from windows_pipeline.windows.durations import Duration
from windows_pipeline.windows.firing.triggers import Trigger, trigger_of
from windows_pipeline.windows.frames.texts import distance_of, frame_of

_NAME = re.compile(r"\w+")
_COUNT_ALL = re.compile(r"\s*count\s*\(\s*\*\s*\)\s*", re.IGNORECASE)
_OF_ARRIVAL = {"source_partition_col", "idle_after"}
_EXAMPLES = {"grace": "'0 ms' if windows close at their end, or such as '5 minutes'"}

_Step = Callable[..., Any]
_Aggregates = Sequence[Aggregation]


@dataclass(frozen=True, slots=True)
class _Function:
    """A window function of SQL.

    Attributes:
        windows: What makes the windows; each further step takes the windows made so far.
        builder: Starts the builder over records, windows and key.
        results: The last verbs, each with what makes its other arguments. A call has the first
            result, unless it has an argument that belongs to another one alone.
        defaults: Arguments of the windows that a call may leave out.
    """

    windows: tuple[_Step, ...]
    builder: _Step
    results: tuple[tuple[_Step, ...], ...]
    defaults: Mapping[str, Value] = field(default_factory=dict)

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of all arguments."""
        return tuple(_parameters(*self.windows, self.builder, *sum(self.results, ())))

    def result_for(self, arguments: Mapping[str, Value]) -> tuple[_Step, ...]:
        """The result that a call asks for.

        Raises:
            ValueError: An argument is unknown or missing, or two do not go together.
        """
        own = {result: _parameters(*result).keys() for result in self.results}
        usual, *others = self.results
        asked = (each for each in others if arguments.keys() & (own[each] - own[usual]))
        result = next(asked, usual)
        chosen = [name for name in arguments if name in own[result] - own[usual]]
        known = _parameters(*self.windows, self.builder, *result)
        for name in arguments:
            if name in known:
                continue
            if any(name in names for names in own.values()):
                raise ValueError(f"{name} does not go with {chosen[0]}; leave one of them out")
            raise ValueError(f"has no argument {name!r}; use {', '.join(self.arguments)}")
        for name, parameter in known.items():
            if parameter.default is Parameter.empty and name not in arguments:
                example = _EXAMPLES.get(name, "...")
                raise ValueError(f"{name!r} is missing; add {name} => {example}")
        for name in arguments:
            if name in {*chosen, *_OF_ARRIVAL} and "offset_col" not in arguments:
                raise ValueError(
                    f"{name} needs offset_col, which is missing; add offset_col => ..., the column "
                    "that orders arrival"
                )
        return result


def _parameters(*steps: _Step) -> dict[str, Parameter]:
    """The named arguments that steps take in a call; values that the steps pass on are none."""
    found = (each for step in steps for each in signature(step).parameters.values())
    unnamed = Parameter.POSITIONAL_ONLY
    return {each.name: each for each in found if each.kind is not unnamed and each.name != "self"}


def _forward(size: Duration, grace: Duration) -> ForwardSlidingWindows:
    return SlidingWindows.of(size).grace(grace)


def _count(size: int, advance: int | None = None, *, short_first: bool = False) -> GroupWindow:
    return GroupWindow(CountWindows(size, size if advance is None else advance, short_first))


def _tumble_rows(size: str | int) -> TumbleRows:
    return TumbleRows.over(rows(size) if isinstance(size, int) else distance_of(size, "size"))


def _timed(
    records: DataFrame,
    windows: WindowSpec,
    by: Sequence[str],
    /,
    *,
    time_col: str,
    offset_col: str | None = None,
    source_partition_col: str | None = None,
    idle_after: str | None = None,
) -> Windowed[DataFrame]:
    timed = windowed(records, windows).by(*by).event_time(time_col)
    if offset_col is None:
        return timed
    return timed.arrival(offset_col, partition=source_partition_col, idle_after=idle_after)


def _counted(
    records: DataFrame,
    window: GroupWindow,
    by: Sequence[str],
    /,
    *,
    order_col: str,
    aggregates: _Aggregates,
) -> GroupWindowed[DataFrame]:
    names = [*by, "window_start", "window_end", *(each.result_name for each in aggregates)]
    require_once("aggregates", names, "rename one, as in 'count(*) AS n'")
    # A name that is longer than every column's and result's differs from all of them.
    alias = "w" * (1 + max(map(len, [*names, *records.columns])))
    return windowed(records, window.alias(alias)).by(*by).arrival(order_col)


def _of_rows(
    records: DataFrame,
    window: RowWindow,
    by: Sequence[str],
    /,
    *,
    time_col: str | None = None,
    order_col: str | None = None,
    alias: str | None = None,
) -> RowWindowed[DataFrame]:
    for name, column, is_needed in (
        ("time_col", time_col, window.by_time),
        ("order_col", order_col, window.why_arrival is not None),
    ):
        if is_needed and column is None:
            raise ValueError(f"{name!r} is missing, and these windows need it; add {name} => ...")
    named = window if alias is None else window.alias(alias)
    by_key = windowed(records, named).by(*by)
    ordered = by_key if order_col is None else by_key.arrival(order_col)
    return ordered if time_col is None else ordered.event_time(time_col)


def _windows(
    timed: Windowed[DataFrame],
    /,
    *,
    aggregates: _Aggregates,
    pre_aggregate: bool = True,
    on_error: OnError = "raise",
) -> DataFrame:
    return timed.agg(*aggregates, pre_aggregate=pre_aggregate, on_error=on_error)


def _late(timed: Windowed[DataFrame], /, *, late_records: bool) -> DataFrame:
    require_flag("late_records", late_records)
    return timed.late()


def _firings(
    timed: Windowed[DataFrame],
    trigger: Trigger,
    /,
    *,
    aggregates: _Aggregates,
    input_ends: bool = False,
    on_error: OnError = "raise",
) -> DataFrame:
    return timed.firings(trigger, *aggregates, input_ends=input_ends, on_error=on_error)


def _count_windows(
    counted: GroupWindowed[DataFrame],
    /,
    *,
    aggregates: _Aggregates,
    on_error: OnError = "raise",
) -> DataFrame:
    found, alias = counted.agg(*aggregates, on_error=on_error), counted.plan.require_alias()
    at = found.columns.index(alias)
    columns = [F.col(quoted(name)) for name in found.columns]
    bounds = (F.col(f"{alias}.{part}").alias(f"window_{part}") for part in ("start", "end"))
    return found.select(*columns[:at], *bounds, *columns[at + 1 :])


def _rows(
    each_row: RowWindowed[DataFrame],
    /,
    *,
    aggregates: _Aggregates,
    on_error: OnError = "raise",
) -> DataFrame:
    return each_row.agg(*aggregates, on_error=on_error)


_BY_TIME = (_timed, ((_windows,), (_late,), (_firings, trigger_of)))
_BY_ROW = (_of_rows, ((_rows,),))
_NO_GRACE = {"grace": "0 ms"}

FUNCTIONS = {
    "tumbling_windows": _Function((TimeWindows.of_size_and_grace,), *_BY_TIME, _NO_GRACE),
    "hopping_windows": _Function(
        (TimeWindows.of_size_and_grace, TimeWindows.advance_by), *_BY_TIME, _NO_GRACE
    ),
    "sliding_windows": _Function((SlidingWindows.of_time_difference_and_grace,), *_BY_TIME),
    "forward_windows": _Function((_forward,), *_BY_TIME),
    "session_windows": _Function(
        (SessionWindows.of_inactivity_gap_and_grace,), *_BY_TIME, _NO_GRACE
    ),
    "count_windows": _Function((_count,), _counted, ((_count_windows,),)),
    "slide_rows": _Function((frame_of,), *_BY_ROW),
    "tumble_rows": _Function((_tumble_rows,), *_BY_ROW),
    "session_rows": _Function((SessionRows.with_gap,), *_BY_ROW),
}
"""The window functions by name."""


def computed(records: DataFrame, call: WindowCall, modules: UserModules) -> DataFrame:
    """Computes the call of a window function.

    Args:
        records: The content of TABLE(...).
        call: The call.
        modules: Where users' aggregates come from.

    Raises:
        ValueError: The call has a mistake; the error names the function, the argument and the fix.
    """
    try:
        return _computed(records, call, modules)
    except ValueError as error:
        raise ValueError(f"{call.function}: {error}") from None


def _computed(records: DataFrame, call: WindowCall, modules: UserModules) -> DataFrame:
    function = FUNCTIONS[call.function]
    arguments: dict[str, Any] = {**function.defaults, **call.arguments}
    if arguments.get("late_records") is False:
        del arguments["late_records"]
    verb, *makers = function.result_for(arguments)
    columns = [name for name in arguments if name.endswith("_col")]
    named = [*call.partition_by, *(_text(arguments, name) for name in columns)]
    arguments |= {name: quoted(arguments[name]) for name in columns}
    if "aggregates" in arguments:
        aggregates = parse_aggregates(_text(arguments, "aggregates"), modules)
        arguments["aggregates"] = aggregates
        # Spark reports what is wrong with an expression.
        texts = (each.column for each in aggregates if isinstance(each.column, str))
        named += [text for text in texts if _NAME.fullmatch(text)]
    _require_columns(records, named)

    def run(step: _Step, *values: object) -> Any:
        names = _parameters(step).keys() & arguments.keys()
        return step(*values, **{name: arguments[name] for name in names})

    windows: tuple[object, ...] = ()
    for step in function.windows:
        windows = (run(step, *windows),)
    builder = run(function.builder, records, *windows, [*map(quoted, call.partition_by)])
    found: DataFrame = run(verb, builder, *map(run, makers))
    return found


def _require_columns(records: DataFrame, names: Sequence[str]) -> None:
    known = {name.lower() for name in records.columns}
    for name in names:
        if name.lower() not in known:
            raise ValueError(f"there is no column {name!r}; use one of {records.columns}")


def _text(arguments: Mapping[str, Value], name: str) -> str:
    value = arguments[name]
    if not isinstance(value, str):
        raise ValueError(f"{name}: must be text, not {value!r}; put it in quotes")
    return value


def parse_aggregates(text: str, modules: UserModules) -> list[Aggregation]:
    """Parses 'count(*), sum(amount) AS total' in the syntax of pipeline files."""
    try:
        return [_aggregate(part, modules) for part in split_arguments(text)]
    except ValueError as error:
        raise ValueError(f"aggregates: {error}") from None


def _aggregate(text: str, modules: UserModules) -> Aggregation:
    require_short(text, "call")
    call, name = split_name(text)
    if _COUNT_ALL.fullmatch(call):
        return count().alias(name or "count")
    parsed = parse_aggregate(name or "", call, modules)
    if parsed.written == "*":
        return count().where(str(parsed.condition)).alias(name or "count")
    column = parsed.written or parsed.column
    function = parsed.function
    if isinstance(function, ProjectAggregate):
        function = function.of_library()
    aggregation = aggregation_of(function, column, parsed.percentage, parsed.by)
    if name is not None:
        aggregation = aggregation.alias(name)
    elif aggregation.name is None:
        raise ValueError(f"{call!r} has no name; give it one, as in '{call} AS total'")
    return aggregation if parsed.condition is None else aggregation.where(parsed.condition)
