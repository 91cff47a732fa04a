"""When a window tells its result: FLIP-2's triggers, as a value (rule E2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from windows_pipeline.windows import (
    FiringWindows,
    ForwardSlidingWindows,
    GracedRows,
    PipelineWindows,
    SlidingWindows,
    TimeWindows,
    WindowSpec,
)
from windows_pipeline.windows.arguments import (
    require_flag,
    require_not_negative,
    require_positive,
)
from windows_pipeline.windows.durations import Duration, duration_ms, duration_text


@dataclass(frozen=True, slots=True)
class Trigger:
    """When each window fires, and what it then shows.

    Make one with `until_window_closes` (one final result a window) or `at_window_end`, and say
    what else it is to do:

        Trigger.at_window_end().early_every("15 minutes").discarding()

    Attributes:
        final_only: Each window fires once, when it closes; nothing else may be asked for then.
        early_every_records: Before its end a window fires at every so many records of its own;
            None for no such firings.
        early_every_ms: Before its end a window fires each time that stream time reaches or
            passes a multiple of this; None for no such firings.
        late: Whether each record that comes after the window's end, within grace, fires it.
        discards: Whether a firing shows only what came since the one before (a discarding pane)
            or all records so far (an accumulating one).
        out_of_orderness_ms: How far behind stream time the clock runs that ends are judged by:
            Flink's bounded out-of-orderness. The grace covers it, it is not added to it.
        as_in_flink: Whether to follow Flink where the contract differs: see `following_flink`.
    """

    final_only: bool = False
    early_every_records: int | None = None
    early_every_ms: int | None = None
    late: bool = True
    discards: bool = False
    out_of_orderness_ms: int = 0
    as_in_flink: bool = False

    def __post_init__(self) -> None:
        """Checks the arguments."""
        for name in ("final_only", "late", "discards", "as_in_flink"):
            require_flag(name, getattr(self, name))
        require_not_negative("out_of_orderness", self.out_of_orderness_ms)
        if self.early_every_ms is not None:
            require_positive("early_every", self.early_every_ms)
        records = self.early_every_records
        if records is not None and (type(records) is not int or records <= 0):
            raise ValueError(
                f"early_every_records: {records!r} is no number of records; use an int above zero"
            )
        if records is not None and self.early_every_ms is not None:
            raise ValueError(
                "early firings come every so many records or every so much time, not both; "
                f"got {records} records and {self.early_every_ms} ms"
            )
        is_early = records is not None or self.early_every_ms is not None
        changed = (
            is_early,
            not self.late,
            self.discards,
            self.out_of_orderness_ms,
            self.as_in_flink,
        )
        if self.final_only and any(changed):
            raise ValueError(
                "until_window_closes: a window that fires once, when it closes, takes no early "
                "firings, panes or delays; start from Trigger.at_window_end()"
            )

    @classmethod
    def until_window_closes(cls) -> Trigger:
        """Each window fires once, when it closes: its final result (rule E1)."""
        return cls(final_only=True)

    @classmethod
    def at_window_end(cls) -> Trigger:
        """Each window fires when stream time reaches its end, and at each later record."""
        return cls()

    def early_every_update(self) -> Trigger:
        """Also at every record before the end."""
        return self.early_every_n(1)

    def early_every_n(self, records: int) -> Trigger:
        """Also at every so many records before the end; sessions that join add up theirs.

        A sliding window counts, when it is made, what it finds within its bounds.

        Raises:
            ValueError: No int above zero, or there are early firings by time.
        """
        return replace(self, early_every_records=records)

    def early_every(self, interval: Duration) -> Trigger:
        """Also each time that stream time reaches a multiple of an interval before the end.

        Stream time that passes several at once, or the end with them, makes one firing.

        Raises:
            ValueError: No duration above zero, or there are early firings by records.
        """
        return replace(self, early_every_ms=duration_ms(interval, "early_every"))

    def without_late(self) -> Trigger:
        """No firing after the one that is on time."""
        return replace(self, late=False)

    def discarding(self) -> Trigger:
        """A firing shows only what came since the one before; without any it is left out."""
        return replace(self, discards=True)

    def with_out_of_orderness(self, delay: Duration) -> Trigger:
        """Ends and intervals are judged by stream time less a delay, as Flink's watermark is.

        Raises:
            ValueError: A negative delay, or a part smaller than a millisecond.
        """
        return replace(self, out_of_orderness_ms=duration_ms(delay, "out_of_orderness"))

    def following_flink(self) -> Trigger:
        """Follows Flink 2.3.0 where the contract differs.

        A session passes when stream time reaches its last record and the gap, and closes a
        grace after, a millisecond earlier than here. Firings by time are those of Flink's
        ContinuousEventTimeTrigger: a window has ticks of its own, counted from its first
        record; each fires when stream time is above it, however many at once, past the end
        too; one that was passed stays, and fires a session again that is joined later. Flink has
        no sliding windows, so these refuse it.
        """
        return replace(self, as_in_flink=True)

    def fitted(self, windows: WindowSpec | PipelineWindows) -> FiringWindows:
        """The windows, if they can fire other than when they close.

        Raises:
            ValueError: Says what does not fit, and the cure.
        """
        if isinstance(windows, GracedRows):
            raise ValueError("trigger: rows have one result each, the final one; leave it out")
        if isinstance(windows, ForwardSlidingWindows):
            raise ValueError(
                "trigger: ForwardSlidingWindows fire when they close only; use "
                "Trigger.until_window_closes(), or "
                "SlidingWindows.of_time_difference_and_grace"
            )
        if isinstance(windows, SlidingWindows) and self.as_in_flink:
            raise ValueError(
                "trigger: following_flink says nothing of SlidingWindows, which Flink does not "
                "have; leave it out"
            )
        if isinstance(windows, TimeWindows) and windows.emit_empty:
            raise ValueError(
                "windows: with emit_empty there are windows that no record comes into, so that "
                "nothing fires them; use Trigger.until_window_closes(), or leave emit_empty out"
            )
        if windows.grace_ms < self.out_of_orderness_ms:
            raise ValueError(
                f"trigger: an out_of_orderness of {duration_text(self.out_of_orderness_ms)!r} is "
                f"above the windows' grace of {duration_text(windows.grace_ms)!r}: they would "
                "close before they pass; use a grace that covers it"
            )
        return windows
