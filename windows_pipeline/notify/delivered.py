"""The log of what was delivered: a file of JSON lines in the pipeline's folder of the warehouse.

A line records the outcome of an event at a target, or that a rule is snoozed. The file only grows,
a line is on disk before the next message goes out, and one command at a time has the file open. So
a message is sent twice, with the same ids, only if a command is killed before it writes its line.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal

from windows_pipeline.notify.pipeline_events import AnyEvent
from windows_pipeline.notify.whole_lines import append_lines, cut_torn_end, opened, whole_lines

Outcome = Literal["sent", "skipped", "waiting", "set aside"]
FILE = "_delivered.jsonl"


class BusyError(ValueError):
    """Another command delivers messages of the pipeline; the message says what to do."""


@dataclass(frozen=True)
class Delivery:
    """The outcome of an event at a target.

    Attributes:
        id: The event.
        target: The target's name.
        outcome: Whether it was sent, is never sent, waits, or was set aside, as the target refuses
            its content; the age of a waiting event no longer counts.
        at: When the outcome was recorded.
        message: The id of the message with the event; empty without a message.
        attempts: How often the message was tried.
        reason: Why it was skipped or set aside, or waits.
        digest: Of an event that a correction added: its digest without the correction's number.
    """

    id: str
    target: str
    outcome: Outcome
    at: str
    message: str = ""
    attempts: int = 0
    reason: str = ""
    digest: str = ""


@dataclass
class Delivered:
    """The log, open for one command.

    Attributes:
        descriptor: The open file.
        outcomes: The newest outcome of each event, by target and id.
        of_corrections: That of the events that a correction added, by target and digest.
        messages: When each message went out, by target and message.
        snoozes: From when to when the events of a rule are not sent, by rule.
    """

    descriptor: int
    outcomes: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    of_corrections: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    messages: dict[tuple[str, str], datetime] = field(default_factory=dict)
    snoozes: dict[str, list[tuple[datetime, datetime]]] = field(default_factory=dict)

    def note(self, deliveries: Iterable[Delivery]) -> None:
        """Appends lines, and waits until they are on disk."""
        every = list(deliveries)
        self._append([asdict(one) for one in every])
        for one in every:
            self._add(one)

    def outcome(self, target: str, event: AnyEvent) -> Outcome | None:
        """What became of an event; None if nothing so far.

        A rebuild starts from the records: it gives an event that a correction added a row without
        a correction's number, and so another id.
        """
        found = self.outcomes.get((target, event.id))
        if found is None and event.correction is None and self.of_corrections:
            return self.of_corrections.get((target, event.digest))
        return found

    def snooze(self, rule: str, until: datetime, at: datetime) -> bool:
        """Notes until when the events of a rule are not sent, and ends the snooze before it.

        Args:
            rule: The rule.
            until: The instant; one that has passed only ends the snooze.
            at: The time.

        Returns:
            Whether the rule was snoozed at that time.
        """
        was_snoozed = self.is_snoozed(rule, at)
        if was_snoozed or until > at:
            self._append([{"snooze": rule, "until": until.isoformat(), "at": at.isoformat()}])
            self._add_snooze(rule, until, at)
        return was_snoozed

    def is_snoozed(self, rule: str, at: datetime) -> bool:
        """Whether a rule was snoozed at an instant."""
        return any(first <= at < end for first, end in self.snoozes.get(rule, ()))

    def _append(self, lines: list[dict[str, Any]]) -> None:
        if lines:
            content = "".join(f"{json.dumps(line, sort_keys=True)}\n" for line in lines)
            append_lines(self.descriptor, content.encode())

    def messages_since(self, target: str, instant: datetime) -> int:
        """How many messages a target got since an instant."""
        return sum(of == target and at > instant for (of, _), at in self.messages.items())

    def _add(self, one: Delivery) -> None:
        self.outcomes[one.target, one.id] = one.outcome
        if one.digest:
            self.of_corrections[one.target, one.digest] = one.outcome
        if one.outcome == "sent":
            self.messages[one.target, one.message] = datetime.fromisoformat(one.at)

    def _add_snooze(self, rule: str, until: datetime, at: datetime) -> None:
        before = [(first, min(end, at)) for first, end in self.snoozes.get(rule, ())]
        self.snoozes[rule] = [*before, (at, until)]

    def read(self, content: bytes) -> None:
        """Reads the lines of the file."""
        for line in whole_lines(content):
            try:
                found = json.loads(line)
                if "snooze" in found:
                    until, at = (datetime.fromisoformat(found[name]) for name in ("until", "at"))
                    self._add_snooze(found["snooze"], until, at)
                else:
                    self._add(Delivery(**found))
            except (ValueError, TypeError, KeyError):
                continue


@contextmanager
def delivered_log(folder: str) -> Iterator[Delivered]:
    """Opens the log of a pipeline, alone.

    Args:
        folder: The pipeline's folder of the warehouse, which exists.

    Raises:
        BusyError: Another command has it open.
    """
    path = f"{folder}/{FILE}"
    with opened(path) as descriptor:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(
                f"{path}: one command at a time delivers messages of a pipeline, and another is "
                "running; wait for its end"
            ) from None
        cut_torn_end(descriptor)  # a killed command's line
        log = Delivered(descriptor)
        with os.fdopen(os.dup(descriptor), "rb") as file:
            file.seek(0)
            log.read(file.read())
        yield log
