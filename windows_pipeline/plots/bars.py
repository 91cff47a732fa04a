"""Draws distributions as bars: lateness of records, records per window."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from windows_pipeline.plots.axes import Scale, edges_around, number_top
from windows_pipeline.plots.svg import WIDTH, drawing, straight, text
from windows_pipeline.text.markup import Markup, tag
from windows_pipeline.text.values import value_text

_LABEL, _GAP = 44, 1.5
_HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 190, 54, 14, 34, 158
_SECOND, _MINUTE, _HOUR, _DAY = 1_000, 60_000, 3_600_000, 86_400_000
LATENESS_MS = (
    *(0, 1, _SECOND, 10 * _SECOND, _MINUTE, 5 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE),
    *(_HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR),
    *(_DAY, 2 * _DAY, 7 * _DAY, 30 * _DAY, 365 * _DAY),
    2**53,
)
"""The bounds of bars of lateness, in ms; a bar includes its first bound, not its last."""
COUNTS = (0, *(digit * 10**power for power in range(15) for digit in (1, 2, 5)), 2**53)
"""The bounds of bars of records a window."""
_UNITS = ((_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"), (_SECOND, "s"), (1, "ms"))


@dataclass(frozen=True)
class Bars:
    """How many values lie between bounds.

    Attributes:
        bounds: The bounds, in order; a bar has the values from one up to the next.
        counts: The number of values of each bar.
    """

    bounds: Sequence[int]
    counts: Sequence[int]

    def around(self, *values: int) -> Bars:
        """The bars from the first to the last that has values, or one of these values."""
        filled = [bound for bound, count in zip(self.bounds, self.counts, strict=False) if count]
        bounds = edges_around([*filled, *values], self.bounds)
        start = self.bounds.index(bounds[0])
        return Bars(bounds, self.counts[start : start + len(bounds) - 1])


def lateness(found: Bars, graces_ms: Sequence[tuple[str, int]]) -> Markup:
    """Draws how far records were behind stream time as they arrived, with graces drawn in.

    Args:
        found: The number of records by lateness, in milliseconds.
        graces_ms: Graces, each with the name of its window definitions.
    """
    shown = found.around(max((grace for _, grace in graces_ms), default=0))
    labels = list(map(_short_duration, shown.bounds))
    slot = (WIDTH - _LEFT - _RIGHT) / len(shown.counts)
    marks: list[Markup] = []
    for number, (name, grace) in enumerate(graces_ms):
        at = _LEFT + slot * _position(shown.bounds, grace)
        marks.append(straight(at, _TOP - 20, at, _BOTTOM, "limit"))
        anchor = "end" if at > WIDTH / 2 else "start"
        aside = -4 if anchor == "end" else 4
        said = f"grace {_short_duration(grace)}{f' ({name})' if name else ''}"
        marks.append(text(at + aside, _TOP - 12 + 14 * number, said, "limit-text", anchor))
    return _bars(shown, labels, "how late records came, from", marks)


def records_a_window(found: Bars) -> Markup:
    """Draws how many windows have how many records."""
    shown = found.around()
    labels = list(map(value_text, shown.bounds))
    return _bars(shown, labels, "windows by their number of records, from")


def bars_of(values: np.ndarray[Any, Any], bounds: Sequence[int]) -> Bars:
    """How many values lie between bounds; those outside count in the first and last bar."""
    last = len(bounds) - 2
    bar = np.clip(np.searchsorted(bounds, values, "right") - 1, 0, last)
    return Bars(bounds, np.bincount(bar, minlength=last + 1).tolist())


def _bars(shown: Bars, labels: Sequence[str], label: str, marks: Sequence[Markup] = ()) -> Markup:
    largest = number_top(max(shown.counts, default=0))
    y = Scale(0, largest, _BOTTOM, _TOP)
    slot = (WIDTH - _LEFT - _RIGHT) / len(shown.counts)
    parts: list[Markup] = [
        straight(_LEFT, y(largest), WIDTH - _RIGHT, y(largest)),
        straight(_LEFT, _BOTTOM, WIDTH - _RIGHT, _BOTTOM),
        text(_LEFT - 5, y(largest) + 4, value_text(largest), "soft", "end"),
        text(_LEFT - 5, _BOTTOM, "0", "soft", "end"),
    ]
    every = 1 if slot >= _LABEL else 2
    for number, (count, name) in enumerate(zip(shown.counts, labels, strict=False)):
        left = _LEFT + slot * number
        if count:
            # The bar of a single value among millions must still be visible.
            top = min(y(count), _BOTTOM - 1)
            parts.append(
                tag(
                    "rect", tag("title", f"{name}: {count:,}"), class_="bar",
                    x=left + _GAP / 2, y=top, width=slot - _GAP, height=_BOTTOM - top,
                )
            )  # fmt: skip
        if number % every == 0:
            parts.append(text(left, _BOTTOM + 14, name, "soft"))
    parts.append(text(WIDTH - _RIGHT, _BOTTOM + 14, labels[-1], "soft", "end"))
    parts.append(text(_LEFT, _BOTTOM + 29, label, "soft"))
    return drawing(_HEIGHT, f"{label}: {sum(shown.counts):,}", *parts, *marks)


def _position(bounds: Sequence[int], value: int) -> float:
    """Where a value lies among the bars, in bars from the left."""
    last = len(bounds) - 2
    number = min(max(bisect_right(bounds, value) - 1, 0), last)
    low, high = bounds[number], bounds[number + 1]
    return number + min((value - low) / (high - low), 1)


def _short_duration(ms: int) -> str:
    """A duration by its two largest units: `6 h`, `1 h 15 min`; `0` for none."""
    parts = []
    rest = ms
    for unit, name in _UNITS:
        number, rest = divmod(rest, unit)
        if number:
            parts.append(f"{number:,} {name}")
    return " ".join(parts[:2]) or "0"
