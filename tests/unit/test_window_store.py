"""`WindowStore` answers as a list in memory would, without Spark: bounds, order, versions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.oracle.definitions import SessionDefinition, holds
from tests.support.oracle.windows import Window, keyed_windows, windows_after
from tests.support.pipeline_texts import (
    FLIGHTS,
    changed,
    load_text,
    of_definition,
    of_kind,
)
from tests.support.strategies import (
    OF_KIND,
    ArrivalsOf,
    arrivals_of,
)
from tests.support.written_tables import Row, write_rows
from windows_pipeline.config import Pipeline
from windows_pipeline.query import WindowStore
from windows_pipeline.query.stored_window import FoundWindows, StoredWindow
from windows_pipeline.query.tables.keys import KeyRange
from windows_pipeline.query.tables.local import LocalTable, NoTableError, UnreadableTableError
from windows_pipeline.query.tables.wanted import Wanted
from windows_pipeline.storage.catalog import TableColumn, TableSpec, specs_of
from windows_pipeline.storage.files.damage import TableDamagedError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY = date(2013, 3, 8)
MS = timedelta(milliseconds=1)
SESSIONS = of_kind("kind: session\n    gap: 60 minutes")
TUMBLING = of_kind("kind: tumbling\n    size: 60 minutes")
FIRING = changed("    emit_empty: true", "    trigger:\n      early_every: 10 minutes\n    #")


class At(NamedTuple):
    """Which window a row is, and how it stands: times are minutes since 1970."""

    key: str
    start: int
    day: int = 0
    closed: bool = True
    length: int = 60
    batch: int | None = None
    records: int = 1


def instant(minutes: float) -> datetime:
    return EPOCH + timedelta(minutes=minutes)


def row_of(at: At) -> Row:
    return {
        "arrival_unit": DAY + timedelta(days=at.day),
        "key": at.key,
        "window_start": instant(at.start),
        "window_end": instant(at.start + at.length),
        "first_event_time": instant(at.start),
        "last_event_time": instant(at.start),
        "record_count": at.records,
        "avg_dep_delay": 1.5,
        "failed": [],
        "closed": at.closed,
        "batch": at.batch,
    }


def final_row(at: At) -> Row:
    return {name: value for name, value in row_of(at).items() if name not in ("closed", "batch")}


def found(windows: FoundWindows) -> list[tuple[Any, int]]:
    """Key and start of each window, in order."""
    return [(each.key, (each.start - EPOCH) // timedelta(minutes=1)) for each in windows]


class Project(NamedTuple):
    """A pipeline and its warehouse."""

    pipeline: Pipeline
    warehouse: str

    @property
    def final(self) -> TableSpec:
        return specs_of(self.pipeline, self.warehouse).of("hourly").final_windows

    @property
    def keyed(self) -> TableSpec:
        return specs_of(self.pipeline, self.warehouse).of("hourly").keyed_windows

    def store(self, table: Any = "final", **options: Any) -> WindowStore:
        return WindowStore(self.pipeline, "hourly", self.warehouse, table, **options)


def project(folder: Path, text: str = FLIGHTS) -> Project:
    return Project(load_text(folder, text), str(folder / "warehouse"))


@pytest.fixture
def flights(tmp_path: Path) -> Project:
    return project(tmp_path)


KEYS = ("", "A", "a", "ab", "b", "é", "\uff5e", "\U0001f600")
BOUNDS = st.none() | st.integers(-130, 130)


@st.composite
def stored(draw: st.DrawFn) -> list[list[At]]:
    """Windows, each once, in the files of some days; starts are negative as well."""
    windows = draw(
        st.lists(st.tuples(st.sampled_from(KEYS), st.integers(-120, 120)), unique=True, max_size=40)
    )
    days = draw(st.integers(1, 4))
    placed = [At(key, start, draw(st.integers(0, days - 1))) for key, start in windows]
    return [[at for at in placed if at.day == day] for day in range(days)]


@settings(max_examples=40, deadline=None)
@given(
    stored(), st.sampled_from(KEYS), st.sampled_from((None, *KEYS)), st.sampled_from((None, *KEYS)),
    BOUNDS, BOUNDS, st.sampled_from((2, 7, 1_000)),
)  # fmt: skip
def test_a_store_answers_as_a_list_in_memory(
    days: list[list[At]], key: str, first: str | None, last: str | None,
    start_from: int | None, start_to: int | None, most_rows: int,
) -> None:  # fmt: skip
    """Both bounds on the start are included; the order is that of key, then start."""
    with TemporaryDirectory() as folder:
        flights = project(Path(folder))
        write_rows(flights.final, [])
        for rows in filter(None, days):
            in_file = sorted(rows, key=lambda at: (at.start, at.key))
            write_rows(flights.final, list(map(final_row, in_file)), row_group_rows=3)
        store = flights.store(most_rows=most_rows)
        listed = sorted((at.key, at.start) for rows in days for at in rows)

        def within(bound: Callable[[str], bool]) -> list[tuple[str, int]]:
            return [
                (of, start)
                for of, start in listed
                if bound(of)
                and (start_from is None or start >= start_from)
                and (start_to is None or start <= start_to)
            ]

        bounds = [None if bound is None else instant(bound) for bound in (start_from, start_to)]
        of_key = within(lambda of: of == key)
        assert found(store.fetch(key, *bounds)) == of_key
        assert found(store.fetch(key, *bounds, newest_first=True)) == of_key[::-1]
        of_keys = within(lambda of: (first is None or of >= first) and (last is None or of <= last))
        assert found(store.fetch_keys(first, last, *bounds)) == of_keys
        assert found(store.fetch_keys(first, last, *bounds, newest_first=True)) == of_keys[::-1]
        at = 7 if start_from is None else start_from
        holding = [(of, start) for of, start in listed if of == key and start <= at <= start + 60]
        assert found(store.holding(key, instant(at))) == holding
        got = store.get(key, instant(at))
        assert (got is not None) == ((key, at) in listed)


@pytest.mark.parametrize("kind", OF_KIND)
@settings(max_examples=20, deadline=None)
@given(st.data(), st.sampled_from((None, 2)), st.integers(0, 30), st.sampled_from((2, 1_000)))
def test_current_windows_are_found_as_they_stand(
    kind: str, data: st.DataObject, arrival_units_a_day: int | None, moment: int, most_rows: int
) -> None:
    """Rule E4, with open windows and versions of many days or micro-batches, in any file."""
    case: ArrivalsOf[Any] = data.draw(
        arrivals_of(OF_KIND[kind], keys=("a", "b"), source_partitions=1)
    )
    definition = case.definition
    rows = keyed_windows(case.records, case.arrival_units, definition, {})
    times = [record.event_time for record in case.records] or [0]
    at_ms = min(times) + (max(times) - min(times)) * moment // 30
    with TemporaryDirectory() as folder:
        flights = project(Path(folder), of_definition(definition))
        write_rows(flights.keyed, [])
        for arrival_unit in sorted({row.arrival_unit for row in rows}):
            of_arrival_unit = [row for row in rows if row.arrival_unit == arrival_unit]
            write_rows(
                flights.keyed,
                [
                    {
                        "arrival_unit": DAY
                        + timedelta(days=arrival_unit // (arrival_units_a_day or 1)),
                        "key": row.key,
                        "window_start": EPOCH + row.start * MS,
                        "window_end": EPOCH + row.end * MS,
                        "record_count": row.record_count,
                        "closed": row.closed,
                        "batch": arrival_unit if arrival_units_a_day else None,
                    }
                    for row in of_arrival_unit
                ],
                row_group_rows=2,
            )
        store = flights.store("current", most_rows=most_rows)
        standing = windows_after(case.records, case.arrival_units - 1, definition)
        at = EPOCH + at_ms * MS
        for key in ("a", "b"):
            mine = sorted(
                (each for each in standing if each.key == key), key=lambda w: (w.start, w.end)
            )
            assert bounds(store.holding(key, at)) == spans(mine, lambda w: _holds(w, at_ms, case))
            if kind == "session":
                assert bounds(store.sessions(key)) == spans(mine, lambda _: True)
                late = store.find_sessions(key, at, None, newest_first=True)
                assert bounds(late) == spans(mine, lambda w: w.end >= at_ms)[::-1]
                assert bounds(store.find_sessions(key, at, newest_first=True)) == bounds(late)
                early = store.find_sessions(key, None, at)
                assert bounds(early) == spans(mine, lambda w: w.start <= at_ms)
            else:
                assert bounds(store.fetch(key, at)) == spans(mine, lambda w: w.start >= at_ms)
                back = store.fetch(key, None, at, newest_first=True)
                assert bounds(back) == spans(mine, lambda w: w.start <= at_ms)[::-1]


@settings(max_examples=20, deadline=None)
@given(
    stored(), st.sampled_from((None, *KEYS)), st.sampled_from((None, *KEYS)),
    BOUNDS, BOUNDS, st.sampled_from((2, 7, 1_000)),
)  # fmt: skip
def test_sessions_of_a_range_of_keys_are_those_of_a_list_in_memory(
    days: list[list[At]], first: str | None, last: str | None,
    earliest_end: int | None, latest_start: int | None, most_rows: int,
) -> None:  # fmt: skip
    """Kafka's `findSessions` of keys: both bounds of keys and times are included."""
    with TemporaryDirectory() as folder:
        flights = project(Path(folder), SESSIONS)
        write_rows(flights.final, [])
        for rows in filter(None, days):
            in_file = sorted(rows, key=lambda at: (at.start, at.key))
            write_rows(flights.final, list(map(final_row, in_file)), row_group_rows=3)
        store = flights.store(most_rows=most_rows)
        listed = sorted((at.key, at.start) for rows in days for at in rows)
        wanted = [
            (key, start)
            for key, start in listed
            if (first is None or key >= first)
            and (last is None or key <= last)
            and (earliest_end is None or start + 60 >= earliest_end)
            and (latest_start is None or start <= latest_start)
        ]
        times = [None if at is None else instant(at) for at in (earliest_end, latest_start)]
        assert found(store.find_sessions_of_keys(first, last, *times)) == wanted
        assert (
            found(store.find_sessions_of_keys(first, last, *times, newest_first=True))
            == wanted[::-1]
        )
        assert found(store.find_sessions_of_keys()) == listed
        for key, start in listed[:2]:
            one = store.session(key, instant(start), instant(start + 60))
            assert one is not None
            assert (one.key, one.start) == (key, instant(start))
            assert store.session(key, instant(start), instant(start + 61)) is None


