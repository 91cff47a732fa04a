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
    """

    messages: list[Message] = field(default_factory=list)
    held: list[AnyEvent] = field(default_factory=list)
    reason: str = ""
    skipped: dict[str, list[AnyEvent]] = field(default_factory=dict)
    old: int = 0


def plan(
    name: str,
    target: Target,
    events: Sequence[AnyEvent],
    delivered: Delivered,
    now: datetime,
    *,
    every: bool,
) -> Plan:
    """Decides what a target is sent.

    Args:
        name: The target's name.
        target: The target.
        events: All events of the pipeline, the oldest first.
        delivered: What became of them so far.
        now: The time.
        every: Whether also events are sent that are too old.
    """
    made = Plan()
    oldest = now - timedelta(milliseconds=target.max_age)
    heard_of = {event.episode for event in events if delivered.was_sent(name, event)}
    opens = {event.episode for event in events if event.event == OPENED and event.stands}
    due: list[AnyEvent] = []
    for event in events:
        delivery = (name, event.id)
        if delivered.is_done(name, event) or not _wants(target, event):
            continue
        is_retraction = event.event == RETRACTED
        if not event.stands or (is_retraction and event.episode in opens):
            made.skipped.setdefault("a correction took it back", []).append(event)
        elif is_retraction and event.episode not in heard_of:
            made.skipped.setdefault("nothing was sent of its episode", []).append(event)
        elif delivered.is_snoozed(event.rule, now):
            made.skipped.setdefault("its rule is snoozed", []).append(event)
        elif (
            not is_retraction
            and event.age_from < oldest
            and delivery not in delivered.waiting
            and not every
        ):
            made.old += 1
        else:
            due.append(event)
    _decide_messages(made, name, target, due, delivered, now)
    return made


def _decide_messages(
    made: Plan,
    name: str,
    target: Target,
    due: list[AnyEvent],
    delivered: Delivered,
    now: datetime,
) -> None:
    """Puts what is due into messages, or holds it."""
    messages = _of_episodes(due)
    if not messages:
        return
    if target.quiet is not None and is_quiet(target.quiet, now):
        made.held, made.reason = due, f"quiet until {target.quiet.bounds[1]:%H:%M}"
        return
    most = target.group
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
