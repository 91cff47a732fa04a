"""Windows by key and time, as Kafka's stores answer: read only, at one version of a table."""

from __future__ import annotations

from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import NoReturn, Self, get_args

from windows_pipeline.config import Pipeline
from windows_pipeline.query.arrow_values import microseconds
from windows_pipeline.query.declared import declared_windows
from windows_pipeline.query.explain import MOST_EXPLAINED, Explainer, Explanation
from windows_pipeline.query.history import WindowHistory, corrections_in
from windows_pipeline.query.keys import KeyColumn, KeyRange
from windows_pipeline.query.local_tables import LocalTable
from windows_pipeline.query.pinned_windows import PinnedWindows, Which, holding, length_us, table_of
from windows_pipeline.query.readable import OpenTable
from windows_pipeline.query.stored_window import FoundWindows, StoredWindow
from windows_pipeline.query.wanted_files import Span, Wanted
from windows_pipeline.storage.catalog import firing_tables, window_tables
from windows_pipeline.windows import GracedRows, SessionWindows

_START, _END = "window_start", "window_end"
_MOST_ROWS = 250_000
"""So many rows of a table are in memory at a time, unless one key's sessions are more."""


class WindowStore:
    """The windows of a definition, read only, pinned to a version of their table.

    Bounds on times are bounds on a window's start, both included; None is no bound. Times are
    instants with a zone. Windows come in the order of key, start and end, or in the reverse.

    | table | rows |
    | --- | --- |
    | `final` | closed windows, as the newest correction left them |
    | `current` | every window as it stands now, open ones included |
    | `firings` | every firing, each a row of its window |
    """

    def __init__(
        self,
        pipeline: Pipeline,
        windows_name: str,
        warehouse: str,
        table: Which = "final",
        *,
        version: int | None = None,
        most_rows: int = _MOST_ROWS,
        open_table: OpenTable = LocalTable,
    ) -> None:
        """Opens the table of a pipeline's windows; `open` finds the pipeline by its name.

        Args:
            pipeline: The pipeline.
            windows_name: The window definition.
            warehouse: The folder of all tables.
            table: Which windows: `final`, `current` or `firings`.
            version: The table's version; None for the newest.
            most_rows: How many rows of the table to have in memory at a time.
            open_table: Opens tables; without Spark by default.

        Raises:
            NoTableError: The table does not exist.
            TableDamagedError: A file of the table is damaged.
            UnreadableTableError: The table is not for readers other than Spark, or has no such
                version.
            ValueError: There are no such windows, or no such table.
        """
        self._pipeline, self._name, self._warehouse = pipeline, windows_name, warehouse
        if windows_name not in pipeline.windows:
            raise ValueError(
                f"windows_name: {windows_name!r} is not in {pipeline.name}; use one of "
                f"{', '.join(pipeline.windows)}"
            )
        if table not in get_args(Which):
            raise ValueError(f"table: must be final, current or firings, not {table!r}")
        self._windows = pipeline.windows[windows_name]
        self._which = table
        self._most_rows = most_rows
        self._open_table = open_table
        spec = table_of(pipeline, windows_name, warehouse, table)
        if spec is None:
            raise ValueError(
                f"table: windows {pipeline.name}/{windows_name} must have a trigger for "
                "'firings', and have none; use final or current"
            )
        self._spec = spec
        self._pinned = self._opened(version)

    @classmethod
    def open(
        cls,
        pipeline: str,
        windows_name: str | None = None,
        table: Which = "final",
        *,
        project: str | Path = ".",
        version: int | None = None,
    ) -> Self:
        """Opens the windows of a pipeline by its name.

        Args:
            pipeline: The pipeline's name.
            windows_name: The window definition; None for a pipeline's only one.
            table: Which windows: `final`, `current` or `firings`.
            project: The folder with settings.yaml.
            version: The table's version; None for the newest.

        Raises:
            NoTableError: The table does not exist.
            SettingsError: settings.yaml is not as it must be.
            TableDamagedError: A file of the table is damaged.
            UnreadableTableError: The table is not for readers other than Spark, or has no such
                version.
            ValueError: There is no such pipeline, or it has no such windows.
        """
        found = declared_windows(pipeline, windows_name, project)
        return cls(*found, table, version=version)

    @classmethod
    def on(
        cls,
        spark: object,
        pipeline: str,
        windows_name: str | None = None,
        table: Which = "final",
        *,
        project: str | Path = ".",
        version: int | None = None,
    ) -> Self:
        """Opens the windows of a pipeline with Spark, for tables that only Spark reaches.

        The store answers as that of `open`, with the same rows; `explain` reads local tables only.

        Args:
            spark: The session.
            pipeline: The pipeline's name.
            windows_name: The window definition; None for a pipeline's only one.
            table: Which windows: `final`, `current` or `firings`.
            project: The folder with settings.yaml.
            version: The table's version; None for the newest.

        Raises:
            NoTableError: The table does not exist.
            SettingsError: settings.yaml is not as it must be.
            UnreadableTableError: The table has no such version.
            ValueError: There is no such pipeline, or it has no such windows.
        """
        # Imported by its name: without Spark, stores do not need the module, nor have pyspark.
        tables = import_module("windows_pipeline.query.spark_tables").SparkTables(spark)
        found = declared_windows(pipeline, windows_name, project)
        return cls(*found, table, version=version, open_table=tables)

    @property
    def name(self) -> str:
        """The table's name: `flights/hourly/final_windows`."""
        return self._spec.name

    @property
    def version(self) -> int:
        """The version of the table that is read."""
        return self._pinned.table.version

    @property
    def through(self) -> date | None:
        """The last arrival day that has rows in this version; None without rows."""
        return max(self._pinned.table.days, default=None)

    @property
    def key(self) -> KeyColumn:
        """The windows' key."""
        return self._pinned.table.key

    def parsed_key(self, text: str | None, argument: str) -> object:
        """The key that a text of a command line stands for; see `KeyColumn.parsed`.

        Raises:
            ValueError: The text does not stand for a key.
        """
        has_key = bool(self._windows.keyed(self._pipeline.source).key_columns)
        return self.key.parsed(text if has_key or text else None, argument)

    @property
    def has_sessions(self) -> bool:
        """Whether the windows are sessions."""
        return isinstance(self._windows.spec, SessionWindows)

    def refresh(self) -> None:
        """Goes on to the newest version; answers that were returned before stay as they are."""
        self._pinned = self._opened(None)

    def get(self, key: object, start: datetime) -> StoredWindow | None:
        """The window of a key that starts at an instant; None if there is none.

        Raises:
            ValueError: The windows have no single window a key and start, or an argument is wrong.
        """
        if self._which == "firings":
            self._refuse("get", "a window has several firings", "history(key, start)")
        if self.has_sessions:
            self._refuse("get", "a session is not known by its start", "find_sessions or holding")
        if isinstance(self._windows.spec, GracedRows):
            self._refuse("get", "several rows may have windows of one start", "fetch or holding")
        at = self._instant(start, "start")
        return next(iter(self._by_start(self._one(key), Span(at, at))), None)

    def fetch(
        self,
        key: object,
        start_from: datetime | None = None,
        start_to: datetime | None = None,
        *,
        newest_first: bool = False,
    ) -> FoundWindows:
        """The windows of a key that start between two instants, the oldest first.

        Raises:
            ValueError: The windows are sessions, or an argument is wrong.
        """
        self._require_no_sessions("fetch")
        starts = self._span(("start_from", start_from), ("start_to", start_to))
        return self._by_start(self._one(key), starts, backward=newest_first)

    def backward_fetch(
        self, key: object, start_from: datetime | None = None, start_to: datetime | None = None
    ) -> FoundWindows:
        """The windows of a key that start between two instants, the newest first; see `fetch`."""
        return self.fetch(key, start_from, start_to, newest_first=True)

    def fetch_keys(
        self,
        key_from: object = None,
        key_to: object = None,
        start_from: datetime | None = None,
        start_to: datetime | None = None,
        *,
        newest_first: bool = False,
    ) -> FoundWindows:
        """The windows of the keys from one to another, by key, then start.

        Raises:
            ValueError: The windows are sessions, or an argument is wrong.
        """
        self._require_no_sessions("fetch_keys")
        starts = self._span(("start_from", start_from), ("start_to", start_to))
        return self._by_start(self._range(key_from, key_to), starts, backward=newest_first)

    def backward_fetch_keys(
        self,
        key_from: object = None,
        key_to: object = None,
        start_from: datetime | None = None,
        start_to: datetime | None = None,
    ) -> FoundWindows:
        """The same as of `fetch_keys`, the last key and the newest first."""
        return self.fetch_keys(key_from, key_to, start_from, start_to, newest_first=True)

    def holding(self, key: object, instant: datetime) -> FoundWindows:
        """The windows of a key whose interval has an instant, the oldest first.

        The end belongs to a window, unless it is a hopping or tumbling one (rules B2, C1, D1).

        Raises:
            ValueError: An argument is wrong.
        """
        times = holding(self._windows, self._instant(instant, "instant"))
        return self._pinned.found(Wanted(self._one(key), times))

    def session(self, key: object, start: datetime, end: datetime) -> StoredWindow | None:
        """The session of a key with these bounds, its first and last record; None if none has.

        Raises:
            ValueError: The windows are no sessions, or an argument is wrong.
        """
        found = self.find_sessions(key, end, start)
        bounds = (microseconds(start), microseconds(end))
        return next((each for each in found if _bounds_us(each) == bounds), None)

    def sessions(self, key: object) -> FoundWindows:
        """All sessions of a key, the oldest first.

        Raises:
            ValueError: The windows are no sessions, or the key is wrong.
        """
        return self.find_sessions(key)

    def find_sessions(
        self,
        key: object,
        earliest_end: datetime | None = None,
        latest_start: datetime | None = None,
        *,
        newest_first: bool = False,
    ) -> FoundWindows:
        """The sessions of a key that end at or after an instant, and start at or before another.

        Raises:
            ValueError: The windows are no sessions, or an argument is wrong.
        """
        self._require_sessions("find_sessions")
        times = self._overlapping(earliest_end, latest_start)
        return self._pinned.found(Wanted(self._one(key), times), backward=newest_first)

    def backward_find_sessions(
        self,
        key: object,
        earliest_end: datetime | None = None,
        latest_start: datetime | None = None,
    ) -> FoundWindows:
        """The same as of `find_sessions`, the newest first."""
        return self.find_sessions(key, earliest_end, latest_start, newest_first=True)

    def find_sessions_of_keys(
        self,
        key_from: object = None,
        key_to: object = None,
        earliest_end: datetime | None = None,
        latest_start: datetime | None = None,
        *,
        newest_first: bool = False,
    ) -> FoundWindows:
        """The sessions of the keys from one to another, by key, then start; see `find_sessions`.

        Raises:
            ValueError: The windows are no sessions, or an argument is wrong.
        """
        self._require_sessions("find_sessions_of_keys")
        times = self._overlapping(earliest_end, latest_start)
        keys = self._range(key_from, key_to)
        return self._pinned.found(Wanted(keys, times), backward=newest_first)

    def backward_find_sessions_of_keys(
        self,
        key_from: object = None,
        key_to: object = None,
        earliest_end: datetime | None = None,
        latest_start: datetime | None = None,
    ) -> FoundWindows:
        """The same as of `find_sessions_of_keys`, the last key and the newest first."""
        return self.find_sessions_of_keys(
            key_from, key_to, earliest_end, latest_start, newest_first=True
        )

    def history(self, key: object, start: datetime) -> WindowHistory:
        """The firings and corrections of the windows of a key that start at an instant.

        They are those of the newest versions of their tables.

        Raises:
            ValueError: An argument is wrong.
        """
        at = self._instant(start, "start")
        wanted = Wanted(self._one(key), {_START: Span(at, at)})
        fired = firing_tables(self._pipeline, self._name, self._warehouse)
        firings: tuple[StoredWindow, ...] = ()
        if fired is not None and self._which != "firings":
            store = type(self)(
                self._pipeline,
                self._name,
                self._warehouse,
                "firings",
                open_table=self._open_table,
            )
            firings = tuple(store._pinned.found(wanted))  # noqa: SLF001  another store of the class
        elif fired is not None:
            firings = tuple(self._pinned.found(wanted))
        tables = window_tables(self._pipeline, self._name, self._warehouse)
        return WindowHistory(firings, corrections_in(tables.corrections, wanted, self._open_table))

    def explain(
        self,
        key: object,
        event_time: datetime,
        event_time_to: datetime | None = None,
        *,
        limit: int = MOST_EXPLAINED,
    ) -> Explanation:
        """What became of the records of a key at an event time: the windows, or why none.

        The tables' newest versions answer.

        Args:
            key: The windows' key.
            event_time: The event time, or the first of several.
            event_time_to: The last event time; None for that instant alone.
            limit: The greatest number of records.

        Raises:
            ValueError: An argument is wrong.
        """
        last = event_time if event_time_to is None else event_time_to
        for name, instant in (("event_time", event_time), ("event_time_to", last)):
            self._instant(instant, name)
        explainer = Explainer(self._pipeline, self._name, self._warehouse)
        return explainer.at(key, event_time, last, limit)

    def explain_arrival(
        self,
        source_partition: str,
        offset: int,
        arrival_unit: date | None = None,
        *,
        limit: int = MOST_EXPLAINED,
    ) -> Explanation:
        """What became of the records of an offset of a source partition; see `explain`.

        Args:
            source_partition: The source partition; '0' where the source declares none.
            offset: The offset, which counts from 0 in each arrival day and source partition.
            arrival_unit: The arrival day; None for each day that has the offset.
            limit: The greatest number of records.
        """
        explainer = Explainer(self._pipeline, self._name, self._warehouse)
        return explainer.arrived(source_partition, offset, arrival_unit, limit)

    def _opened(self, version: int | None) -> PinnedWindows:
        return PinnedWindows(
            self._pipeline,
            self._windows,
            self._warehouse,
            self._spec,
            self._which,
            version=version,
            most_rows=self._most_rows,
            open_table=self._open_table,
        )

    def _one(self, key: object) -> KeyRange:
        return self.key.one(key, "key")

    def _range(self, key_from: object, key_to: object) -> KeyRange:
        first, last = (
            None if key is None else self.key.value(key, argument)
            for key, argument in ((key_from, "key_from"), (key_to, "key_to"))
        )
        return self.key.between(first, last)

    def _require_no_sessions(self, method: str) -> None:
        if self.has_sessions:
            self._refuse(method, "these windows are sessions", "sessions, find_sessions or holding")

    def _require_sessions(self, method: str) -> None:
        if not self.has_sessions:
            self._refuse(method, "these windows are no sessions", "fetch or holding")

    def _overlapping(
        self, earliest_end: datetime | None, latest_start: datetime | None
    ) -> dict[str, Span]:
        end, start = self._span(("earliest_end", earliest_end), ("latest_start", latest_start))
        return {_START: Span(None, start), _END: Span(end, None)}

    def _by_start(self, keys: KeyRange, starts: Span, *, backward: bool = False) -> FoundWindows:
        times = {_START: starts}
        length = length_us(self._windows)
        if length is None:  # no window ends before it starts
            times[_END] = Span(starts.first_us, None)
        else:  # files have statistics of ends
            first, last = (None if us is None else us + length for us in starts)
            times[_END] = Span(first, last)
        return self._pinned.found(Wanted(keys, times), backward=backward)

    def _refuse(self, method: str, reason: str, right: str) -> NoReturn:
        raise ValueError(f"{method} does not fit {self._spec.name}: {reason}; use {right}")

    def _span(self, *bounds: tuple[str, datetime | None]) -> Span:
        """Two instants by the names of their arguments; None is no bound."""
        return Span(*(None if at is None else self._instant(at, name) for name, at in bounds))

    @staticmethod
    def _instant(instant: datetime, argument: str) -> int:
        if not isinstance(instant, datetime):
            raise ValueError(f"{argument}: must be a datetime with a zone, not {instant!r}")
        if instant.utcoffset() is None:
            raise ValueError(
                f"{argument}: must be an instant, so a datetime with a zone, and {instant} has "
                "none; write datetime(..., tzinfo=UTC)"
            )
        return microseconds(instant)


def _bounds_us(window: StoredWindow) -> tuple[int, int]:
    return microseconds(window.start), microseconds(window.end)
