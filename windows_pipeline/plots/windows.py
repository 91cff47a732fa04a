"""Windows over time: a strip for each key, with its alerts marked and the rule's threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from windows_pipeline.plots.axes import Scale, number_top, time_ticks
from windows_pipeline.plots.svg import WIDTH, drawing, straight, text, tick_label
from windows_pipeline.text.instants import time_text
from windows_pipeline.text.markup import Markup, tag
from windows_pipeline.text.values import cut, value_text

MOST_STRIPS = 8
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
        joins: Whether it begins before the window before it ends, or as it ends, so that a line
            joins them.
        is_silence: Whether it holds no record. Its value lasts until the next window's end.
    """

    end_ms: int
    value: float
    is_alert: bool
    joins: bool = True
    is_silence: bool = False


@dataclass(frozen=True)
class Strip:
    """The windows of a key.

    Attributes:
        title: The key, and what is drawn.
        points: Its windows, in any order.
        threshold: The value beyond which the rule is broken; None if the rule has no such value.
        keeps_smallest: Whether small values are the bad ones, which are drawn where several windows
            lie so close that one is drawn for all.
        until_ms: The time through which all windows are among the points: the last of them, if it
            is a silence, lasts until then. None if that is not known.
    """

    title: str
    points: Sequence[Point]
    threshold: float | None = None
    keeps_smallest: bool = False
    until_ms: int | None = None

    @property
    def in_order(self) -> list[Point]:
        """The windows by their ends, with a last silence once more at its end."""
        found = sorted(self.points, key=lambda point: point.end_ms)
        if not found or not found[-1].is_silence:
            return found
        until_ms = found[-1].end_ms if self.until_ms is None else self.until_ms
        if until_ms > found[-1].end_ms:
            found.append(replace(found[-1], end_ms=until_ms, is_alert=False, joins=True))
        return found


def windows_over_time(strips: Sequence[Strip]) -> Markup:
    """Draws windows over the ends of their time; of more than eight strips the first eight."""
    drawn = [strip for strip in strips[:MOST_STRIPS] if strip.points]
    if not drawn:
        return drawing(40, "no windows", text(WIDTH / 2, 25, "no windows", "soft", "middle"))
    ends = [point.end_ms for strip in drawn for point in strip.in_order]
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
    points = thinned(strip.in_order, keeps_smallest=strip.keeps_smallest)
    values = [point.value for point in points]
    known = [*values, *([] if strip.threshold is None else [strip.threshold])]
    high, low = number_top(max(known)), -number_top(-min(known)) if min(known) < 0 else 0.0
    base = top + height - 3
    y = Scale(low, high, base, top + _LABEL + 3)
    yield straight(_LEFT, base, WIDTH - _RIGHT, base)
    yield text(_LEFT, top + 13, cut(strip.title, 80))
    yield text(_LEFT - 5, top + _LABEL + 8, value_text(high), "soft", "end")
    yield text(_LEFT - 5, base, value_text(low), "soft", "end")
    if strip.threshold is not None:
        at = y(strip.threshold)
        yield straight(_LEFT, at, WIDTH - _RIGHT, at, "limit")
        said = value_text(strip.threshold)
        yield text(WIDTH - _RIGHT, at - 3, said, "limit-text", "end")
    yield tag("path", class_="line", d=_line(points, x, y))
    leads_on = [each.joins for each in points[1:]] + [False]
    for number, each in enumerate(points):
        is_alone = not leads_on[number] and (number == 0 or not each.joins)
        if each.is_alert or is_alone:
            class_ = "bad" if each.is_alert else "bar"
            yield tag("circle", class_=class_, cx=x(each.end_ms), cy=y(each.value), r=_RADIUS)


def thinned(points: Sequence[Point], *, keeps_smallest: bool) -> list[Point]:
    """Of each of 180 stretches of time the worst window that ends in it.

    The windows around a longer silence, and around a longer stretch without windows, are left in.

    Args:
        points: The windows.
        keeps_smallest: Whether small values are the bad ones.
    """
    if not points:
        return []
    points = sorted(points, key=lambda point: point.end_ms)
    first, last = points[0].end_ms, points[-1].end_ms
    stretch = (last - first) // _MOST_POINTS + 1
    worst: dict[int, int] = {}
    left_in: set[int] = set()
    for number, point in enumerate(points):
        at = (point.end_ms - first) // stretch
        there = worst.get(at)
        if there is None or _badness(point, keeps_smallest) > _badness(
            points[there], keeps_smallest
        ):
            worst[at] = number
        before = points[number - 1]
        is_flat_or_gap = number > 0 and (before.is_silence or not point.joins)
        if is_flat_or_gap and point.end_ms - before.end_ms > stretch:
            left_in |= {number - 1, number}
    return _joined(points, sorted(left_in.union(worst.values())))


def _joined(points: Sequence[Point], numbers: Sequence[int]) -> list[Point]:
    """Some of the windows; a line joins two if it joined all windows from one to the other.

    A short silence or stretch without windows among the windows left out breaks no line.
    """
    found: list[Point] = []
    for before, number in zip([None, *numbers], numbers, strict=False):
        point, is_next = points[number], before is None or before == number - 1
        found.append(point if is_next else replace(point, joins=True))
    return found


def _line(points: Sequence[Point], x: Scale, y: Scale) -> str:
    """The line through the windows: broken where there are none, flat while a key is silent."""
    steps: list[str] = []
    for number, each in enumerate(points):
        at, to = f"{x(each.end_ms):.1f}", f"{y(each.value):.1f}"
        before = points[number - 1] if number else None
        if before is not None and before.is_silence:
            steps.append(f"H{at} V{to}")
        elif before is not None and each.joins:
            steps.append(f"L{at} {to}")
        else:
            steps.append(f"M{at} {to}")
    return " ".join(steps)


def _badness(point: Point, keeps_smallest: bool) -> tuple[bool, float]:  # noqa: FBT001  a value
    return point.is_alert, -point.value if keeps_smallest else point.value
