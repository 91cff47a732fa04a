"""Episodes on a line of time: a row for each key and rule, a bar for each episode."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windows_pipeline.plots.axes import Scale, time_ticks
from windows_pipeline.plots.svg import WIDTH, drawing, straight, text, tick_label
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.markup import Markup, tag
from windows_pipeline.text.values import cut

_ROW, _LEFT, _RIGHT, _TOP, _AXIS = 20, 190, 14, 6, 22
_LEAST = 2.0
_LABEL = 27


@dataclass(frozen=True)
class Lane:
    """The episodes of a key and rule.

    Attributes:
        title: What they are of.
        spans: The first and last instant of each, in milliseconds since 1970.
    """

    title: str
    spans: Sequence[tuple[int, int]]


def timeline(lanes: Sequence[Lane]) -> Markup:
    """Draws episodes; the drawing is as high as it has lanes."""
    ends = [end for lane in lanes for span in lane.spans for end in span]
    if not ends:
        return drawing(40, "no episodes", text(WIDTH / 2, 25, "no episodes", "soft", "middle"))
    first, last = min(ends), max(ends)
    bottom = _TOP + _ROW * len(lanes)
    x = Scale(first, last, _LEFT, WIDTH - _RIGHT)
    parts: list[Markup] = []
    for at, label in time_ticks(first, last, 5):
        parts.append(straight(x(at), _TOP, x(at), bottom))
        parts.append(tick_label(x(at), bottom + 15, label))
    for number, lane in enumerate(lanes):
        y = _TOP + _ROW * number + _ROW / 2
        parts.append(straight(_LEFT, y, WIDTH - _RIGHT, y))
        name = tag("tspan", tag("title", lane.title), cut(lane.title, _LABEL))
        parts.append(tag("text", name, x=_LEFT - 8, y=y + 4, text_anchor="end"))
        # Bars that touch on the drawing are one path, so that it stays small.
        bars = "".join(f"M{left:.1f} {y:.1f}H{right:.1f}" for left, right in _merged(lane, x))
        parts.append(tag("path", class_="span", d=bars))
    label = f"episodes, {time_text(first)} to {time_text(last)} UTC"
    return drawing(bottom + _AXIS, label, *parts)


def _merged(lane: Lane, x: Scale) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for start, end in sorted(lane.spans):
        left, right = x(start), max(x(end), x(start) + _LEAST)
        if found and left <= found[-1][1] + 0.5:
            found[-1] = (found[-1][0], max(found[-1][1], right))
        else:
            found.append((left, right))
    return found
