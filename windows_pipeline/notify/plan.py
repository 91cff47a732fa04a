"""Which events a target is sent now, and in which messages."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from zoneinfo import ZoneInfo

from windows_pipeline.config import Target
from windows_pipeline.config.notify import Quiet
from windows_pipeline.notify.delivered import Delivered
from windows_pipeline.notify.events import OPENED, RETRACTED, Episode
from windows_pipeline.notify.pipeline_events import AnyEvent, PipelineEvent


@dataclass(frozen=True)
class Message:
    """The events that are sent together.

    Attributes:
        events: The events, the oldest first.
    """

    events: tuple[AnyEvent, ...]

    @cached_property
    def id(self) -> str:
        """A digest of the events: a message that is sent again has the same id."""
        ids = "\n".join(sorted(event.id for event in self.events))
        return hashlib.sha256(ids.encode()).hexdigest()

    @property
    def halves(self) -> list[Message]:
        """Two messages of half of the episodes each; none of a message of one episode."""
        single = _of_episodes(self.events)
        middle = len(single) // 2
        parts = [single[:middle], single[middle:]] if middle else []
        return [Message(tuple(event for one in part for event in one.events)) for part in parts]

    @property
    def episodes(self) -> list[AnyEvent]:
        """The newest event of each episode."""
        return list({event.episode: event for event in self.events}.values())


@dataclass
class Plan:
    """What to send to a target, and what not.

    Attributes:
        messages: The messages, in order.
        held: The events that wait, as now is not the time.
        reason: Why they wait.
        skipped: The events that are never sent, by the reason.
        old: How many events are too old.
        unwanted: How many events the target's `rules`, `min_severity` and `events` leave out.
        set_aside: How many events were set aside, and stay so.
        released: The events among them that were set aside, and are tried again.
    """

    messages: list[Message] = field(default_factory=list)
    held: list[AnyEvent] = field(default_factory=list)
    reason: str = ""
    skipped: dict[str, list[AnyEvent]] = field(default_factory=dict)
    old: int = 0
    unwanted: int = 0
    set_aside: int = 0
    released: list[AnyEvent] = field(default_factory=list)


def plan(
    name: str,
    target: Target,
    events: Sequence[AnyEvent],
    delivered: Delivered,
    now: datetime,
    *,
    every: bool,
    again: bool,
) -> Plan:
    """Decides what a target is sent.

    Args:
        name: The target's name.
        target: The target.
        events: All events of the pipeline, the oldest first.
        delivered: What became of them so far.
        now: The time.
        every: Whether also events are sent that are too old.
        again: Whether also events are sent that were set aside.
    """
    made = Plan()
    oldest = now - timedelta(milliseconds=target.max_age)
    outcomes = [delivered.outcome(name, event) for event in events]
    of = list(zip(events, outcomes, strict=True))
    was_sent = {event.episode for event, outcome in of if outcome == "sent"}
    opens = {event.episode for event in events if event.event == OPENED and event.stands}
    due: list[AnyEvent] = []
    for event, outcome in of:
        if outcome == "set aside":
            made.set_aside += event.stands and not again
        is_due = outcome in (None, "waiting") or (again and outcome == "set aside")
        if not is_due or not _wants(target, event):
            made.unwanted += is_due
            continue
        never = _why_never(event, opens, was_sent)
        if never:
            made.skipped.setdefault(never, []).append(event)
        elif outcome is not None or event.event == RETRACTED:
            due.append(event)
            if outcome == "set aside":
                made.released.append(event)
        elif event.age_from < oldest and not every:
            made.old += 1
        else:
            due.append(event)
    _decide_messages(made, name, target, due, delivered, now)
    return made


def _why_never(event: AnyEvent, opens: set[Episode], was_sent: set[Episode]) -> str:
    """Why an event is never sent, for what a correction did to its episode; empty if it may be."""
    is_retraction = event.event == RETRACTED
    if not event.stands or (is_retraction and event.episode in opens):
        return "a correction retracted it"
    if is_retraction and event.episode not in was_sent:
        return "nothing was sent of its episode"
    return ""


def _decide_messages(
    made: Plan,
    name: str,
    target: Target,
    due: list[AnyEvent],
    delivered: Delivered,
    now: datetime,
) -> None:
    """Puts what is due into messages, or holds it."""
    of_events = target.topic is not None
    messages = [Message((event,)) for event in due] if of_events else _of_episodes(due)
    if not messages:
        return
    if target.quiet is not None and is_quiet(target.quiet, now):
        made.held, made.reason = due, f"quiet until {target.quiet.bounds[1]:%H:%M}"
        return
    most = len(due) if of_events else target.group
    if target.rate_limit is not None:
        since = now - timedelta(milliseconds=target.rate_limit.per)
        most = min(most, target.rate_limit.messages - delivered.messages_since(name, since))
        if most <= 0:
            made.held, made.reason = due, "the rate limit is reached"
            return
    made.messages = messages if len(messages) <= most else [Message(tuple(due))]


def _of_episodes(due: Iterable[AnyEvent]) -> list[Message]:
    """A message an episode, in the order of their first events."""
    of_episodes: dict[Episode, list[AnyEvent]] = {}
    for event in due:
        of_episodes.setdefault(event.episode, []).append(event)
    return [Message(tuple(of_episode)) for of_episode in of_episodes.values()]


def is_quiet(quiet: Quiet, now: datetime) -> bool:
    """Whether an instant lies in quiet hours."""
    first, last = quiet.bounds
    at = now.astimezone(ZoneInfo(quiet.zone)).time()
    return first <= at < last if first < last else at >= first or at < last


def _wants(target: Target, event: AnyEvent) -> bool:
    if event.event not in target.events:
        return False
    if isinstance(event, PipelineEvent):
        return True
    if target.rules is not None and event.rule not in target.rules:
        return False
    severity = event.severity
    if target.min_severity is None or severity is None or math.isnan(severity):
        return True
    return severity >= target.min_severity
