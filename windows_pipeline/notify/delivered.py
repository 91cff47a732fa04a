"""What was delivered, by a log that only grows.

A line records the outcome of an event at a target. It is stored before the next message goes out,
and one command at a time has the log. So a message is sent twice, with the same ids, only if a
command is killed before it stores its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, Literal, Protocol

from windows_pipeline.notify.pipeline_events import AnyEvent
from windows_pipeline.notify.whole_lines import alone

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
        reason: Why it was skipped or set aside, or waits.
        digest: Of an event that a correction added: its digest without the correction's number.
    """

    id: str
    target: str
    outcome: Outcome
    at: str
    message: str = ""
    reason: str = ""
    digest: str = ""


_FIELDS = {field.name for field in fields(Delivery)}


class DeliveryLog(Protocol):
    """A log that one command has alone."""

    def read(self) -> Iterable[dict[str, Any]]:
        """The lines so far, the oldest first."""

    def append(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Adds lines, all or none; they are stored on return."""


class Delivered:
    """What the lines of a log say.

    Attributes:
        outcomes: The newest outcome of each event, by target and id.
        of_corrections: That of the events that a correction added, by target and digest.
        messages: When each message went out, by target and message.
    """

    def __init__(self, log: DeliveryLog) -> None:
        """Reads a log; lines that are none of it are passed over, and fields of other releases."""
        self._log = log
        self.outcomes: dict[tuple[str, str], Outcome] = {}
        self.of_corrections: dict[tuple[str, str], Outcome] = {}
        self.messages: dict[tuple[str, str], datetime] = {}
        for line in log.read():
            try:
                self._add(Delivery(**{name: line[name] for name in _FIELDS & line.keys()}))
            except (ValueError, TypeError):
                continue

    def note(self, deliveries: Iterable[Delivery]) -> None:
        """Adds lines to the log; they are stored on return."""
        every = list(deliveries)
        if every:
            self._log.append([asdict(one) for one in every])
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

    def messages_since(self, target: str, instant: datetime) -> int:
        """How many messages a target got since an instant."""
        return sum(of == target and at > instant for (of, _), at in self.messages.items())

    def _add(self, one: Delivery) -> None:
        self.outcomes[one.target, one.id] = one.outcome
        if one.digest:
            self.of_corrections[one.target, one.digest] = one.outcome
        if one.outcome == "sent":
            self.messages[one.target, one.message] = datetime.fromisoformat(one.at)


@contextmanager
def delivered_log(folder: str) -> Iterator[Delivered]:
    """Opens the log of a pipeline, alone.

    Args:
        folder: The pipeline's folder of the warehouse, which exists.

    Raises:
        BusyError: Another command has it open.
    """
    path = f"{folder}/{FILE}"
    with ExitStack() as opened:
        try:
            log = opened.enter_context(alone(path))
        except BlockingIOError:
            raise BusyError(
                f"{path}: one command at a time delivers messages of a pipeline, and another is "
                "running; wait for its end"
            ) from None
        yield Delivered(log)
