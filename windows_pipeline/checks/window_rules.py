"""The checks of keyed windows, by kind of window: a recount, and SQL over windows and recounts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from pyspark.sql import DataFrame

from windows_pipeline.checks.recounts.rows import recount_rows
from windows_pipeline.checks.recounts.windows import recount_fixed, recount_sessions
from windows_pipeline.checks.run import Check, Within
from windows_pipeline.config import Windows
from windows_pipeline.kernels.windows.chunk import Closing
from windows_pipeline.tuning import TUNING, Tuning
from windows_pipeline.windows import (
    ForwardSlidingWindows,
    GracedRows,
    PipelineWindows,
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


def _row_checks(spec: GracedRows) -> list[Check]:
    del spec
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


class _OfKind(NamedTuple):
    """How windows of a kind are checked.

    Attributes:
        rules: The checks over windows, each with its recount.
        recount: See `recount_windows`.
    """

    rules: Callable[[Any], list[Check]]
    recount: Callable[[DataFrame, DataFrame, Any, Mapping[int, Closing], Tuning], DataFrame]


_KINDS: Mapping[type, _OfKind] = {
    SlidingWindows: _OfKind(_sliding_checks, recount_fixed),
    ForwardSlidingWindows: _OfKind(_forward_checks, recount_fixed),
    TimeWindows: _OfKind(_time_checks, recount_fixed),
    SessionWindows: _OfKind(_session_checks, recount_sessions),
    GracedRows: _OfKind(_row_checks, recount_rows),
}


def window_checks(windows: Windows) -> list[Check]:
    """Checks over windows, each with its recount."""
    return _KINDS[type(windows.spec)].rules(windows.spec)


def recount_windows(
    records: DataFrame,
    windows: DataFrame,
    spec: PipelineWindows,
    closings: Mapping[int, Closing],
    tuning: Tuning = TUNING,
) -> DataFrame:
    """Recounts each window, and finds the new records that no window holds.

    Args:
        records: The frame that `records.records_to_read` returns.
        windows: `_computed_day`, `key`, `_window_start_ms`, `_window_end_ms`,
            `_first_event_time_ms`, `_last_event_time_ms`, `record_count`, `closed`; other columns
            are dropped.
        spec: The windows' definition.
        closings: The close times before and after each computed day, by day number.
        tuning: How finely a key's time is cut into time shards.

    Returns:
        For row windows see `recount_rows`. For others three kinds of rows, in no order.
        Milliseconds and counts are bigint; columns that a kind of row lacks are null.

        One row for each window (`is_window`): its columns, and `recount`, `recount_first_ms`,
        `recount_last_ms` (the number of its records, their first and last event time; times are
        null without records) and `same_end` (how many windows of its computed day and key have the
        same end). Sliding, hopping and tumbling windows also have `departed_on_bound` (whether a
        record left just before the window), `near_partly_late` (how many possibly partly late
        records are near; if there are any, `recount_first_ms` is a lower bound only) and
        `same_records` (how many windows of the key hold the same records; null for empty windows
        and near a partly late record). Sessions also have `beyond_grace` (how many of their records
        arrived after the grace) and `previous_end_ms` (the end of the key's previous session; null
        for the first, and for the first in its shard, as no session of another shard is near).

        One row for each new record that no window holds: `_computed_day`, `key`, `_event_time_ms`,
        `_close_time_ms` and `last_instant_ms` (the last instant of the last window that may count
        the record).

        One row for each computed day, key and time shard with new records: `_computed_day`, `key`
        and `counted` (how many of the new records a window holds).
    """
    return _KINDS[type(spec)].recount(records, windows, spec, closings, tuning)
