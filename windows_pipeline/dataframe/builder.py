"""The entry points to windows on a DataFrame: `windowed(events, spec)` and `windows(spec)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from pyspark.sql import DataFrame

from windows_pipeline.dataframe.arguments import require_bounded, require_frame
from windows_pipeline.dataframe.groups import GroupPlan, GroupWindowed
from windows_pipeline.dataframe.results import Result, ResultOf, Transform, applied_to, not_applied
from windows_pipeline.dataframe.rows import RowPlan, RowWindowed, require_no_stream
from windows_pipeline.dataframe.windowed import Windowed, WindowedPlan
from windows_pipeline.windows import GroupWindow, RowWindow, WindowSpec
from windows_pipeline.windows.group_window import SlideOver


@overload
def windowed(events: DataFrame, windows: WindowSpec) -> Windowed[DataFrame]: ...
@overload
def windowed(events: DataFrame, windows: GroupWindow) -> GroupWindowed[DataFrame]: ...
@overload
def windowed(events: DataFrame, windows: RowWindow) -> RowWindowed[DataFrame]: ...
def windowed(
    events: DataFrame, windows: WindowSpec | GroupWindow | RowWindow
) -> Windowed[DataFrame] | GroupWindowed[DataFrame] | RowWindowed[DataFrame]:
    """Assigns a DataFrame's records to windows; the builder's verbs say how, and what to compute.

    For example, the number of each user's events in each closed hour:

        hour = TimeWindows.of_size_and_grace("1 hour", "5 minutes")
        windowed(events, hour).by("user").event_time("ts").final().agg(count())

    Args:
        events: The records, as a batch DataFrame.
        windows: Windows by event time (`SlidingWindows`, `TimeWindows`, `SessionWindows`), or
            FLIP-11's windows from `windows_pipeline.flip11`: group windows (`Tumble`, `Slide`,
            `Session`) and row windows (`SlideRows`, `TumbleRows`, `SessionRows`).

    Returns:
        A builder with the verbs of these windows; its last verb returns a DataFrame.

    Raises:
        ValueError: `events` is no DataFrame of Spark, or is a stream (rule F3), or `windows` is no
            window specification.
    """
    require_frame(events)
    builder = _builder(windows, applied_to(events))
    if isinstance(builder, RowWindowed):
        require_no_stream(events, [builder.plan.window])
    require_bounded(events)
    return builder


@overload
def windows(
    windows: WindowSpec, *, by: str | Sequence[str] = (), event_time: str | None = None
) -> Windowed[Transform]: ...
@overload
def windows(
    windows: GroupWindow, *, by: str | Sequence[str] = (), event_time: str | None = None
) -> GroupWindowed[Transform]: ...
@overload
def windows(
    windows: RowWindow, *, by: str | Sequence[str] = (), event_time: str | None = None
) -> RowWindowed[Transform]: ...
def windows(
    windows: WindowSpec | GroupWindow | RowWindow,
    *,
    by: str | Sequence[str] = (),
    event_time: str | None = None,
) -> Windowed[Transform] | GroupWindowed[Transform] | RowWindowed[Transform]:
    """Makes the builder of `windowed` without records, for chains of `DataFrame.transform`.

    For example:

        events.transform(windows(hour, by="user", event_time="ts").agg(count()))

    Args:
        windows: See `windowed`.
        by: The key's column or columns; see the verb `by`.
        event_time: The event time's column; see the verb `event_time`. None if that verb, or
            `on` of FLIP-11's windows, names the column.

    Returns:
        The builder that `windowed` returns for these windows, except that its last verb returns
        a function for `DataFrame.transform`.

    Raises:
        ValueError: `windows` is no window specification, or a name is not a string.
    """
    builder = _builder(windows, not_applied).by(*_names(by))
    return builder if event_time is None else builder.event_time(event_time)


def _builder(
    windows: WindowSpec | GroupWindow | RowWindow, result_of: ResultOf[Result]
) -> Windowed[Result] | GroupWindowed[Result] | RowWindowed[Result]:
    """The builder for this kind of windows.

    Raises:
        ValueError: `windows` is no window specification.
    """
    if isinstance(windows, GroupWindow):
        return GroupWindowed(GroupPlan(windows), result_of)
    if isinstance(windows, RowWindow):
        return RowWindowed(RowPlan(windows), result_of)
    if isinstance(windows, WindowSpec):
        return Windowed(WindowedPlan(windows), result_of)
    fix = (
        "end Slide.over(...) with .every(...)"
        if isinstance(windows, SlideOver)
        else "take one, such as TimeWindows.of_size_and_grace('1 hour', '5 minutes')"
    )
    raise ValueError(
        "windows must be SlidingWindows, TimeWindows, SessionWindows or windows of "
        f"windows_pipeline.flip11, not {windows!r}; {fix}"
    )


def _names(columns: str | Sequence[str]) -> Sequence[str]:
    """A list of column names, from one name or several.

    Raises:
        ValueError: `columns` is neither a string nor a list or tuple.
    """
    if isinstance(columns, str):
        return [columns]
    if not isinstance(columns, (list, tuple)):
        raise ValueError(
            f"by: must be a column's name, not {columns!r}; pass its name as text, or a list of "
            "names"
        )
    return columns