def _holds(window: Window, at_ms: int, case: ArrivalsOf[Any]) -> bool:
    if isinstance(case.definition, SessionDefinition):
        return window.start <= at_ms <= window.end
    return holds(window, at_ms, case.definition)  # type: ignore[arg-type]


def bounds(windows: FoundWindows) -> list[tuple[int, int, int, bool]]:
    return [
        ((each.start - EPOCH) // MS, (each.end - EPOCH) // MS, each.record_count, each.closed)
        for each in windows
    ]


def spans(
    windows: Sequence[Window], wanted: Callable[[Window], bool]
) -> list[tuple[int, int, int, bool]]:
    return [
        (each.start, each.end, len(each.records), each.closed) for each in windows if wanted(each)
    ]


def test_a_window_has_its_values_and_the_watermark(flights: Project) -> None:
    """As in Kafka's timestamped stores, a value knows the stream time of its last change."""
    write_rows(flights.keyed, [row_of(At("JFK", 0, batch=3, closed=False, records=2))])
    log = specs_of(flights.pipeline, flights.warehouse).arrival_log
    part = {"arrival_unit": DAY, "source_partition": "0", "rows": 1, "arrival_unit_rejected": 0}
    write_rows(
        log,
        [
            {**part, "batch": 3, "watermark": instant(30)},
            {**part, "batch": 4, "watermark": instant(70)},
        ],
    )
    window = flights.store("current").get("JFK", instant(0))
    assert isinstance(window, StoredWindow)
    assert (window.key, window.start, window.end) == ("JFK", instant(0), instant(60))
    assert (window.record_count, window.closed, window.arrival_unit) == (2, False, DAY)
    assert (window.first_event_time, window.last_event_time) == (instant(0), instant(0))
    assert window.watermark == instant(30)
    assert dict(window.values) == {
        "avg_dep_delay": 1.5,
        "max_dep_delay": None,
        "min_dep_delay": None,
        "total_distance": None,
    }
    assert (window.failed, dict(window.other)) == ((), {})
    write_rows(flights.final, [final_row(At("JFK", 0))])
    final = flights.store().get("JFK", instant(0))
    assert final is not None
    assert (final.closed, final.watermark) == (True, instant(70))


def test_hopping_and_tumbling_windows_exclude_their_end(tmp_path: Path) -> None:
    """Rule C1; a part of a millisecond is cut off, as of event times."""
    flights = project(tmp_path, TUMBLING)
    write_rows(flights.final, [final_row(At("JFK", start)) for start in (-60, 0, 60)])
    store = flights.store()
    assert found(store.holding("JFK", instant(0))) == [("JFK", 0)]
    assert found(store.holding("JFK", instant(0) - MS)) == [("JFK", -60)]
    assert found(store.holding("JFK", instant(60) - timedelta(microseconds=1))) == [("JFK", 0)]
    assert found(store.holding("JFK", instant(60))) == [("JFK", 60)]


def test_sliding_windows_and_sessions_include_their_end(tmp_path: Path) -> None:
    """Rules B2 and D1."""
    for text in (FLIGHTS, SESSIONS):
        folder = tmp_path / str(len(text))
        folder.mkdir()
        flights = project(folder, text)
        write_rows(flights.final, [final_row(At("JFK", 0))])
        store = flights.store()
        assert found(store.holding("JFK", instant(60) + timedelta(microseconds=999))) == [
            ("JFK", 0)
        ]
        assert found(store.holding("JFK", instant(60) + MS)) == []


@pytest.mark.parametrize(
    ("text", "table", "call", "said"),
    [
        (SESSIONS, "final", lambda s: s.get("a", instant(0)), "not known by its start; use find_"),
        (SESSIONS, "final", lambda s: s.fetch("a"), "are sessions; use sessions, find_sessions"),
        (SESSIONS, "final", lambda s: s.fetch_keys(), "fetch_keys does not fit flights/hourly/fin"),
        (FLIGHTS, "final", lambda s: s.sessions("a"), "are no sessions; use fetch or holding"),
        (FLIGHTS, "final", lambda s: s.find_sessions_of_keys(), "are no sessions; use fetch or h"),
        (
            SESSIONS,
            "final",
            lambda s: s.fetch("a", newest_first=True),
            "are sessions; use sessions, find_",
        ),
        (FIRING, "firings", lambda s: s.get("a", instant(0)), "several firings; use history(key,"),
    ],
)
def test_a_method_of_another_kind_names_the_right_one(
    tmp_path: Path, text: str, table: str, call: Callable[[WindowStore], Any], said: str
) -> None:
    flights = project(tmp_path, text)
    spec = flights.final
    if table == "firings":
        fired = specs_of(flights.pipeline, flights.warehouse).of("hourly")
        assert fired is not None
        spec = fired.firings
    write_rows(spec, [])
    with pytest.raises(ValueError, match="does not fit") as refused:
        call(flights.store(table))
    assert said in str(refused.value)


def test_wrong_arguments_are_refused(flights: Project) -> None:
    write_rows(flights.final, [])
    store = flights.store()
    naive = datetime(2013, 3, 8, 21)
    with pytest.raises(
        ValueError, match=r"start_from: must be an instant.*2013-03-08 21:00:00 has"
    ):
        store.fetch("JFK", naive)
    with pytest.raises(ValueError, match="start: must be a datetime with a zone, not 5"):
        store.get("JFK", 5)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match=r"key: must be a key of type string \(the source's column origin\), not 5"
    ):
        store.fetch(5)
    with pytest.raises(ValueError, match="key_to: must be a key of type string"):
        store.fetch_keys("a", b"a")
    with pytest.raises(ValueError, match="windows_name: 'daily' is not in flights; use one of hou"):
        WindowStore(flights.pipeline, "daily", flights.warehouse)
    with pytest.raises(ValueError, match="table: must be final, current or firings, not 'open'"):
        flights.store("open")
    with pytest.raises(ValueError, match="must have a trigger for 'firings', but have none"):
        flights.store("firings")


