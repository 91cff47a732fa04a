"""Triggers: when a window emits its result, as in FLIP-2 (rule E2)."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import cast

from windows_pipeline.text.limits import require_short
from windows_pipeline.windows import FiringWindows, PipelineWindows, WindowSpec
from windows_pipeline.windows.arguments import (
    require_flag,
    require_not_negative,
    require_positive,
)
from windows_pipeline.windows.durations import Duration, duration_ms, duration_text

RECORDS = re.compile(r"([0-9]+) records?")
UPDATE = "update"
"""An early firing at each record, as text."""
DISCARDS_FINAL = (
    "does not go with final, whose firing shows all records of its window, not those since the "
    "firing before; leave one of them out"
)
"""Why a final firing excludes discarding panes, with the fix."""
DELAYS_FINAL = (
    "has no effect, because these windows fire only as they close; leave it out, or write late, too"
)
"""Why windows with final firings alone exclude a delay, with the fix."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """When each window fires, and which records the firing shows.

    Make one with `until_window_closes` (one final result per window) or with `at_window_end`,
    and add to the latter:

        Trigger.at_window_end().early_every("15 minutes").discarding()

    Attributes:
        final_only: Whether each window fires once, when it closes; excludes all other fields.
        also_final: Whether each window that has not fired when it closed fires then, besides its
            other firings.
        early_every_records: After how many of its records a window fires before its end; None for
            no such firings.
        early_every_ms: The interval of firings before a window's end: it fires each time that
            stream time reaches or passes a multiple of this; None for no such firings.
        late: Whether each record that comes after the window's end, within grace, fires it.
        discards: Whether a firing shows only the records since the previous firing (a
            discarding pane), or all records so far (an accumulating pane).
        out_of_orderness_ms: How far the watermark that ends windows lags behind stream time, as
            Flink's bounded out-of-orderness. The grace includes this delay.
        as_in_flink: Whether to follow Flink where the contract differs: see `following_flink`.
    """

    final_only: bool = False
    also_final: bool = False
    early_every_records: int | None = None
    early_every_ms: int | None = None
    late: bool = True
    discards: bool = False
    out_of_orderness_ms: int = 0
    as_in_flink: bool = False

    def __post_init__(self) -> None:
        """Checks the arguments."""
        for name in ("final_only", "also_final", "late", "discards", "as_in_flink"):
            require_flag(name, getattr(self, name))
        require_not_negative("out_of_orderness", self.out_of_orderness_ms)
        if self.early_every_ms is not None:
            require_positive("early_every", self.early_every_ms)
        records = self.early_every_records
        if records is not None and (type(records) is not int or records <= 0):
            raise ValueError(
                f"early_every_records: must be an int above zero, not {records!r}; use 1 or more"
            )
        if records is not None and self.early_every_ms is not None:
            raise ValueError(
                "early firings must have one interval, in records or in time, not both "
                f"{records} records and {self.early_every_ms} ms; leave one of them out"
            )
        is_early = records is not None or self.early_every_ms is not None
        changed = (
            self.also_final,
            is_early,
            not self.late,
            self.discards,
            self.out_of_orderness_ms,
            self.as_in_flink,
        )
        if self.final_only and any(changed):
            raise ValueError(
                "until_window_closes: a window that fires once, when it closes, cannot have early "
                "firings, panes or delays; start from Trigger.at_window_end()"
            )
        if self.also_final and (self.discards or self.as_in_flink):
            other = "discarding" if self.discards else "following_flink"
            raise ValueError(
                "with_final: a final firing shows all records of a window that closes by the "
                f"contract, and cannot go with {other}; leave one of them out"
            )

    @property
    def fires_final(self) -> bool:
        """Whether windows fire as they close."""
        return self.final_only or self.also_final

    @classmethod
    def until_window_closes(cls) -> Trigger:
        """Makes a trigger that fires each window once, when it closes: its final result (E1)."""
        return cls(final_only=True)

    @classmethod
    def at_window_end(cls) -> Trigger:
        """Makes a trigger that fires when stream time reaches the end, and at each late record."""
        return cls()

    def early_every_update(self) -> Trigger:
        """Adds a firing at every record before the window's end."""
        return self.early_every_n(1)

    def early_every_n(self, records: int) -> Trigger:
        """Adds a firing at every n-th record before the window's end.

        Sessions that merge add up their counts. A new sliding window starts with the number of
        earlier records within its bounds.

        Raises:
            ValueError: The number is not an int above zero, or the trigger already has early
                firings by time.
        """
        return replace(self, early_every_records=records)

    def early_every(self, interval: Duration) -> Trigger:
        """Adds a firing whenever stream time reaches a multiple of an interval before the end.

        If stream time passes several multiples at once, or the end as well, the window fires once.

        Raises:
            ValueError: The interval is not a duration above zero, or the trigger already has
                early firings by records.
        """
        return replace(self, early_every_ms=duration_ms(interval, "early_every"))

    def with_final(self) -> Trigger:
        """Adds a firing when the window closes, with its final result (rule E1).

        If stream time passes a window's end and grace at once, the firing on time is the final one.

        Raises:
            ValueError: The trigger has discarding panes, or follows Flink.
        """
        return replace(self, also_final=True)

    def without_late(self) -> Trigger:
        """Removes the firings after the on-time firing."""
        return replace(self, late=False)

    def discarding(self) -> Trigger:
        """Shows only the records since the previous firing; leaves out empty firings."""
        return replace(self, discards=True)

    def with_out_of_orderness(self, delay: Duration) -> Trigger:
        """Compares ends and intervals with stream time minus a delay, as Flink's watermark does.

        Raises:
            ValueError: The delay is negative, or has a part smaller than a millisecond.
        """
        return replace(self, out_of_orderness_ms=duration_ms(delay, "out_of_orderness"))

    def following_flink(self) -> Trigger:
        """Follows Flink 2.3.0 where the contract differs.

        A session ends when stream time reaches its last record plus the gap, and closes a grace
        later, one millisecond earlier than by the contract. Firings by time are those of Flink's
        ContinuousEventTimeTrigger. Each window has its own ticks, counted from its first
        record. Every tick below stream time fires, even several at once, and ticks past the end.
        A session that later merges with others fires again for the ticks it has passed. Flink
        has no sliding windows, so `fitted` refuses them.
        """
        return replace(self, as_in_flink=True)

    def fitted(self, windows: WindowSpec | PipelineWindows) -> FiringWindows:
        """Returns the windows, after checking that they can fire like this.

        All windows can fire as they close. Those of a trigger that has other firings, too, can fire
        before that.

        Raises:
            ValueError: The windows cannot fire like this; the message has the reason and the fix.
        """
        problem = windows.trigger_problem or (windows.flink_problem if self.as_in_flink else None)
        if problem is not None and not self.final_only:
            raise ValueError(problem)
        if windows.grace_ms < self.out_of_orderness_ms:
            raise ValueError(
                f"trigger: an out_of_orderness of {duration_text(self.out_of_orderness_ms)!r} is "
                f"above the windows' grace of {duration_text(windows.grace_ms)!r}: windows would "
                "close before they fire on time; use a grace of "
                f"{duration_text(self.out_of_orderness_ms)!r} or more"
            )
        return cast("FiringWindows", windows)


