"""Windows by key and time, as Kafka's stores answer: read only, at one version of a table."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pyarrow as pa

from windows_pipeline.query.alert_ids import FoundAlert, alert_named
from windows_pipeline.query.history import WindowHistory, corrections_in
from windows_pipeline.query.pinned_store import PinnedStore
from windows_pipeline.query.pinned_windows import holding, length_us
from windows_pipeline.query.records.definition_rows import DefinitionRows
from windows_pipeline.query.records.explain import MOST_EXPLAINED, Explainer
from windows_pipeline.query.records.explained import Explanation
from windows_pipeline.query.records.window_records import records_of_window
from windows_pipeline.query.records.window_trace import WindowTrace, rows_beside
from windows_pipeline.query.stored_window import FoundWindows, StoredWindow
from windows_pipeline.query.tables.arrow_values import microseconds
from windows_pipeline.query.tables.keys import KeyRange
from windows_pipeline.query.tables.wanted import Span, Wanted
from windows_pipeline.storage.catalog import specs_of

_START, _END = "window_start", "window_end"
_MS = timedelta(milliseconds=1)


class WindowStore(PinnedStore):
    """The windows of a definition, read only, pinned to a version of their table.

    Bounds on times are bounds on a window's start, both included; None means no bound. Times are
    instants with a zone. Windows come in the order of key, start and end, or in the reverse.

    | table | rows |
    | --- | --- |
    | `final` | closed windows, as the newest correction left them |
    | `current` | every window as it stands now, open ones included |
    | `firings` | every firing, each a row of its window |
    """

    def get(self, key: object, start: datetime) -> StoredWindow | None:
        """The window of a key that starts at an instant; None if there is none.

        Raises:
            ValueError: A key and a start do not identify one window, or an argument is wrong.
        """
        if self._which == "firings":
            self._refuse("get", "a window has several firings", "history(key, start)")
        if not self.keeps_bounds:
            self._refuse("get", "a session is not known by its start", "find_sessions or holding")
        if self._windows.row_key:
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

    def holding(self, key: object, instant: datetime) -> FoundWindows:
        """The windows of a key whose interval contains an instant, the oldest first.

        The end belongs to the interval, except for hopping and tumbling windows (rules B2, C1, D1).

        Raises:
            ValueError: An argument is wrong.
        """
        times = holding(self._windows, self._instant(instant, "instant"))
        return self._pinned.found(Wanted(self._one(key), times))

    def session(self, key: object, start: datetime, end: datetime) -> StoredWindow | None:
        """The session of a key with these times of first and last record; None if there is none.

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

    def history(self, key: object, start: datetime) -> WindowHistory:
        """The firings and corrections of the windows of a key that start at an instant.

        Both come from the newest versions of their tables.

        Raises:
            ValueError: An argument is wrong.
        """
        at = self._instant(start, "start")
        wanted = Wanted(self._one(key), {_START: Span(at, at)})
        tables = specs_of(self._pipeline, self._warehouse).of(self._name)
        firings: tuple[StoredWindow, ...] = ()
        if tables.firings.is_written and self._which != "firings":
            store = type(self)(self._pipeline, self._name, self._warehouse, "firings")
            firings = tuple(store._pinned.found(wanted))  # noqa: SLF001  another store of the class
        elif tables.firings.is_written:
            firings = tuple(self._pinned.found(wanted))
        corrections = corrections_in(tables.corrections, wanted, self._windows.row_key)
        return WindowHistory(firings, corrections)

    def bounded(self, key: object, first: datetime, last: datetime) -> tuple[StoredWindow, ...]:
        """The windows of a key that end, or start, between two instants, in order.

        Args:
            key: The windows' key.
            first: The first instant.
            last: The last instant, included; the same as the first for that instant alone.

        Raises:
            ValueError: An argument is wrong.
        """
        bounds = self._span(("first", first), ("last", last))
        keys = self._one(key)
        if not self.keeps_bounds:  # as they stand now, a session may have grown beyond these bounds
            sides = [self.find_sessions(key, first, last)]
        else:
            ends = self._pinned.found(Wanted(keys, {_END: bounds}))
            sides = [ends, self._by_start(keys, bounds)]
        found = {
            (each.start, each.end, *(each.other[name] for name in self._windows.row_key)): each
            for side in sides
            for each in side
            if first <= each.end <= last or first <= each.start <= last
        }
        return tuple(found[at] for at in sorted(found))

    def alerted(self, alert: str) -> StoredWindow:
        """The window of an alert of this definition, by the alert's id.

        Args:
            alert: The id, as `windows-pipeline alerts` shows it, or its first digits, at least 4.

        Raises:
            NoTableError: No alert was raised yet.
            TableDamagedError: A file of a table is damaged.
            UnreadableTableError: Only Spark can read the table alerts.
            ValueError: No alert has the id, several have, or the window is not there any more.
        """
        found = alert_named(alert, "alert", self._pipeline, self._warehouse, [self._name])
        return self.window_of(found)

    def window_of(self, alert: FoundAlert) -> StoredWindow:
        """The window of an alert.

        Raises:
            ValueError: The window is not there any more.
        """
        start, end = microseconds(alert.start), microseconds(alert.end)
        times = {_START: Span(start, start), _END: Span(end, end)}
        for each in self._pinned.found(Wanted(self._one(alert.key), times)):
            if {name: each.other[name] for name in alert.row} == alert.row:
                return each
        by = "" if alert.retracted_by is None else f"; correction {alert.retracted_by} retracted it"
        raise ValueError(
            f"{self.name}: the window of alert {alert.id} must be there, but is not{by}. To "
            f"see what was corrected, read the table corrections of {self._name}"
        )

    def trace(self, window: StoredWindow) -> WindowTrace:
        """The records that count in a final window, why it is final, and what became of it.

        Args:
            window: A window of this store, as another method returned it.

        Raises:
            NoTableError: A table does not exist.
            TableDamagedError: A file of a table is damaged.
            UnreadableTableError: Only Spark can read a table, or the definition has a filter and
                the store no session.
            ValueError: The store is not of the table `final`.
        """
        if self._which != "final":
            self._refuse("trace", "only a closed window has records that stay", "the table final")
        keys = self._one(window.key)
        rows = DefinitionRows(self._pipeline, self._name, self._warehouse, self._row_filter)
        records, closed_at_ms = records_of_window(rows, window, keys)
        history = self.history(window.key, window.start)
        row_key = self._windows.row_key
        row = {name: window.other[name] for name in row_key}
        before, after = self._beside(keys, window)
        return WindowTrace(
            window,
            self._row(keys, window),
            records,
            self._around(rows, keys, window, records),
            closed_at_ms,
            before,
            after,
            tuple(
                each
                for each in history.firings
                if (each.end, {name: each.other[name] for name in row_key}) == (window.end, row)
            ),
            tuple(
                each for each in history.corrections if (each.end, each.row) == (window.end, row)
            ),
        )

    def explain(
        self,
        key: object,
        event_time: datetime,
        event_time_to: datetime | None = None,
        *,
        limit: int = MOST_EXPLAINED,
    ) -> Explanation:
        """What became of a key's records at an event time: their windows, or why they have none.

        Reads the newest versions of the tables.

        Args:
            key: The windows' key.
            event_time: The event time, or the first of several.
            event_time_to: The last event time; None for that instant alone.
            limit: The greatest number of records.

        Raises:
            UnreadableTableError: Only Spark can read a table, or the definition has a filter and
                the store no session.
            ValueError: An argument is wrong.
        """
        last = event_time if event_time_to is None else event_time_to
        for name, instant in (("event_time", event_time), ("event_time_to", last)):
            self._instant(instant, name)
        return self._explainer().at(key, event_time, last, limit)

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
        return self._explainer().arrived(source_partition, offset, arrival_unit, limit)

    def _explainer(self) -> Explainer:
        return Explainer(self._pipeline, self._name, self._warehouse, self._row_filter)

    def _row(self, keys: KeyRange, window: StoredWindow) -> pa.Table:
        """The table's row of a window."""
        start, end = _bounds_us(window)
        times = {_START: Span(start, start), _END: Span(end, end)}
        found = self._pinned.found(Wanted(keys, times))
        names = self._windows.row_key
        own = [window.other[name] for name in names]
        for index, each in enumerate(found):
            if [each.other[name] for name in names] == own:
                return found.to_arrow().slice(index, 1)
        raise ValueError(
            f"window: must be of {self.name} at version {self.version}, and no window of key "
            f"{window.key!r} goes from {window.start} to {window.end}; ask this store for it"
        )

    def _beside(
        self, keys: KeyRange, window: StoredWindow
    ) -> tuple[StoredWindow | None, StoredWindow | None]:
        """The windows of a key before and after a window."""
        row_order = self._windows.spec.row_order
        if row_order:
            return rows_beside(self._pinned, keys, window, row_order)
        if not self.keeps_bounds:
            before = self.find_sessions(window.key, None, window.start - _MS, newest_first=True)
            after = self.find_sessions(window.key, window.end + _MS)
        else:
            before = self.fetch(window.key, None, window.start - _MS, newest_first=True)
            after = self.fetch(window.key, window.start + _MS)
        return next(iter(before), None), next(iter(after), None)

    def _around(
        self, rows: DefinitionRows, keys: KeyRange, window: StoredWindow, records: pa.Table
    ) -> pa.Table:
        """The records around a window without records: of the nearest windows that have some."""
        found = [records.slice(0, 0)]
        if window.record_count or self._windows.row_key:
            return found[0]
        before = self.fetch(window.key, None, window.start - _MS, newest_first=True)
        after = self.fetch(window.key, window.start + _MS)
        for windows, is_before in ((before, True), (after, False)):
            near = next((each for each in windows if each.record_count), None)
            if near is not None:
                of_window, _ = records_of_window(rows, near, keys)
                found.append(of_window.slice(of_window.num_rows - 1 if is_before else 0, 1))
        return pa.concat_tables(found)

    def _require_no_sessions(self, method: str) -> None:
        if not self.keeps_bounds:
            self._refuse(method, "these windows are sessions", "sessions, find_sessions or holding")

    def _require_sessions(self, method: str) -> None:
        if self.keeps_bounds:
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


def _bounds_us(window: StoredWindow) -> tuple[int, int]:
    return microseconds(window.start), microseconds(window.end)