def test_a_missing_table_and_version_are_refused(flights: Project) -> None:
    with pytest.raises(NoTableError, match="flights/hourly/final_windows: the table does not"):
        flights.store()
    write_rows(flights.final, [])
    with pytest.raises(UnreadableTableError, match="must have version 7 in its log"):
        flights.store(version=7)


def test_a_store_stays_at_its_version_until_it_is_refreshed(flights: Project) -> None:
    """Reads while a writer commits give the version that was opened."""
    write_rows(flights.final, [final_row(At("JFK", 0))])
    store = flights.store()
    assert (store.version, store.through) == (0, DAY)
    windows = store.fetch("JFK")
    in_between = iter(windows)
    write_rows(flights.final, [final_row(At("JFK", 60, day=1))])
    assert [each.start for each in in_between] == [instant(0)]
    assert found(store.fetch("JFK")) == [("JFK", 0)]
    store.refresh()
    assert (store.version, store.through) == (1, DAY + timedelta(days=1))
    assert found(store.fetch("JFK")) == [("JFK", 0), ("JFK", 60)]
    assert found(windows) == [("JFK", 0)], "an answer stays at the version that it is of"
    assert found(flights.store(version=0).fetch("JFK")) == [("JFK", 0)]


def test_a_corrected_window_is_found_as_it_was_corrected(flights: Project) -> None:
    """Rule E1: a store of the version before still answers as before."""
    write_rows(flights.final, [final_row(At("JFK", start)) for start in (0, 60, 120)])
    before = flights.store()
    DeltaTable(flights.final.location).delete("window_start = '1970-01-01T01:00:00Z'")
    DeltaTable(flights.final.location).update(
        {"record_count": "9"}, predicate="window_start = '1970-01-01T02:00:00Z'"
    )
    after = flights.store()
    assert [each.record_count for each in after.fetch("JFK")] == [1, 9]
    assert [each.record_count for each in before.fetch("JFK")] == [1, 1, 1]


