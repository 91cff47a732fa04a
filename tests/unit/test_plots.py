"""Drawings are small, well formed and show what they are given; texts are never markup."""

from __future__ import annotations

import base64
import re
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from tests.support.reported import HOSTILE, SHOWN
from windows_pipeline.plots.axes import edges_around, number_top, time_ticks
from windows_pipeline.plots.bars import (
    COUNTS,
    LATENESS_MS,
    Bars,
    bars_of,
    lateness,
    records_a_window,
)
from windows_pipeline.plots.episodes import Lane, timeline
from windows_pipeline.plots.svg import picture
from windows_pipeline.plots.windows import MOST_STRIPS, Point, Strip, thinned, windows_over_time
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.markup import Markup, plain_text, tag

HOUR_MS = 3_600_000
SMALL = 40_000


def elements(plot: str, name: str, class_: str | None = None) -> list[ET.Element]:
    root = ET.XML(plot)
    found = root.iter(f"{{http://www.w3.org/2000/svg}}{name}")
    return [each for each in found if class_ in (None, each.get("class"))]


def texts(plot: str) -> str:
    return "".join(ET.XML(plot).itertext())


def test_text_is_never_markup() -> None:
    made = tag("a", HOSTILE, tag("b", 1), href=HOSTILE)
    (shown,) = ET.XML(f"<p>{made}</p>")
    assert (shown.text, shown.get("href")) == (SHOWN, SHOWN)
    assert [child.tag for child in shown] == ["b"]
    assert plain_text(Markup("<b>")) == "<b>"


def test_a_lone_surrogate_can_be_written() -> None:
    assert plain_text("a\ud800b").encode() == rb"a\ud800b"


def test_strips_show_the_first_eight_keys_their_alerts_and_threshold() -> None:
    points = [Point(number * HOUR_MS, float(number), number > 8) for number in range(10)]
    strips = [Strip(f"{HOSTILE} {number}", points, threshold=8.5) for number in range(12)]
    plot = windows_over_time(strips)
    assert len(elements(plot, "path", "line")) == MOST_STRIPS
    assert len(elements(plot, "circle", "bad")) == MOST_STRIPS
    assert len(elements(plot, "line", "limit")) == MOST_STRIPS
    assert f"{SHOWN[:60]}" in texts(plot)
    assert len(plot) < SMALL


def test_of_many_windows_the_worst_are_drawn() -> None:
    """An alert is worse than any value; else the largest, or the smallest, value is."""
    points = [Point(number, float(number % 100), number == 77_000) for number in range(100_000)]
    for keeps_smallest, value in ((False, 99.0), (True, 0.0)):
        found = thinned(points, keeps_smallest=keeps_smallest)
        assert len(found) <= 180
        assert {each.value for each in found if not each.is_alert} == {value}
        assert [each.end_ms for each in found if each.is_alert] == [77_000]
    assert len(windows_over_time([Strip("k", points)])) < SMALL


@pytest.mark.parametrize(
    "values", [[], [0.0], [-5.0], [-5.0, 3.0], [1e308, -1e308], [1e-9], [7.0] * 3]
)
def test_any_values_are_drawn(values: list[float]) -> None:
    points = [Point(HOUR_MS, value, is_alert=False) for value in values]
    plot = windows_over_time([Strip("k", points)])
    assert elements(plot, "title")
    assert "nan" not in plot
    assert "inf" not in plot


def test_each_value_counts_in_the_bar_that_has_it() -> None:
    values = np.array([-1, 0, 1, 999, 1_000, 9_999, 2**62])
    found = dict(zip(LATENESS_MS, bars_of(values, LATENESS_MS).counts, strict=False))
    assert {bound: count for bound, count in found.items() if count} == {
        0: 2, 1: 2, 1_000: 2, LATENESS_MS[-2]: 1
    }  # fmt: skip


