"""Sends a pipeline's targets the events since the last delivery."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from windows_pipeline.config import ConfigError, Pipeline, Target
from windows_pipeline.notify.delivered import Delivered, Delivery, Outcome, delivered_log
from windows_pipeline.notify.events import read_events, versions
from windows_pipeline.notify.not_sent import NotSentError
from windows_pipeline.notify.pipeline_events import AnyEvent, pipeline_events
from windows_pipeline.notify.plan import Message, Plan, is_quiet, plan
from windows_pipeline.notify.senders import Send, sender_of
from windows_pipeline.notify.texts import title
from windows_pipeline.settings import Settings

WAITS_S = (1.0, 4.0)
"""How long to wait before a message is tried again."""
_MOST_REFUSED = 100
"""How many refused messages in a row are passed over: a target may refuse all of a storm."""


@dataclass(frozen=True)
class Sent:
    """The messages to a target.

    Attributes:
        target: The target's name.
        messages: The messages that were sent, or would be, one line each.
        events: How many events they contain.
        old: How many events are too old.
        unwanted: How many events the target's `rules`, `min_severity` and `events` leave out.
        waiting: How many events wait for the next time.
        reason: Why events wait; empty if no event waits.
        failed: Whether events wait because the target did not accept a message.
        refused: The messages that were set aside now, one line each with the target's answer.
        set_aside: How many events are set aside.
    """

    target: str
    messages: tuple[str, ...]
    events: int
    old: int
    unwanted: int = 0
    waiting: int = 0
    reason: str = ""
    failed: bool = False
    refused: tuple[str, ...] = ()
    set_aside: int = 0


class WrongTargetsError(ConfigError):
    """Targets that cannot be used as declared; the others were sent their messages.

    Attributes:
        sent: The messages to all targets.
    """

    def __init__(self, problems: Sequence[str], sent: list[Sent]) -> None:
        """Takes a line for each wrong target, without values of variables."""
        super().__init__(problems)
        self.sent = sent


def deliver(
    pipeline: Pipeline,
    settings: Settings,
    *,
    every: bool = False,
    again: bool = False,
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
        again: Whether to send events that were set aside as well.
        dry_run: Whether to report what would be sent, and send nothing.
        now: The time; None for the clock's.
        waits_s: How long to wait before each further attempt to send a message.
        sleep: Waits.

    Raises:
        BusyError: Another command delivers messages of the pipeline.
        TableDamagedError: A file of a table is damaged.
        UnreadableTableError: A table cannot be read without Spark.
        ValueError: The pipeline has no targets.
        WrongTargetsError: A target's address is wrong or refers to an environment variable that is
            not set, its program is not allowed, or the package of its way is missing. Its events
            wait; the other targets were sent their messages.
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
    wrong: list[str] = []
    with delivered_log(folder) as log:
        for name, target in pipeline.notify.items():
            one = _Target(pipeline, name, target, log, instant)
            due = plan(name, target, events, log, instant, every=every, again=again)
            send: Send | None = None
            if not dry_run:
                try:
                    send = sender_of(pipeline, name, settings)
                except ValueError as error:  # the other targets are sent their messages
                    wrong.append(str(error))
                    send = _refuse
            sent.append(
                one.planned(due) if send is None else one.deliver(due, send, waits_s, sleep)
            )
    if wrong:
        raise WrongTargetsError(wrong, sent)
    return sent


def _refuse(_: Message) -> None:
    """The way to a target that cannot be used: events wait until it can."""
    raise NotSentError("it cannot be used as it is declared", may_help=False)


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
        waits = (name in awake and of == "waiting" for (name, _), of in log.outcomes.items())
        return Due(found, waits=any(waits))


@dataclass(frozen=True)
class _Target:
    """A target that is notified now."""

    pipeline: Pipeline
    name: str
    target: Target
    log: Delivered
    now: datetime

    def planned(self, due: Plan) -> Sent:
        """What would be sent."""
        texts = tuple(title(self.pipeline, message) for message in due.messages)
        count = sum(len(message.events) for message in due.messages)
        held, aside = len(due.held), due.set_aside
        numbers = (count, due.old, due.unwanted, held)
        return Sent(self.name, texts, *numbers, due.reason, set_aside=aside)

    def deliver(
        self, due: Plan, send: Send, waits_s: Sequence[float], sleep: Callable[[float], None]
    ) -> Sent:
        """Sends due messages in order, and stops at the first that is not accepted.

        A message that is refused for its content is passed over. Once the target takes a later
        one, what was passed over is set aside; if it takes none, all of these messages wait. The
        outcome of a killed command is the same: it sends what was passed over again.
        """
        self.log.note(
            self._delivery(event, "skipped", reason=reason)
            for reason, skipped in due.skipped.items()
            for event in skipped
        )
        self._wait(due.released, "to be sent again")
        self._wait(due.held, due.reason)
        sent: list[Message] = []
        refused: list[tuple[Message, str]] = []
        aside: list[tuple[Message, str]] = []
        left, reason = list(due.messages), ""
        while left and len(refused) < _MOST_REFUSED:
            message = left.pop(0)
            try:
                _send(send, message, waits_s, sleep)
            except NotSentError as error:
                reason = str(error)
                if not error.of_content:
                    left.insert(0, message)
                    break
                left[:0] = message.halves
                if not message.halves:
                    refused.append((message, reason))
            else:
                # In one write: a killed command then sends all of them again.
                passed = [of for one, why in refused for of in self._of(one, "set aside", why)]
                self.log.note([*passed, *self._of(message, "sent")])
                sent.append(message)
                aside += refused
                refused = []
        waiting = [event for of, _ in refused for event in of.events]
        waiting += [event for message in left for event in message.events]
        self._wait(waiting, reason)
        return Sent(
            self.name,
            tuple(title(self.pipeline, message) for message in sent),
            sum(len(message.events) for message in sent),
            due.old,
            due.unwanted,
            len(waiting) + len(due.held),
            reason if waiting else due.reason,
            failed=bool(waiting),
            refused=tuple(f"{title(self.pipeline, of)}: {why}" for of, why in aside),
            set_aside=due.set_aside + sum(len(of.events) for of, _ in aside),
        )

    def _of(self, message: Message, outcome: Outcome, reason: str = "") -> list[Delivery]:
        return [self._delivery(event, outcome, message.id, reason) for event in message.events]

    def _delivery(
        self, event: AnyEvent, outcome: Outcome, message: str = "", reason: str = ""
    ) -> Delivery:
        at = self.now.isoformat()
        # The ids of other events are enough: a rebuild does not change them.
        digest = "" if event.correction is None else event.digest
        return Delivery(event.id, self.name, outcome, at, message, reason, digest)

    def _wait(self, left: Sequence[AnyEvent], reason: str) -> None:
        """Records events that wait, once: a recorded event is sent however old it is by then."""
        new = [event for event in left if self.log.outcome(self.name, event) != "waiting"]
        self.log.note(self._delivery(event, "waiting", reason=reason) for event in new)


def _send(
    send: Send, message: Message, waits_s: Sequence[float], sleep: Callable[[float], None]
) -> None:
    """Sends a message, in more than one attempt where that may help.

    Raises:
        NotSentError: No attempt succeeded.
    """
    for wait_s in (*waits_s, None):
        try:
            send(message)
        except NotSentError as error:
            if wait_s is None or not error.may_help:
                raise
            sleep(wait_s)
        else:
            return