def test_maintenance_changes_no_answer_and_a_version_without_files_says_so(
    flights: Project,
) -> None:
    for start in range(5):
        write_rows(flights.final, [final_row(At("JFK", start))])
    before = flights.store()
    table = DeltaTable(flights.final.location)
    table.optimize.compact()
    assert found(flights.store().fetch("JFK")) == found(before.fetch("JFK"))
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert len(found(flights.store().fetch("JFK"))) == 5
    with pytest.raises(UnreadableTableError, match=r"version 4 must be there.*Call refresh\(\)"):
        found(before.fetch("JFK"))
    before.refresh()
    assert len(found(before.fetch("JFK"))) == 5


def test_reads_while_a_writer_commits_are_each_of_one_version(flights: Project) -> None:
    """Each commit adds a window to every key, so an answer with other numbers would mix two."""
    keys = ("JFK", "LGA", "EWR")
    commits = 12

    def write(number: int) -> None:
        write_rows(flights.final, [final_row(At(key, number, number % 3)) for key in keys])

    write(0)

    def write_all() -> None:
        for number in range(1, commits):
            write(number)

    with ThreadPoolExecutor(1) as writer:
        written = writer.submit(write_all)
        seen: list[int] = []
        while not written.done() or not seen or seen[-1] < commits - 1:
            store = flights.store(most_rows=4)
            starts = {key: [start for _, start in found(store.fetch(key))] for key in keys}
            assert starts == {key: list(range(store.version + 1)) for key in keys}
            seen.append(store.version)
        written.result()
    assert seen == sorted(seen)


