"""Where all windows on a DataFrame begin: `windowed(events, spec)` and `windows(spec)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from pyspark.sql import DataFrame

from windows_pipeline.dataframe.bound import Bind, Result, Transform, bound_to, unbound
from windows_pipeline.dataframe.checks import require_bounded
from windows_pipeline.dataframe.groups import GroupWindowed
from windows_pipeline.dataframe.rows import RowWindowed, require_no_stream
from windows_pipeline.dataframe.windowed import Plan, Windowed
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
    """Puts a DataFrame's records in windows: say by what, then what of them you want.

    For example, how many events each user had in each hour that is over:

        hour = TimeWindows.of_size_and_grace("1 hour", "5 minutes")
        windowed(events, hour).by("user").event_time("ts").final().agg(count())

    Args:
        events: The records; no stream.
        windows: The windows. By event time: `SlidingWindows`, `TimeWindows`, `SessionWindows`;
            FLIP-11's, from `windows_pipeline.flip11`: group windows (`Tumble`, `Slide`,
            `Session`) and row windows (`SlideRows`, `TumbleRows`, `SessionRows`).

    Returns:
        A builder with the verbs that these windows have; each ends in a DataFrame.

    Raises:
        ValueError: No DataFrame, a stream (rule F3), or no windows.
    """
    builder = _builder(windows, bound_to(events))
    if isinstance(builder, RowWindowed):
        require_no_stream(events, [builder.window])
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
    """The builder of `windowed` before it has records, for chains of `DataFrame.transform`.

    For example:

        events.transform(windows(hour, by="user", event_time="ts").agg(count()))

    Args:
        windows: See `windowed`.
        by: The key's column or columns, as the verb `by` takes them.
        event_time: The event time's column, as the verb `event_time` takes it; None to leave
            it to the verb, or to `on` of FLIP-11's windows.

    Returns:
        The builder that `windowed` gives for these windows; each end of it is a function for
        `DataFrame.transform`.

    Raises:
        ValueError: No windows, or what is no name.
    """
    builder = _builder(windows, unbound).by(*_names(by))
    return builder if event_time is None else builder.event_time(event_time)


def _builder(
    windows: WindowSpec | GroupWindow | RowWindow, bind: Bind[Result]
) -> Windowed[Result] | GroupWindowed[Result] | RowWindowed[Result]:
    """The builder of these windows' verbs.

    Raises:
        ValueError: No windows.
    """
    if isinstance(windows, GroupWindow):
        return GroupWindowed(windows, bind)
    if isinstance(windows, RowWindow):
        return RowWindowed(windows, bind)
    if isinstance(windows, WindowSpec):
        return Windowed(Plan(windows), bind)
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
    """Names of columns, of one or several.

    Raises:
        ValueError: Something else.
    """
    if isinstance(columns, str):
        return [columns]
    if not isinstance(columns, (list, tuple)):
        raise ValueError(
            f"by: {columns!r} is no name of a column; pass its name as text, or a list of names"
        )
    return columns