def test_the_grace_is_drawn_where_it_is_among_the_bars() -> None:
    found = bars_of(np.array([0] * 90 + [HOUR_MS // 2] * 10), LATENESS_MS)
    plot = lateness(found, [(HOSTILE, 6 * HOUR_MS)])
    (limit,) = elements(plot, "line", "limit")
    bars = elements(plot, "rect", "bar")
    right_of_bars = max(float(bar.get("x", 0)) + float(bar.get("width", 0)) for bar in bars)
    assert float(limit.get("x1", 0)) > right_of_bars
    assert f"grace 6 h ({SHOWN})" in texts(plot)


def test_distributions_without_values_are_drawn() -> None:
    none = np.empty(0, np.int64)
    assert elements(records_a_window(bars_of(none, COUNTS)), "rect", "bar") == []
    assert elements(lateness(bars_of(none, LATENESS_MS), []), "rect", "bar") == []


def test_bars_are_cut_to_those_with_values() -> None:
    found = Bars((0, 1, 2, 5, 10), (0, 0, 4, 0))
    assert found.around() == Bars([2, 5], (4,))
    assert found.around(7) == Bars([2, 5, 10], (4, 0))
    assert edges_around([], (0, 1, 2)) == [0, 1]
    assert edges_around([3, 7], (0, 1, 2, 5, 10)) == [2, 5, 10]


def test_a_timeline_has_a_row_for_each_lane_and_stays_small() -> None:
    spans = [(number * HOUR_MS, number * HOUR_MS + 1) for number in range(50_000)]
    plot = timeline([Lane(HOSTILE, spans), Lane("b", spans[:1])])
    assert len(elements(plot, "path", "span")) == 2
    assert SHOWN in texts(plot)
    assert len(plot) < SMALL
    assert "no episodes" in timeline([])


def test_a_picture_stands_alone() -> None:
    markdown = picture(timeline([Lane(HOSTILE, [(0, 1)])]), "episodes")
    found = re.fullmatch(r"!\[episodes\]\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", markdown)
    assert found is not None
    alone = base64.b64decode(found[1]).decode()
    assert [each.tag for each in elements(alone, "style")] == ["{http://www.w3.org/2000/svg}style"]
    assert SHOWN in texts(alone)


def test_axes_name_round_instants_and_numbers() -> None:
    day = 1_357_035_600_000  # 2013-01-01 10:20 UTC
    assert time_ticks(day, day + 3 * HOUR_MS) == [
        (1_357_038_000_000, "11:00"), (1_357_041_600_000, "12:00"), (1_357_045_200_000, "13:00")
    ]  # fmt: skip
    for span in (1, 1_000, HOUR_MS, 24 * HOUR_MS, 10**12, 2**53):
        assert 1 <= len(time_ticks(day, day + span)) <= 7
    year = [text for _, text in time_ticks(day, day + 365 * 24 * HOUR_MS)]
    assert year == ["2013-04-01", "2013-07-01", "2013-10-01", "2014-01-01"]
    assert [number_top(value) for value in (0, 1, 11, 99, 2e9)] == [1, 1, 15, 100, 2e9]
    assert time_text(2**60) == f"{2**60} ms"


def test_a_silence_is_flat_until_its_end_and_no_line_crosses_a_gap() -> None:
    """Of ten hours: 2 records until hour 2, none until hour 6, no windows from 7 to 9."""
    hours = [
        Point(0, 2.0, is_alert=False),
        Point(2 * HOUR_MS, 0.0, is_alert=True, is_silence=True),
        Point(6 * HOUR_MS, 4.0, is_alert=False, joins=False),
        Point(7 * HOUR_MS, 4.0, is_alert=False),
        Point(9 * HOUR_MS, 2.0, is_alert=False, joins=False),
        Point(10 * HOUR_MS, 2.0, is_alert=False),
    ]
    assert shape(windows_over_time([Strip("k", hours)]), 10) == [
        ("M", 0.0, 2.0), ("L", 2.0, 0.0), ("H", 6.0), ("V", 4.0), ("L", 7.0, 4.0),
        ("M", 9.0, 2.0), ("L", 10.0, 2.0),
    ]  # fmt: skip


def test_an_open_silence_is_drawn_until_the_close_time() -> None:
    points = [
        Point(0, 4.0, is_alert=False),
        Point(2 * HOUR_MS, 0.0, is_alert=True, is_silence=True),
    ]
    plot = windows_over_time([Strip("k", points, until_ms=8 * HOUR_MS)])
    assert shape(plot, 8) == [("M", 0.0, 4.0), ("L", 2.0, 0.0), ("H", 8.0), ("V", 0.0)]
    assert len(elements(plot, "circle", "bad")) == 1
    assert "1970-01-01 08:00" in texts(plot)
    ended = [*points, Point(4 * HOUR_MS, 4.0, is_alert=False)]
    until_last = windows_over_time([Strip("k", ended, until_ms=8 * HOUR_MS)])
    assert shape(until_last, 4)[-2:] == [("H", 4.0), ("V", 4.0)]


def test_a_silence_and_a_gap_stay_among_many_windows() -> None:
    """Where the worst of many windows are drawn, a long silence is, and a long gap, however mild.

    Windows are drawn of 50,000 ms, then nothing of 20,000; then a silence of 20,000.
    """
    points = [Point(number, 9.0, is_alert=False) for number in range(50_000)]
    points += [Point(70_000 + number, 9.0, is_alert=False, joins=number > 0) for number in range(9)]
    points.append(Point(70_009, 0.0, is_alert=False, is_silence=True))
    points += [Point(90_009 + number, 9.0, is_alert=False) for number in range(9_992)]
    plot = windows_over_time([Strip("k", points)])
    steps = shape(plot, 100_000, unit_ms=1, high=9.0)
    (gap,) = [number for number, step in enumerate(steps) if step[0] == "M" and number]
    assert steps[gap - 1][1] == pytest.approx(50_000, abs=600)
    assert steps[gap][1] == pytest.approx(70_000, abs=600)
    (flat,) = [number for number, step in enumerate(steps) if step[0] == "H"]
    assert steps[flat - 1][2] == pytest.approx(0, abs=0.1)
    assert steps[flat - 1][1] == pytest.approx(70_009, abs=600)
    assert steps[flat][1] == pytest.approx(90_009, abs=600)


def shape(plot: str, last: int, unit_ms: int = HOUR_MS, high: float = 4.0) -> list[tuple[Any, ...]]:
    """The steps of a plot's only line, from 0 to a last time, in units of time and values.

    The leftmost and rightmost step are at 0 and the last time, the values are from 0 to `high`.
    """
    (line,) = elements(plot, "path", "line")
    steps = re.findall(r"([MLHV])([-\d.]+)(?: ([-\d.]+))?", line.get("d", ""))
    across = [float(x) for name, x, _ in steps if name != "V"]
    down = [float(y) for name, x, z in steps if name != "H" for y in [x if name == "V" else z]]
    (left, right), (top, base) = (min(across), max(across)), (min(down), max(down))

    def time(x: str) -> float:
        return round((float(x) - left) / (right - left) * last, 1 if unit_ms > 1 else 0)

    def value(y: str) -> float:
        return round((base - float(y)) / (base - top) * high, 1)

    found: list[tuple[Any, ...]] = []
    for name, first, second in steps:
        if name in "ML":
            found.append((name, time(first), value(second)))
        else:
            found.append((name, time(first) if name == "H" else value(first)))
    return found