def test_files_of_other_times_and_keys_are_not_opened(flights: Project) -> None:
    """Such a file may be gone: nothing reads it. The newest windows need the newest file only."""
    for day in range(3):
        write_rows(flights.final, [final_row(At(key, day * 1_440, day)) for key in ("JFK", "LGA")])
    (middle,) = Path(flights.final.location).glob("arrival_unit=2013-03-09/*.parquet")
    middle.unlink()
    store = flights.store(most_rows=2)
    assert found(store.fetch("JFK", instant(2_000))) == [("JFK", 2_880)]
    assert found(store.fetch("ZZZ")) == []
    assert next(iter(store.fetch("JFK", newest_first=True))).start == instant(2_880)
    with pytest.raises(TableDamagedError, match="is gone"):
        found(store.fetch("JFK"))


def test_windows_are_read_as_they_are_asked_for(flights: Project) -> None:
    """The first windows come before the last files are read."""
    for day in range(4):
        write_rows(flights.final, [final_row(At("JFK", day * 1_440 + at, day)) for at in range(3)])
    store = flights.store(most_rows=3)
    windows = iter(store.fetch("JFK"))
    first = [next(windows).start for _ in range(3)]
    (last_file,) = Path(flights.final.location).glob("arrival_unit=2013-03-11/*.parquet")
    whole = last_file.read_bytes()
    last_file.write_bytes(b"damaged")
    assert [next(windows).start for _ in range(3)] == [instant(1_440 + at) for at in range(3)]
    assert first == [instant(at) for at in range(3)]
    last_file.write_bytes(whole)
    assert len(list(windows)) == 6


