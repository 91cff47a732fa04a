"""Windows over time: a strip for each key, with its alerts marked and the rule's threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from windows_pipeline.plots.axes import Scale, number_text, number_top, time_ticks
from windows_pipeline.plots.svg import WIDTH, drawing, short, straight, text, tick_label
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.markup import Markup, tag

MOST_KEYS = 8
"""The most strips of a drawing."""
_MOST_POINTS = 180
_STRIP, _ALONE = 62, 118
"""The height of a strip among others, and of a single one."""
_LEFT, _RIGHT, _TOP, _AXIS = 54, 14, 4, 22
_LABEL, _RADIUS = 17, 2.6


@dataclass(frozen=True)
class Point:
    """A window.

    Attributes:
        end_ms: Its end, in milliseconds since 1970.
        value: What is drawn of it.
        is_alert: Whether it broke the rule.
    """

    end_ms: int
    value: float
    is_alert: bool


@dataclass(frozen=True)
class Strip:
    """The windows of a key.

    Attributes:
        title: The key, and what is drawn.
        points: Its windows, in any order.
        threshold: The value beyond which the rule is broken; None if the rule has no such value.
        keeps_smallest: Whether small values are the bad ones, which are drawn where several windows
            lie so close that one is drawn for all.
    """

    title: str
    points: Sequence[Point]
    threshold: float | None = None
    keeps_smallest: bool = False


def windows_over_time(strips: Sequence[Strip]) -> Markup:
    """Draws windows over the ends of their time; of more than eight keys the first eight."""
    drawn = [strip for strip in strips[:MOST_KEYS] if strip.points]
    if not drawn:
        return drawing(40, "no windows", text(WIDTH / 2, 25, "no windows", "soft", "middle"))
    ends = [point.end_ms for strip in drawn for point in strip.points]
    first, last = min(ends), max(ends)
    height = _STRIP if len(drawn) > 1 else _ALONE
    bottom = _TOP + height * len(drawn)
    x = Scale(first, last, _LEFT, WIDTH - _RIGHT)
    parts: list[Markup] = []
    for at, label in time_ticks(first, last):
        parts.append(straight(x(at), _TOP + _LABEL, x(at), bottom))
        parts.append(tick_label(x(at), bottom + 15, label))
    for number, strip in enumerate(drawn):
        parts += _strip(strip, x, _TOP + height * number, height)
    label = f"windows of {len(drawn)} keys, {time_text(first)} to {time_text(last)} UTC"
    return drawing(bottom + _AXIS, label, *parts)


def _strip(strip: Strip, x: Scale, top: float, height: float) -> Iterator[Markup]:
    points = thinned(strip.points, keeps_smallest=strip.keeps_smallest)
    values = [point.value for point in points]
    known = [*values, *([] if strip.threshold is None else [strip.threshold])]
    high, low = number_top(max(known)), -number_top(-min(known)) if min(known) < 0 else 0.0
    base = top + height - 3
    y = Scale(low, high, base, top + _LABEL + 3)
    yield straight(_LEFT, base, WIDTH - _RIGHT, base)
    yield text(_LEFT, top + 13, short(strip.title, 80))
    yield text(_LEFT - 5, top + _LABEL + 8, number_text(high), "soft", "end")
    yield text(_LEFT - 5, base, number_text(low), "soft", "end")
    if strip.threshold is not None:
        at = y(strip.threshold)
        yield straight(_LEFT, at, WIDTH - _RIGHT, at, "limit")
        said = number_text(strip.threshold)
        yield text(WIDTH - _RIGHT, at - 3, said, "limit-text", "end")
    steps = " L".join(f"{x(each.end_ms):.1f} {y(each.value):.1f}" for each in points)
    yield tag("path", class_="line", d=f"M{steps}")
    for each in points:
        if each.is_alert or len(points) == 1:
            class_ = "bad" if each.is_alert else "bar"
            yield tag("circle", class_=class_, cx=x(each.end_ms), cy=y(each.value), r=_RADIUS)


def thinned(points: Sequence[Point], *, keeps_smallest: bool) -> list[Point]:
    """At most one window for each of 180 stretches of time, by end: the worst of the stretch."""
    if not points:
        return []
    first = min(point.end_ms for point in points)
    span = max(point.end_ms for point in points) - first + 1
    worst: dict[int, Point] = {}
    for point in points:
        at = (point.end_ms - first) * _MOST_POINTS // span
        there = worst.get(at)
        if there is None or _badness(point, keeps_smallest) > _badness(there, keeps_smallest):
            worst[at] = point
    return [worst[at] for at in sorted(worst)]


def _badness(point: Point, keeps_smallest: bool) -> tuple[bool, float]:  # noqa: FBT001  a value
    return point.is_alert, -point.value if keeps_smallest else point.value
