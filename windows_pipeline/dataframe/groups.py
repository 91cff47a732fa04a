"""FLIP-11's group windows on a DataFrame.

`group_windows(events, window).group_by("w", "user").select("user", "w.start", count())`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from windows_pipeline.aggregates import Aggregation
from windows_pipeline.dataframe.checks import NO_KEYS, require_bounded
from windows_pipeline.dataframe.inputs import Arrival, Input
from windows_pipeline.dataframe.names import quoted, require_once, split_name
from windows_pipeline.dataframe.windows import Stream, cogroup
from windows_pipeline.engine.counts import evaluate_counts
from windows_pipeline.text.limits import require_short
from windows_pipeline.windows import CountWindows, GroupWindow, SessionWindows


def group_windows(events: DataFrame, window: GroupWindow) -> WindowedFrame:
    """Takes a DataFrame by windows: the first of `group_windows(...).group_by(...).select(...)`.

    For example, of each user's ten minutes how many events there were, and when:

        window = Tumble.over("10 minutes").on("ts").alias("w")
        grouped = group_windows(events, window).group_by("w", "user")
        grouped.select("user", "w.start", "w.end", count(), sum_("amount"))

    All records are on time and every window is a result, as in Flink's batch mode; what of
    rows does not fill a window at the end is none.

    Args:
        events: The records; no stream.
        window: `Tumble`, `Slide` or `Session`, with `on` and `alias`.

    Raises:
        ValueError: A stream, no `on` or `alias`, an alias that is a column's name, or no such
            column (rule F3).
    """
    if not isinstance(window, GroupWindow):
        cure = "end Slide.over(...) with .every(...), or pass Tumble.over(...)"
        raise ValueError(f"window: {window!r} is no group window; {cure}")
    require_bounded(events)
    if window.column is None:
        what = "the order of arrival" if isinstance(window.windows, CountWindows) else "time"
        raise ValueError(f"window: it has no column of {what}; name it with .on('...')")
    if window.name is None:
        raise ValueError("window: it has no name to group by; give it one with .alias('w')")
    if window.name.lower() in _lower(events.columns):
        raise ValueError(
            f"alias: {window.name!r} hides the column of that name; choose another alias"
        )
    _require_columns(events, "on", [window.column])
    return WindowedFrame(events, window, window.column, window.name)


@dataclass(frozen=True)
class WindowedFrame:
    """A DataFrame and its windows, to be grouped; made by `group_windows`.

    Attributes:
        events: The records.
        window: The windows.
        column: What they go by.
        name: Their alias.
    """

    events: DataFrame
    window: GroupWindow
    column: str
    name: str

    def group_by(self, *names: str) -> WindowGroups:
        """Groups by the windows and, for windows of each key, by columns.

        Args:
            names: The windows' alias, and any columns (nulls are a value). The alias alone
                gives windows over all records.

        Raises:
            ValueError: The alias is not among them, a name comes twice, or no such column.
        """
        require_once("group_by", names, "name it once")
        keys = [name for name in names if name != self.name]
        if len(keys) == len(names):
            raise ValueError(
                f"group_by: the windows {self.name!r} are not among {list(names)}, so groups "
                f"would have no bounds; add {self.name!r}"
            )
        _require_columns(self.events, "group_by", keys)
        return WindowGroups(self, tuple(keys))


@dataclass(frozen=True)
class WindowGroups:
    """Groups by window and key, to be aggregated; made by `WindowedFrame.group_by`.

    Attributes:
        of: The records and their windows.
        keys: The key's columns.
    """

    of: WindowedFrame
    keys: tuple[str, ...]

    def select(self, *items: str | Aggregation) -> DataFrame:
        """A row for each window of each key.

        Args:
            items: What a row holds: the key's columns; with the alias `w`, 'w.start', 'w.end',
                or 'w' for a struct of both; aggregates. Text may end in ' as name'.

        Returns:
            The items as columns, in no order of rows. `w.start` and `w.end` are named `start`
            and `end`. Of windows by time they are of the time column's type, the end does not
            belong to the window, and a session's is its last record and the gap. Of windows
            by rows they are the first and the last row's arrival, both within.

        Raises:
            ValueError: An item that is none of these, two of one name, or a column of no
                fitting type.
        """
        if not items:
            raise ValueError("select: there is nothing; pass columns or aggregates")
        aggregates: list[Aggregation] = []
        chosen: list[tuple[str, Column]] = []
        for item in items:
            if isinstance(item, Aggregation):
                own_name = f"aggregate_{len(aggregates)}"
                aggregates.append(item.alias(own_name))
                chosen.append((item.result_name, F.col(own_name)))
            else:
                chosen.append(self._column(item))
        cure = "rename one, as with count().alias('...') or 'w.start as ...'"
        require_once("select", [name for name, _ in chosen], cure)
        match self.of.window.windows:
            case CountWindows() as windows:
                found = self._count_windows(windows, aggregates)
            case windows:
                stream = Stream(self.of.events, self._by, quoted(self.of.column), aggregates)
                found = cogroup(windows, [stream])
        return found.select(*(column.alias(name) for name, column in chosen))

    def _column(self, item: str) -> tuple[str, Column]:
        """A result's name, and where its text finds it among the windows' columns."""
        if not isinstance(item, str) or not item.strip():
            raise ValueError(f"select: {item!r} is neither text nor an aggregate")
        require_short(item, "select")
        text, alias = split_name(item)
        start, end = self._bounds
        own = {
            **{key: (key, F.col(quoted(key))) for key in self.keys},
            f"{self.of.name}.start": ("start", start),
            f"{self.of.name}.end": ("end", end),
            self.of.name: (self.of.name, F.struct(start.alias("start"), end.alias("end"))),
        }
        if text not in own:
            raise ValueError(
                f"select: {text!r} is none of {', '.join(own)}; group by it, or aggregate it"
            )
        name, column = own[text]
        return alias or name, column

    @property
    def _by(self) -> list[str]:
        """The key's columns as Spark finds them, whatever is in their names."""
        return [quoted(key) for key in self.keys]

    @property
    def _bounds(self) -> tuple[Column, Column]:
        match self.of.window.windows:
            case CountWindows():
                names = ("first_offset", "last_offset")
            case SessionWindows():
                names = ("window_start", "session_timeout")
            case _:
                names = ("window_start", "window_end")
        return F.col(names[0]), F.col(names[1])

    def _count_windows(self, windows: CountWindows, aggregates: Sequence[Aggregation]) -> DataFrame:
        column = quoted(self.of.column)
        own = Input(self.of.events, self._by, None, aggregates, Arrival(column))
        kind = self.of.events.select(column).schema[0].dataType
        if isinstance(kind, NO_KEYS):
            raise ValueError(
                f"on: {self.of.column!r} is of type {kind.simpleString()}, which has no order; "
                "name a column of numbers, text, times or a struct of these"
            )
        found = evaluate_counts(own.records(), {0: windows}, own.keys, own.aggregates)
        named = [F.col(key).alias(name) for key, name in zip(own.keys, self.keys, strict=True)]
        results = [F.col(one.name) for one in own.aggregates]
        return found.select(*named, "first_offset", "last_offset", *results)


def _require_columns(events: DataFrame, where: str, names: Sequence[str]) -> None:
    for name in names:
        if not isinstance(name, str) or name.lower() not in _lower(events.columns):
            near = get_close_matches(str(name), events.columns, 1, 0.5)
            cure = f"did you mean {near[0]!r}?" if near else f"use one of {events.columns}"
            raise ValueError(f"{where}: there is no column {name!r}; {cure}")


def _lower(names: Sequence[str]) -> set[str]:
    return {name.lower() for name in names}
