"""Messages that a target refuses for their content: set aside once it takes a later one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests.support.notified import NOW, Notified
from tests.support.receivers import Receiver, mail_server, receiver


@pytest.fixture
def hook() -> Iterator[Receiver]:
    with receiver() as running:
        yield running


def project(folder: Path, hook: Receiver, more: str = "") -> Notified:
    return Notified(folder, f"  people:\n    webhook: {{url: '{hook.url}'}}\n{more}")


def taken(hook: Receiver) -> list[str]:
    return [key for key, _ in hook.events]


@pytest.mark.parametrize(
    ("answers", "took", "waiting", "aside"),
    [
        # Nothing else passes, nothing passes later, or all are refused: the queue holds.
        ([400, 500, 500, 500], [], "ABC", ""),
        ([200, 200, 413], "AB", "C", ""),
        ([422, 400, 413], [], "ABC", ""),
        # A later message passes.
        ([400, 200, 200], "BC", "", "A"),
        ([413, 422, 200], "C", "", "AB"),
        ([400, 200, 400], "B", "C", "A"),
        ([400, 200, 404], "B", "C", "A"),
        # What says nothing of the content holds the queue, whatever passes.
        ([401], [], "ABC", ""),
        ([403], [], "ABC", ""),
        ([200, 404], "A", "BC", ""),
        ([200, 429, 429, 429], "A", "BC", ""),
    ],
)
def test_a_refused_message_is_set_aside_once_a_later_one_passes(
    tmp_path: Path, hook: Receiver, answers: list[int], took: str, waiting: str, aside: str
) -> None:
    made = project(tmp_path, hook)
    made.happen({"key": "A"}, {"key": "B"}, {"key": "C"})
    hook.answers = list(answers)
    sent = made.deliver()["people"]
    assert taken(hook) == list(took)
    assert (sent.waiting, sent.set_aside, len(sent.refused)) == (
        len(waiting), len(aside), len(aside),
    )  # fmt: skip
    assert sent.failed == bool(waiting)
    # The next command sends what waits, and nothing that was set aside.
    week = NOW + timedelta(days=7)
    would = made.deliver(week, dry_run=True)["people"]
    assert (would.events, would.set_aside) == (len(waiting), len(aside))
    sent = made.deliver(week)["people"]
    assert taken(hook) == [*took, *waiting]
    assert (sent.set_aside, sent.refused, sent.failed) == (len(aside), (), False)
    # Sent again, once.
    assert made.deliver(week, again=True, dry_run=True)["people"].events == len(aside)
    sent = made.deliver(week, again=True)["people"]
    assert (sent.events, sent.set_aside) == (len(aside), 0)
    assert taken(hook) == [*took, *waiting, *aside]
    assert made.deliver(week, again=True)["people"].events == 0


def test_what_is_sent_again_waits_like_any_other(tmp_path: Path, hook: Receiver) -> None:
    """Until it is taken, or is refused again while another passes."""
    made = project(tmp_path, hook)
    made.happen({"key": "A"}, {"key": "B"})
    hook.answers = [400]
    (refused,) = made.deliver()["people"].refused
    assert refused.startswith("flights hourly: disruption opened for A since")
    assert refused.endswith(": answered 400")
    hook.answers = [404]
    sent = made.deliver(again=True)["people"]
    assert (sent.waiting, sent.set_aside) == (1, 0)
    made.happen({"key": "C"})
    hook.answers = [422]
    sent = made.deliver()["people"]
    assert (sent.waiting, sent.set_aside, taken(hook)) == (0, 1, ["B", "C"])
    assert made.deliver(again=True)["people"].events == 1


def test_a_joined_message_that_is_refused_is_sent_in_parts(tmp_path: Path, hook: Receiver) -> None:
    """A receiver may refuse it for its size, or for a single event; all others pass."""
    made = project(tmp_path, hook, "    group: 1\n")
    made.happen(*({"key": key} for key in "ABCDE"))
    # ABCDE, AB, CDE, C, DE
    hook.answers = [413, 200, 400, 400, 200]
    sent = made.deliver()["people"]
    assert (taken(hook), sent.set_aside, sent.waiting) == (list("ABDE"), 1, 0)
    made.happen(*({"key": key} for key in "FG"))
    hook.answers = [413] * 3
    sent = made.deliver()["people"]
    assert (sent.set_aside, sent.waiting) == (1, 2)


def test_a_correction_takes_back_what_was_set_aside(tmp_path: Path, hook: Receiver) -> None:
    made = project(tmp_path, hook)
    made.happen({"key": "A"}, {"key": "B"})
    hook.answers = [400]
    assert made.deliver()["people"].set_aside == 1
    made.retract("id1")
    assert made.deliver()["people"].set_aside == 0
    assert made.deliver(again=True)["people"].events == 0


def test_a_command_that_is_killed_sets_aside_again(tmp_path: Path, hook: Receiver) -> None:
    """Cut anywhere in what it wrote, the next command comes to the same outcome."""
    made = project(tmp_path, hook)
    made.happen({"key": "A"}, {"key": "B"})
    hook.answers = [400]
    made.deliver()
    written = made.log.read_bytes()
    for size in range(0, len(written), 97):
        made.log.write_bytes(written[:size])
        hook.answers = [400] if written[:size].count(b"\n") == 0 else []
        made.deliver()
        lines = [json.loads(line) for line in made.log.read_bytes().splitlines()]
        assert [(line["id"], line["outcome"]) for line in lines] == [
            ("id1", "set aside"), ("id2", "sent"),
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "aside", "waiting"), [(["554 spam"], 1, 0), (["451 later"] * 3, 0, 2)]
)
def test_a_mail_that_is_refused_for_good_is_set_aside(
    tmp_path: Path, answers: list[str], aside: int, waiting: int
) -> None:
    with mail_server() as box:
        email = (
            f"{{host: 127.0.0.1, port: {box.port}, starttls: false, from: a@b.org, to: [c@d.org]}}"
        )
        made = Notified(tmp_path, f"  people:\n    email: {email}\n")
        made.happen({"key": "A"}, {"key": "B"})
        box.answers = list(answers)
        sent = made.deliver()["people"]
        assert (sent.set_aside, sent.waiting) == (aside, waiting)
        assert made.deliver(again=True)["people"].events == aside + waiting
    assert len(box.mails) == 2
