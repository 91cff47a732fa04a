"""Entry point of notify: sends a pipeline's targets the events since the last delivery."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from windows_pipeline.config import Pipeline, Target
from windows_pipeline.notify.delivered import BusyError, Delivered, Delivery, Outcome, delivered_log
from windows_pipeline.notify.events import read_events, versions
from windows_pipeline.notify.not_sent import NotSentError
from windows_pipeline.notify.pipeline_events import (
    FAILED,
    AnyEvent,
    note_failure,
    notifies_of,
    pipeline_events,
)
from windows_pipeline.notify.plan import Message, is_quiet, plan
from windows_pipeline.notify.senders import Send, sender_of
from windows_pipeline.notify.texts import title
from windows_pipeline.settings import Settings
from windows_pipeline.text.problems import listed, nearest

__all__ = [
    "FAILED",
    "BusyError",
    "Due",
    "Sent",
    "deliver",
    "note_failure",
    "notifies_of",
    "snooze",
    "what_is_due",
]
WAITS_S = (1.0, 4.0)
"""How long to wait before a message is tried again."""


@dataclass(frozen=True)
class Sent:
    """The messages to a target.

    Attributes:
        target: The target's name.
        messages: The messages that were sent, or would be, one line each.
        events: How many events they contain.
        old: How many events are too old.
        waiting: How many events wait for the next time.
        reason: Why events wait; empty if no event waits.
        failed: Whether events wait because the target did not accept a message.
    """

    target: str
    messages: tuple[str, ...]
    events: int
    old: int
    waiting: int = 0
    reason: str = ""
    failed: bool = False


def deliver(
    pipeline: Pipeline,
    settings: Settings,
    *,
    every: bool = False,
    dry_run: bool = False,
    now: datetime | None = None,
    waits_s: Sequence[float] = WAITS_S,
    sleep: Callable[[float], None] = time.sleep,
) -> list[Sent]:
    """Sends each target of a pipeline the events that it has not been sent yet.

    Args:
        pipeline: The pipeline.
        settings: Where its tables lie.
        every: Whether to send events that are too old as well.
        dry_run: Whether to report what would be sent, and send nothing.
        now: The time; None for the clock's.
        waits_s: How long to wait before each further attempt to send a message.
        sleep: Waits.

    Raises:
        BusyError: Another command delivers messages of the pipeline.
        ConfigError: A target refers to an environment variable that is not set; the other targets
            were sent their messages.
        TableDamagedError: A file of a table is damaged.
        UnreadableTableError: A table cannot be read without Spark.
        ValueError: The pipeline has no targets; or a target's address is wrong, or its program is
            not allowed (the other targets were sent their messages).
    """
    if not pipeline.notify:
        raise ValueError(
            f"{pipeline.name}: must have targets under notify, but has none; add one to its file"
        )
    instant = now or datetime.now(UTC)
    events: list[AnyEvent] = [
        *read_events(pipeline, settings.warehouse),
        *pipeline_events(pipeline, settings.warehouse, instant),
    ]
    folder = f"{settings.warehouse}/{pipeline.name}"
    if not Path(folder).is_dir():
        return [Sent(name, (), 0, 0) for name in pipeline.notify]
    sent: list[Sent] = []
    wrong: list[ValueError] = []
    with delivered_log(folder) as log:
        for name, target in pipeline.notify.items():
            one = _Target(pipeline, name, target, log, instant)
            try:
                send = None if dry_run else sender_of(pipeline, name, settings)
            except ValueError as error:  # the other targets are sent their messages
                wrong.append(error)
            else:
                sent.append(one.deliver(events, send, waits_s, sleep, every=every))
    if wrong:
        raise wrong[0]
    return sent


@dataclass(frozen=True)
class Due:
    """Whether a pipeline has something to send.

    Attributes:
        versions: The version of each table of notifications, by the table's name, and the number of
            events of the pipeline itself.
        waits: Whether events wait at a target that has no quiet hours now.
    """

    versions: dict[str, int]
    waits: bool


def what_is_due(pipeline: Pipeline, settings: Settings) -> Due:
    """Finds out whether there is something to send; reads no row and sends nothing.

    Raises:
        BusyError: Another command delivers messages of the pipeline.
        TableDamagedError: The log of a table is damaged.
        UnreadableTableError: A table cannot be read without Spark.
    """
    instant = datetime.now(UTC)
    found = versions(pipeline, settings.warehouse)
    of_itself = pipeline_events(pipeline, settings.warehouse, instant)
    if of_itself:
        found[of_itself[-1].id] = len(of_itself)
    folder = f"{settings.warehouse}/{pipeline.name}"
    if not found:
        return Due(found, waits=False)
    with delivered_log(folder) as log:
        awake = {
            name
            for name, target in pipeline.notify.items()
            if target.quiet is None or not is_quiet(target.quiet, instant)
        }
        return Due(found, waits=any(name in awake for name, _ in log.waiting - log.done))


def snooze(
    pipeline: Pipeline,
    settings: Settings,
    rule: str,
    until: datetime,
    now: datetime | None = None,
) -> None:
    """Stops notifying of a rule's episodes until an instant; events until then are never sent.

    Args:
        pipeline: The pipeline.
        settings: Where its tables lie.
        rule: The rule.
        until: The instant; one that has passed ends the snooze.
        now: The time; None for the clock's.

    Raises:
        BusyError: Another command delivers messages of the pipeline.
        ValueError: The pipeline has no such rule, or no table so far.
    """
    rules = list(dict.fromkeys(name for each in pipeline.windows.values() for name in each.alerts))
    if rule not in rules:
        fix = nearest(rule, rules, f"the rules are: {listed(rules) or 'none'}")
        raise ValueError(f"RULE: {rule!r} is not an alert rule of {pipeline.name}; {fix}")
    folder = f"{settings.warehouse}/{pipeline.name}"
    if not Path(folder).is_dir():
        raise ValueError(
            f"{pipeline.name}: must have tables, but has none in {folder}; run it first"
        )
    with delivered_log(folder) as log:
        log.snooze(rule, until, now or datetime.now(UTC))


@dataclass(frozen=True)
class _Target:
    """A target that is notified now."""

    pipeline: Pipeline
    name: str
    target: Target
    log: Delivered
    now: datetime

    def deliver(
        self,
        events: Sequence[AnyEvent],
        send: Send | None,
        waits_s: Sequence[float],
        sleep: Callable[[float], None],
        *,
        every: bool,
    ) -> Sent:
        """Sends due messages in order, and stops at the first message that is not accepted."""
        due = plan(self.name, self.target, events, self.log, self.now, every=every)
        texts: list[str] = []
        count = 0
        if send is not None:
            self.log.note(
                self._delivery(event, "skipped", reason=reason)
                for reason, skipped in due.skipped.items()
                for event in skipped
            )
            self._wait(due.held, due.reason)
        for number, message in enumerate(due.messages):
            if send is not None:
                try:
                    attempts = _sent(send, message, waits_s, sleep)
                except NotSentError as error:
                    left = [event for later in due.messages[number:] for event in later.events]
                    self._wait(left, str(error))
                    waiting = len(left)
                    return Sent(
                        self.name, tuple(texts), count, due.old, waiting, str(error), failed=True
                    )
                self.log.note(
                    self._delivery(event, "sent", message.id, attempts) for event in message.events
                )
            texts.append(title(self.pipeline, message))
            count += len(message.events)
        return Sent(self.name, tuple(texts), count, due.old, len(due.held), due.reason)

    def _delivery(
        self,
        event: AnyEvent,
        outcome: Outcome,
        message: str = "",
        attempts: int = 0,
        reason: str = "",
    ) -> Delivery:
        at = self.now.isoformat()
        # The ids of other events are enough: a rebuild does not change them.
        digest = "" if event.correction is None else event.digest
        return Delivery(event.id, self.name, outcome, at, message, attempts, reason, digest)

    def _wait(self, left: Sequence[AnyEvent], reason: str) -> None:
        """Records events that wait, once: a recorded event is sent however old it is by then."""
        new = [event for event in left if (self.name, event.id) not in self.log.waiting]
        self.log.note(self._delivery(event, "waiting", reason=reason) for event in new)


def _sent(
    send: Send, message: Message, waits_s: Sequence[float], sleep: Callable[[float], None]
) -> int:
    """Sends a message; returns how many attempts it took.

    Raises:
        NotSentError: No attempt succeeded.
    """
    for number, wait_s in enumerate((*waits_s, None), 1):
        try:
            send(message)
        except NotSentError as error:
            if wait_s is None or not error.may_help:
                raise
            sleep(wait_s)
        else:
            return number
    raise AssertionError