def test_rows_as_tables_of_other_libraries(flights: Project) -> None:
    write_rows(flights.final, [final_row(At("JFK", start)) for start in (60, 0)])
    windows = flights.store().fetch("JFK")
    arrow = windows.to_arrow()
    assert arrow.schema == windows.schema
    assert arrow.column_names == [*(c.name for c in flights.final.columns), "_watermark"]
    starts = [instant(0), instant(60)]
    assert arrow["window_start"].to_pylist() == starts
    assert list(windows.to_pandas()["window_start"]) == starts
    assert windows.to_polars()["window_start"].to_list() == starts
    nothing = flights.store().fetch("LGA")
    assert [nothing.to_arrow().num_rows, len(nothing.to_pandas()), len(nothing.to_polars())] == [
        0, 0, 0
    ]  # fmt: skip


def test_history_has_firings_and_corrections_of_a_window(tmp_path: Path) -> None:
    """Rules E1 and E2."""
    flights = project(tmp_path, FIRING)
    write_rows(flights.final, [final_row(At("JFK", 0))])
    fired = specs_of(flights.pipeline, flights.warehouse).of("hourly")
    assert fired is not None
    firing = {**final_row(At("JFK", 0)), "cause": "RECORD", "is_final": False, "reason": "EARLY"}
    other = {**firing, "window_start": instant(1), "window_end": instant(61), "firing_id": 0}
    write_rows(fired.firings, [{**firing, "firing_id": 1}, {**firing, "firing_id": 0}, other])
    corrections = specs_of(flights.pipeline, flights.warehouse).of("hourly").corrections
    result = {"record_count": 1, "avg_dep_delay": 1.5, "failed": []}
    correction = {
        **{name: final_row(At("JFK", 0))[name] for name in ("arrival_unit", "key")},
        "window_start": instant(0),
        "window_end": instant(60),
        "cause": "a file came late",
    }
    write_rows(
        corrections,
        [
            {**correction, "correction": 2, "change": "retracted", "old": result},
            {**correction, "correction": 1, "change": "added", "new": result},
        ],
    )
    history = flights.store().history("JFK", instant(0))
    assert [(each.other["firing_id"], each.closed) for each in history.firings] == [
        (0, False), (1, False)
    ]  # fmt: skip
    assert [(each.number, each.change, each.cause) for each in history.corrections] == [
        (1, "added", "a file came late"),
        (2, "retracted", "a file came late"),
    ]
    assert history.corrections[0].old is None
    assert history.corrections[0].new is not None
    assert history.corrections[0].new["record_count"] == 1
    assert flights.store().history("LGA", instant(0)).firings == ()
    starts = [each.start for each in flights.store("firings").fetch("JFK")]
    assert starts == [instant(0), instant(0), instant(1)]


