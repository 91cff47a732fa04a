"""The checks of keyed windows, by kind of window, as SQL over windows and their recounts."""

from __future__ import annotations

from windows_pipeline.checks.run import Check, Within
from windows_pipeline.config import Windows
from windows_pipeline.windows import (
    ForwardSlidingWindows,
    GracedRows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
)

_LENGTH_MS = "_window_end_ms - _window_start_ms"

_NOT_EMPTY = Check(
    "no_empty_window",
    "A window holds at least one record (rules B3, B7, C1, D1)",
    "record_count IS NULL",
    within=Within("record_count", least=1),
)
_ONE_AN_END = Check(
    "one_window_per_key_and_bounds",
    "No two windows of a key have the same end (rules B7, C1, D2)",
    "same_end > 1",
)


def window_checks(windows: Windows) -> list[Check]:
    """Checks over windows, each with its recount."""
    match windows.spec:
        case SlidingWindows() as spec:
            return _sliding_checks(spec)
        case ForwardSlidingWindows() as spec:
            return _forward_checks(spec)
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
    # With emit_empty, an empty window must be closed and follow a record that left (rule B8).
    empty = "record_count = 0 AND NOT coalesce(closed AND departed_on_bound, FALSE)"
    return [
        Check(
            "bounds_inclusive",
            "A window is as long as the time difference, its records lie between its bounds, both "
            "bounds included, and a record lies at its end or 1 ms before its start, unless the "
            "window starts at first_window_start (rules B2, B3, B6)",
            "_first_event_time_ms < _window_start_ms OR _last_event_time_ms > _window_end_ms "
            "OR _first_event_time_ms > _last_event_time_ms OR NOT ("
            "coalesce(_last_event_time_ms = _window_end_ms, FALSE) "
            f"OR departed_on_bound OR {clamped})",
            within=Within(_LENGTH_MS, difference_ms, difference_ms),
        ),
        _holds_its_records(),
        Check(
            "one_window_per_record_set",
            "No two windows of a key hold the same records, unless a record near them is partly "
            "late, and no two windows of a key have the same end (rules B3, B4)",
            "same_records > 1 OR same_end > 1",
        ),
        Check(
            "no_empty_window" if not spec.emit_empty else "empty_windows_are_silences",
            "A window holds at least one record (rule B3)"
            if not spec.emit_empty
            else "An empty window is closed, and a record lies just before its start (rule B8)",
            f"record_count IS NULL OR {empty}" if spec.emit_empty else "record_count IS NULL",
            within=Within("record_count", least=0 if spec.emit_empty else 1),
        ),
    ]


def _forward_checks(spec: ForwardSlidingWindows) -> list[Check]:
    return [
        Check(
            "starts_at_a_record",
            "A window starts at its first record, is as long as its size, and its records lie "
            "between its bounds, both bounds included (rule B7)",
            "NOT coalesce(_first_event_time_ms = _window_start_ms, FALSE) "
            "OR _last_event_time_ms > _window_end_ms "
            "OR _first_event_time_ms > _last_event_time_ms",
            within=Within(_LENGTH_MS, spec.size_ms, spec.size_ms),
        ),
        _holds_its_records(),
        _ONE_AN_END,
        _NOT_EMPTY,
    ]


def _holds_its_records() -> Check:
    return Check(
        "holds_its_records",
        "record_count, first_event_time and last_event_time of a window are those of the raw "
        "records that count in it (rules B4, B5, C1)",
        # Near partly late records, recount_first_ms is only a lower bound.
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
            "A window starts at a multiple of the advance and not before first_window_start, ends "
            "one size later, and its records lie from its start to before its end (rules B6, C1)",
            f"NOT coalesce(pmod(_window_start_ms, {spec.advance_ms}L) = 0, FALSE) OR {below} "
            "OR _first_event_time_ms < _window_start_ms OR _last_event_time_ms >= _window_end_ms "
            "OR _first_event_time_ms > _last_event_time_ms OR _window_end_ms IS NULL",
            within=Within(_LENGTH_MS, spec.size_ms, spec.size_ms),
        ),
        _holds_its_records(),
        _ONE_AN_END,
        _NOT_EMPTY,
    ]


def _session_checks(spec: SessionWindows) -> list[Check]:
    return [
        Check(
            "bounds_are_records",
            "A session starts at its first record and ends at its last record (rule D1)",
            "NOT (_window_start_ms <=> _first_event_time_ms "
            "AND _window_end_ms <=> _last_event_time_ms)",
            within=Within(_LENGTH_MS, least=0),
        ),
        Check(
            "session_holds_its_records",
            "record_count, first_event_time and last_event_time of a session are those of the raw "
            "records that join it in their order of arrival (rules D1, D2)",
            "NOT (record_count <=> recount AND _first_event_time_ms <=> recount_first_ms "
            "AND _last_event_time_ms <=> recount_last_ms)",
        ),
        Check(
            "sessions_apart",
            "Two sessions of a key lie further apart than the gap, unless a record of the later "
            "one arrived after the grace and may have found the earlier one closed (rule D2)",
            f"beyond_grace = 0 AND _window_start_ms - previous_end_ms <= {spec.gap_ms}",
        ),
        _ONE_AN_END,
        _NOT_EMPTY,
    ]


def _row_checks() -> list[Check]:
    return [
        Check(
            "one_result_a_row",
            "Each record that is not late has one result, in the arrival unit that makes the "
            "result final, and there is no other result (rules F2, F5)",
            "found <> 1 OR NOT coalesce(expected, FALSE)",
        ),
        Check(
            "bounds_inclusive",
            "A row's window has the bounds of its definition, and the row and its records lie "
            "between them, both bounds included (rules F2, F5)",
            "NOT coalesce(_window_start_ms = recount_start_ms AND _window_end_ms = recount_end_ms "
            "AND row_time_ms BETWEEN _window_start_ms AND _window_end_ms, FALSE) "
            "OR _first_event_time_ms < _window_start_ms OR _last_event_time_ms > _window_end_ms "
            "OR _first_event_time_ms > _last_event_time_ms",
        ),
        Check(
            "row_holds_its_records",
            "record_count, first_event_time and last_event_time of a row's window are those of the "
            "raw records in it (rules F1, F2)",
            "NOT (record_count <=> recount AND _first_event_time_ms <=> recount_first_ms "
            "AND _last_event_time_ms <=> recount_last_ms)",
        ),
    ]
