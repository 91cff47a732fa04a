"""Firings in slow, plain Python (E2, A4, B3 to B8, C1, D1, D2): every window asked at every record.

Written from the rules, for one merged order of arrival. With `as_in_flink` by rules 1 to 3 and 12
to 16 of Flink's cases, else by the contract. The clock is stream time less the out-of-orderness.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

Key = str | None


class Policy(NamedTuple):
    """The windows and when they fire; without a gap or difference they are hopping or tumbling.

    Of sliding ones `first_start` is v of rule B6. With `final` each window fires as it closes, with
    `final_only`, too, only then.
    """

    size: int = 0
    advance: int = 0
    gap: int = 0
    lateness: int = 0
    out_of_orderness: int = 0
    every_n: int = 0
    interval: int = 0
    late: bool = True
    discarding: bool = False
    as_in_flink: bool = False
    input_ends: bool = False
    difference: int = 0
    first_start: int | None = None
    emit_empty: bool = False
    final: bool = False
    final_only: bool = False


class Firing(NamedTuple):
    """A firing; `after` is the number of a record, None for the end of the input.

    Its stream time is that after this record (rule A2).
    The end is the exclusive one of hopping windows, that of sliding ones, which belongs to them,
    of sessions the last record and the gap.
    """

    key: Key
    start: int
    end: int
    id: int
    reason: str
    cause: str
    after: int | None
    stream_time: float
    is_final: bool
    records: tuple[int, ...]


@dataclass
class _Window:
    key: Key
    start: int
    end: int
    records: list[int] = field(default_factory=list)
    next_id: int = 0
    on_time_was: bool = False
    final_was: bool = False
    count: int = 0
    ends: bool = False  # the end of the input is still to come
    tick: int | None = None
    tick_waits: bool = False


class _Model:
    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.windows: list[_Window] = []
        self.firings: list[Firing] = []
        self.stream_time = self.clock = -math.inf
        # A session's end belongs to it by the contract, not in Flink; a sliding window's does.
        self.beyond = int(policy.difference > 0 or (policy.gap > 0 and not policy.as_in_flink))
        self.came: dict[Key, list[tuple[int, int]]] = {}  # number and time, all of a key
        self.asked: dict[Key, set[tuple[int, int]]] = {}  # sliding windows, if they hold anything
        self.made: set[tuple[Key, int]] = set()

    def passed(self, window: _Window) -> bool:
        return self.clock >= window.end + self.beyond

    def closed(self, window: _Window) -> bool:
        return self.clock >= window.end + self.beyond + self.policy.lateness

    def fire(self, window: _Window, cause: str, after: int | None, *, is_final: bool) -> None:
        reason = "EARLY"
        if self.passed(window):
            reason = "LATE" if window.on_time_was else "ON_TIME"
        is_asked = self.policy.late or reason != "LATE"
        if self.policy.final and (is_final or self.policy.final_only):
            is_asked = is_final
        if not window.records or not is_asked:
            return
        window.final_was = window.final_was or is_final
        window.on_time_was = window.on_time_was or reason == "ON_TIME"
        held = tuple(sorted(window.records))
        self.firings.append(
            Firing(
                window.key,
                window.start,
                window.end,
                window.next_id,
                reason,
                cause,
                after,
                self.stream_time,
                is_final,
                held,
            )
        )
        window.next_id += 1
        if self.policy.discarding:
            window.records.clear()

    def take(self, number: int, key: Key, time: int) -> set[int]:
        """Puts a record into its windows; returns which of these are new with it."""
        if self.policy.difference:
            return self.slide(number, key, time)
        new = set()
        for start, end in self.spans(time):
            window = _Window(key, start, end)
            near = [w for w in self.windows if w.key == key and self.meets(w, start, end)]
            if self.policy.gap:
                window = self.joined(window, near)
            elif near:
                window = near[0]
            if self.closed(window):
                continue
            if not near:
                new.add(id(window))
            self.windows = [w for w in self.windows if w not in near] + [window]
            window.records.append(number)
            self.arrived(window, number, time)
        return new

    def slide(self, number: int, key: Key, time: int) -> set[int]:
        """The same of sliding windows: each is made as soon as it is asked for and holds a record.

        It then holds what came before, too (rules B3, B5), and has all of that to count.
        """
        difference, first = self.policy.difference, self.policy.first_start
        came = self.came.setdefault(key, [])
        came.append((number, time))
        asked = self.asked.setdefault(key, set())
        is_covered = first is None or time >= first
        if is_covered and not self.closed(_Window(key, time, time + difference)):
            left = time - difference if first is None else max(time - difference, first)
            asked |= {(start, start + difference) for start in (left, time + 1)}
        new = set()
        for start, end in sorted(asked):
            held = [n for n, t in came if start <= t <= end]
            known = [w for w in self.windows if (w.key, w.start) == (key, start)]
            window = known[0] if known else _Window(key, start, end)
            if not held or self.closed(window):
                continue
            if not known:
                window.records, window.count = held, len(held) - 1
                self.windows.append(window)
                self.made.add((key, start))
                new.add(id(window))
            elif held[-1] == number:
                window.records.append(number)
            else:
                continue
            self.arrived(window, number, time)
        return new

    def silences(self, before: float, after: int) -> None:
        """The end of a record's windows without any other, as it closes (rule B8)."""
        beyond = self.beyond + self.policy.lateness
        for key, asked in self.asked.items():
            for start, end in asked:
                if before < end + beyond <= self.clock and (key, start) not in self.made:
                    fields = (key, start, end, 0, "ON_TIME", "stream time", after)
                    self.firings.append(Firing(*fields, self.stream_time, True, ()))

    def spans(self, time: int) -> list[tuple[int, int]]:
        if self.policy.gap:
            return [(time, time + self.policy.gap)]
        size, advance = self.policy.size, self.policy.advance
        first = (time - size) // advance * advance + advance
        return [(start, start + size) for start in range(first, time + 1, advance)]

    def meets(self, window: _Window, start: int, end: int) -> bool:
        if self.policy.gap:
            return not self.closed(window) and window.start <= end and start <= window.end
        return window.start == start

    def joined(self, own: _Window, near: Sequence[_Window]) -> _Window:
        start = min(w.start for w in [own, *near])
        end = max(w.end for w in [own, *near])
        if len(near) == 1 and (near[0].start, near[0].end) == (start, end):
            return near[0]
        ticks = [w.tick for w in near if w.tick is not None]
        return _Window(
            own.key,
            start,
            end,
            [record for w in near for record in w.records],
            count=sum(w.count for w in near),
            tick=min(ticks, default=None),
            tick_waits=bool(ticks),
        )

    def arrived(self, window: _Window, number: int, time: int) -> None:
        policy = self.policy
        if self.passed(window):
            self.fire(window, "record", number, is_final=False)
            return
        window.ends = True
        window.count += 1
        if policy.every_n and window.count >= policy.every_n:
            window.count = 0
            self.fire(window, "record", number, is_final=False)
        if policy.as_in_flink and policy.interval and window.tick is None:
            tick = time - int(math.fmod(time, policy.interval)) + policy.interval
            window.tick, window.tick_waits = min(tick, window.end - 1), True

    def advance(self, clock: float, after: int | None, new: set[int]) -> None:
        before, self.clock = self.clock, clock
        if self.policy.emit_empty and after is not None:
            self.silences(before, after)
        for window in self.windows:
            if self.policy.as_in_flink and self.policy.interval:
                self.flink_ticks(window, after)
                continue
            interval = self.policy.interval
            if window.ends and self.passed(window):
                window.ends = False
                self.fire(window, "stream time", after, is_final=self.closed(window))
            elif (
                interval
                and not self.passed(window)
                and id(window) not in new
                and clock // interval > before // interval
            ):
                self.fire(window, "stream time", after, is_final=False)
            if self.policy.final and self.closed(window) and not window.final_was:
                self.fire(window, "stream time", after, is_final=True)

    def flink_ticks(self, window: _Window, after: int | None) -> None:
        while window.tick_waits and window.tick is not None and self.clock - 1 >= window.tick:
            is_last = window.tick == window.end - 1
            is_final = is_last and self.closed(window)
            self.fire(window, "stream time", after, is_final=is_final)
            if is_last:
                window.tick_waits = False
            else:
                window.tick = min(window.tick + self.policy.interval, window.end - 1)


def firings(records: Sequence[tuple[Key, int]], policy: Policy) -> list[Firing]:
    """The firings of records (key and event time) in their order of arrival, by window and id."""
    model = _Model(policy)
    for number, (key, time) in enumerate(records):
        model.stream_time = max(model.stream_time, time)
        new = model.take(number, key, time)
        clock = model.stream_time - policy.out_of_orderness
        if clock > model.clock:
            model.advance(clock, number, new)
        model.windows = [w for w in model.windows if not model.closed(w)]
    if policy.input_ends:
        model.stream_time = math.inf
        model.advance(math.inf, None, set())
    return sorted(model.firings, key=lambda f: (f.key is not None, f.key or "", *f[1:4]))
