"""The oracle's alerts and episodes against answers worked out by hand."""

from __future__ import annotations

import math

from tests.support.oracle.alerts import alerts, episodes
from tests.support.oracle.windows import WindowRow


def final_row(key: str, end: int, severity: float | None) -> WindowRow:
    return WindowRow(0, key, end - 10, end, end, end, 1, {"worst": severity}, True)


def test_overlapping_breaking_windows_are_one_episode() -> None:
    """Rule E5, inclusive bounds: a window that starts on the last end still overlaps."""
    rows = [
        final_row("a", 10, 1.0),
        final_row("a", 20, 5.0),  # starts on 10
        final_row("a", 25, -1.0),  # does not break
        final_row("a", 30, 5.0),  # starts on 20
        final_row("a", 41, None),  # starts on 31
        final_row("b", 42, 2.0),
    ]
    found = alerts(
        rows[::-1], lambda row: row.values["worst"] != -1.0, lambda row: row.values["worst"]
    )
    of_a = [(a.end, a.episode) for a in found if a.key == "a"]
    assert of_a == [(10, 0), (20, 0), (30, 0), (41, 31)]
    storms = episodes(found)
    assert {e.episode: e.alerts for e in storms} == {0: 3, 31: 1, 32: 1}
    first = storms[0]
    assert (first.first.end, first.last.end, first.worst.end) == (10, 30, 20)


def test_worst_window_takes_null_as_least_and_nan_as_most() -> None:
    """Rules E5 and G1: Spark's order."""
    rows = [final_row("a", end, s) for end, s in enumerate([None, math.inf, math.nan, 1.0])]
    (storm,) = episodes(alerts(rows, lambda _: True, lambda row: row.values["worst"]))
    assert storm.worst.end == 2