def trigger_of(
    early_every: str | None = None,
    *,
    late: bool | None = None,
    panes: str = "accumulating",
    out_of_orderness: Duration = "0 ms",
    final: bool = False,
) -> Trigger:
    """Makes a trigger from the fields that pipelines' files and SQL have.

    Args:
        early_every: A duration, '10 records', or 'update' for each record; None for no early
            firings.
        late: Whether each record that comes after the window's end, within grace, fires it. None
            for the default: true, but false with `final`.
        panes: 'accumulating' or 'discarding'.
        out_of_orderness: How far the watermark that ends windows lags behind stream time.
        final: Whether windows fire as they close; with neither `early_every` nor `late` only then.

    Raises:
        ValueError: A field has another form; the message has the field, the value and the fix.
    """
    if panes not in ("accumulating", "discarding"):
        raise ValueError(f"panes: must be 'accumulating' or 'discarding', not {panes!r}")
    require_flag("final", final)
    require_short(early_every, "early_every")
    text = " ".join(early_every.lower().split()) if isinstance(early_every, str) else early_every
    delay_ms = duration_ms(out_of_orderness, "out_of_orderness")
    if final and panes == "discarding":
        raise ValueError(f"panes: {panes!r} {DISCARDS_FINAL}")
    if final and late is None and text is None:
        if delay_ms:
            raise ValueError(f"out_of_orderness: {out_of_orderness!r} {DELAYS_FINAL}")
        return Trigger.until_window_closes()
    trigger = Trigger(
        also_final=final,
        late=not final if late is None else late,
        discards=panes == "discarding",
        out_of_orderness_ms=delay_ms,
    )
    if text is None:
        return trigger
    counted = RECORDS.fullmatch("1 record" if text == UPDATE else str(text))
    if counted:
        return trigger.early_every_n(int(counted[1]))
    try:
        return trigger.early_every(text)
    except ValueError as error:
        raise ValueError(f"{error}; or '10 records', or 'update' for every record") from None
