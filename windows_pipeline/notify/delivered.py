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

Outcome = Literal["sent", "skipped", "waiting"]
FILE = "_delivered.jsonl"
_PRIVATE = 0o666
"""The umask narrows this mode."""


class BusyError(ValueError):
    """Another command delivers messages of the pipeline; the message says what to do."""


@dataclass(frozen=True)
class Delivery:
    """The outcome of an event at a target.

    Attributes:
        id: The event.
        target: The target's name.
        outcome: Whether it was sent, is never sent, or waits; the age of a waiting event no longer
            counts.
        at: When the outcome was recorded.
        message: The id of the message with the event; empty without a message.
        attempts: How often the message was tried.
        reason: Why it was skipped or waits.
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
        done: The events that were sent or skipped, by target and id.
        waiting: The events that wait, by target and id.
        sent: The targets and ids of the events that were sent.
        of_corrections: The outcome of the events that a correction added, by target and digest.
        messages: When each message went out, by target and message.
        snoozed: Until when the events of a rule are not sent, by rule.
    """

    descriptor: int
    done: set[tuple[str, str]] = field(default_factory=set)
    waiting: set[tuple[str, str]] = field(default_factory=set)
    sent: set[tuple[str, str]] = field(default_factory=set)
    of_corrections: dict[tuple[str, str], Outcome] = field(default_factory=dict)
    messages: dict[tuple[str, str], datetime] = field(default_factory=dict)
    snoozed: dict[str, datetime] = field(default_factory=dict)

    def note(self, deliveries: Iterable[Delivery]) -> None:
        """Appends lines, and waits until they are on disk."""
        every = list(deliveries)
        self._append([asdict(one) for one in every])
        for one in every:
            self._add(one)

    def is_done(self, target: str, event: AnyEvent) -> bool:
        """Whether an event was sent or skipped."""
        return (target, event.id) in self.done or self._as_correction(target, event) is not None

    def was_sent(self, target: str, event: AnyEvent) -> bool:
        """Whether an event was sent."""
        return (target, event.id) in self.sent or self._as_correction(target, event) == "sent"

    def _as_correction(self, target: str, event: AnyEvent) -> Outcome | None:
        """What became of an event when a correction added it.

        A rebuild starts from the records: it gives the event a row without a correction's number,
        and so another id.
        """
        if event.correction is not None or not self.of_corrections:
            return None
        return self.of_corrections.get((target, event.digest))

    def snooze(self, rule: str, until: datetime, at: datetime) -> None:
        """Notes until when the events of a rule are not sent; the newest line counts."""
        self._append([{"snooze": rule, "until": until.isoformat(), "at": at.isoformat()}])
        self.snoozed[rule] = until

    def is_snoozed(self, rule: str, now: datetime) -> bool:
        """Whether the events of a rule are not sent now."""
        return rule in self.snoozed and now < self.snoozed[rule]

    def _append(self, lines: list[dict[str, Any]]) -> None:
        if not lines:
            return
        content = "".join(f"{json.dumps(line, sort_keys=True)}\n" for line in lines).encode()
        while content:
            content = content[os.write(self.descriptor, content) :]
        os.fsync(self.descriptor)

    def messages_since(self, target: str, instant: datetime) -> int:
        """How many messages a target got since an instant."""
        return sum(of == target and at > instant for (of, _), at in self.messages.items())

    def _add(self, one: Delivery) -> None:
        delivery = (one.target, one.id)
        if one.outcome == "waiting":
            self.waiting.add(delivery)
            return
        self.done.add(delivery)
        if one.digest:
            self.of_corrections[one.target, one.digest] = one.outcome
        if one.outcome == "sent":
            self.sent.add(delivery)
            self.messages[one.target, one.message] = datetime.fromisoformat(one.at)

    def read(self, content: bytes) -> None:
        """Reads the lines of the file; a killed command may have torn the last line."""
        for line in content.splitlines():
            try:
                found = json.loads(line)
                if "snooze" in found:
                    self.snoozed[found["snooze"]] = datetime.fromisoformat(found["until"])
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
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(path, flags, _PRIVATE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise BusyError(
                f"{path}: one command at a time delivers messages of a pipeline, and another is "
                "running; wait for its end"
            ) from None
        log = Delivered(descriptor)
        with os.fdopen(os.dup(descriptor), "rb") as file:
            file.seek(0)
            content = file.read()
        log.read(content)
        if content and not content.endswith(b"\n"):  # a killed command's line
            os.write(descriptor, b"\n")
        yield log
    finally:
        os.close(descriptor)
