"""The checks of keyed windows, by kind: what breaks them, as SQL over a window and its evidence."""

from __future__ import annotations

from windows_pipeline.checks.run import Check
from windows_pipeline.config import Windows
from windows_pipeline.windows import GracedRows, SessionWindows, SlidingWindows, TimeWindows

_NOT_EMPTY = Check(
    "no_empty_window", "No window is empty", "record_count IS NULL OR record_count <= 0"
)
_ONE_AN_END = Check(
    "one_window_per_key_and_bounds",
    "A key has one window with an end (rules C1, D2)",
    "same_end > 1",
)


def window_checks(windows: Windows) -> list[Check]:
    """Checks of keyed windows; a row a window, with its evidence."""
    match windows.spec:
        case SlidingWindows() as spec:
            return _sliding_checks(spec)
        case TimeWindows() as spec:
            return _time_checks(spec)
        case SessionWindows() as spec:
            return _session_checks(spec)
        case GracedRows():
            return _row_checks()


def _sliding_checks(spec: SlidingWindows) -> list[Check]:
    difference_ms = spec.time_difference_ms
    clamped = (
        "FALSE"
        if spec.first_window_start_ms is None
        else f"_window_start_ms = {spec.first_window_start_ms}"
    )
    # Asked for, an empty window must follow a record's leaving and be closed (rule B8).
    empty = "record_count = 0 AND NOT coalesce(closed AND departed_on_bound, FALSE)"
    return [
        Check(
            "bounds_inclusive",
            "A window spans the time difference, holds its records between its bounds, both "
            "included, and a record stands on its end or just before its start (rules B2, B3)",
            f"_window_end_ms - _window_start_ms <> {difference_ms} "
            "OR _first_event_time_ms < _window_start_ms OR _last_event_time_ms > _window_end_ms "
            "OR _first_event_time_ms > _last_event_time_ms OR NOT ("
            "coalesce(_last_event_time_ms = _window_end_ms, FALSE) "
            f"OR departed_on_bound OR {clamped})",
        ),
        _holds_its_records(),
        Check(
            "one_window_per_record_set",
            "No two windows of a key hold the same records, where none was partly late, "
            "and no two have the same end (rules B3, B4)",
            "same_records > 1 OR same_end > 1",
        ),
        Check(
            "no_empty_window" if not spec.emit_empty else "empty_windows_are_silences",
            "No window is empty"
            if not spec.emit_empty
            else "An empty window is closed and follows a record that left (rule B8)",
            "record_count IS NULL OR record_count < 0 OR "
            + (empty if spec.emit_empty else "record_count = 0"),
        ),
    ]


def _holds_its_records() -> Check:
    return Check(
        "holds_its_records",
        "A window's count, first and last event time are those of the raw records that "
        "count in it (rules B4, B5, C1)",
        # Where partly late ones are near, the evidence only bounds the first one.
        "record_count <> recount OR (recount > 0 "
        "AND (NOT _last_event_time_ms <=> recount_last_ms "
        "OR NOT coalesce(_first_event_time_ms >= recount_first_ms, FALSE) "
        "OR near_partly_late = 0 AND _first_event_time_ms <> recount_first_ms))",
    )


def _time_checks(spec: TimeWindows) -> list[Check]:
    first_ms = spec.first_window_start_ms
    below = "FALSE" if first_ms is None else f"_window_start_ms < {first_ms}"
    return [
        Check(
            "bounds_aligned",
            "A window starts at a multiple of the advance and ends a size later, and holds its "
            "records from its start to before its end (rule C1)",
            f"NOT coalesce(pmod(_window_start_ms, {spec.advance_ms}L) = 0 "
            f"AND _window_end_ms - _window_start_ms = {spec.size_ms}, FALSE) OR {below} "
            "OR _first_event_time_ms < _window_start_ms OR _last_event_time_ms >= _window_end_ms "
            "OR _first_event_time_ms > _last_event_time_ms",
        ),
        _holds_its_records(),
        _ONE_AN_END,
        _NOT_EMPTY,
    ]


def _session_checks(spec: SessionWindows) -> list[Check]:
    return [
        Check(
            "bounds_are_records",
            "A session starts with its first record and ends with its last (rule D1)",
            "NOT (_window_start_ms <=> _first_event_time_ms "
            "AND _window_end_ms <=> _last_event_time_ms) OR _window_start_ms > _window_end_ms",
        ),
        Check(
            "session_holds_its_records",
            "A session's count, first and last event time are those of the raw records that "
            "made it as they came (rules D1, D2)",
            "NOT (record_count <=> recount AND _first_event_time_ms <=> recount_first_ms "
            "AND _last_event_time_ms <=> recount_last_ms)",
        ),
        Check(
            "sessions_apart",
            "Two sessions of a key are further apart than the gap, but where a record came that "
            "found the first one closed (rule D2)",
            f"beyond_grace = 0 AND _window_start_ms - previous_end_ms <= {spec.gap_ms}",
        ),
        _ONE_AN_END,
        _NOT_EMPTY,
    ]


def _row_checks() -> list[Check]:
    return [
        Check(
            "one_result_a_row",
            "Each row that came in time and is settled has one result, in the unit that settled "
            "it, and nothing else has one (rules F2, F5)",
            "found <> 1 OR NOT coalesce(expected, FALSE)",
        ),
        Check(
            "bounds_inclusive",
            "A row's window has the bounds that its definition gives, and holds the row and its "
            "records between them, both included (rules F2, F5)",
            "NOT coalesce(_window_start_ms = recount_start_ms AND _window_end_ms = settled_ms "
            "AND row_time_ms BETWEEN _window_start_ms AND _window_end_ms, FALSE) "
            "OR _first_event_time_ms < _window_start_ms OR _last_event_time_ms > _window_end_ms "
            "OR _first_event_time_ms > _last_event_time_ms",
        ),
        Check(
            "row_holds_its_records",
            "A row's count, first and last event time are those of the raw records in its "
            "window (rules F1, F2)",
            "NOT (record_count <=> recount AND _first_event_time_ms <=> recount_first_ms "
            "AND _last_event_time_ms <=> recount_last_ms)",
        ),
    ]