def test_a_table_without_statistics_is_read_whole(flights: Project) -> None:
    """Tables that other programs wrote may have none; the answer is the same."""
    write_rows(flights.final, [final_row(At("JFK", start)) for start in (0, 60)])
    table = DeltaTable(flights.final.location)
    rows = table.to_pyarrow_table()
    bare = Path(flights.final.location).with_name("bare")
    write_deltalake(
        bare, rows, partition_by=["arrival_unit"],
        configuration={"delta.dataSkippingStatsColumns": "record_count"},
    )  # fmt: skip
    bare.rename(Path(flights.final.location).with_name("new"))
    Path(flights.final.location).rename(bare)
    Path(flights.final.location).with_name("new").rename(flights.final.location)
    assert found(flights.store().fetch("JFK", instant(60), instant(60))) == [("JFK", 60)]


def test_rows_of_composite_keys_are_found_by_their_parts(tmp_path: Path) -> None:
    """A file whose parts hold no such key may be gone: nothing reads it."""
    parts = (TableColumn("carrier", "string", ""), TableColumn("flight", "bigint", ""))
    columns = (
        TableColumn("arrival_unit", "date", ""),
        TableColumn("key", parts, ""),
        TableColumn("window_end", "timestamp", ""),
    )
    spec = TableSpec("p/w/t", "", str(tmp_path / "t"), columns, ("window_end",), {})
    for day, carrier in enumerate(("AA", "UA", "UA")):
        keys = [{"carrier": carrier, "flight": day * 10 + number} for number in range(5)]
        rows = [
            {"arrival_unit": DAY + timedelta(days=day), "key": key, "window_end": EPOCH}
            for key in keys
        ]
        write_rows(spec, rows, row_group_rows=2)
    (last,) = Path(spec.location).glob("arrival_unit=2013-03-10/*.parquet")
    last.unlink()
    table = LocalTable(spec)

    def flights_of(keys: KeyRange) -> list[int]:
        found = table.read(Wanted(keys))["key"].to_pylist()
        return sorted(key["flight"] for key in found)

    assert flights_of(table.key.one(("UA", 12), "key")) == [12]
    assert flights_of(table.key.one({"flight": 3, "carrier": "AA"}, "key")) == [3]
    assert flights_of(table.key.between(None, table.key.value(("AA", 2), "key"))) == [0, 1, 2]
    with pytest.raises(TableDamagedError, match="is gone"):
        flights_of(table.key.one(("UA", 21), "key"))


def test_a_store_is_opened_by_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "settings.yaml").write_text(
        "{warehouse: warehouse, pipelines: pipelines, landing: ., spark: {}}"
    )
    (tmp_path / "pipelines").mkdir()
    monkeypatch.delenv("WINDOWS_PIPELINE_SETTINGS", raising=False)
    pipeline = load_text(tmp_path / "pipelines", FLIGHTS)
    flights = Project(pipeline, str(tmp_path / "warehouse"))
    write_rows(flights.final, [final_row(At("JFK", 0))])
    assert found(WindowStore.open("flights", project=tmp_path).fetch("JFK")) == [("JFK", 0)]
    with pytest.raises(ValueError, match=r"pipeline: 'boats' must be declared in .*found: flights"):
        WindowStore.open("boats", project=tmp_path)
