"""The log of deliveries: what is asked of it is to read and to append lines, wherever they lie."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from windows_pipeline.notify.delivered import Delivered, Delivery, DeliveryLog, delivered_log
from windows_pipeline.notify.pipeline_events import PipelineEvent

NOW = datetime(2013, 3, 8, 18, tzinfo=UTC)
EVENT = PipelineEvent("e1", "failed", "run", NOW, "it failed", NOW)


class Rows:
    """A log without a file, as a table would be: rows of JSON, each write as a whole."""

    def __init__(self) -> None:
        self.writes: list[list[str]] = []

    def read(self) -> Iterable[dict[str, Any]]:
        return [json.loads(line) for lines in self.writes for line in lines]

    def append(self, lines: Iterable[Mapping[str, Any]]) -> None:
        self.writes.append([json.dumps(line) for line in lines])


def test_a_log_may_lie_anywhere() -> None:
    rows = Rows()
    log: DeliveryLog = rows
    before = Delivered(log)
    before.note([Delivery("e1", "chat", "waiting", NOW.isoformat(), reason="quiet")])
    before.note([])
    sent = Delivery("e1", "chat", "sent", NOW.isoformat(), message="m1")
    before.note([sent, Delivery("e2", "chat", "sent", NOW.isoformat(), message="m1")])
    assert [len(lines) for lines in rows.writes] == [1, 2]
    for found in (before, Delivered(log)):
        assert (found.outcome("chat", EVENT), found.outcome("mail", EVENT)) == ("sent", None)
        assert found.messages_since("chat", NOW - timedelta(hours=1)) == 1


@pytest.mark.parametrize("wrong", [b"{", b"[1]", b'{"id": "e1"}', b'{"snooze": "delays"}', b"\xff"])
def test_lines_that_are_none_of_the_log_are_passed_over(tmp_path: Path, wrong: bytes) -> None:
    """And a field that an earlier release, or a later one, wrote."""
    line = {"id": "e1", "target": "chat", "outcome": "sent", "at": NOW.isoformat(), "attempts": 2}
    (tmp_path / "_delivered.jsonl").write_bytes(wrong + b"\n" + json.dumps(line).encode() + b"\n")
    with delivered_log(str(tmp_path)) as found:
        assert found.outcome("chat", EVENT) == "sent"
