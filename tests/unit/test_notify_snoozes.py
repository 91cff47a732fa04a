"""A snooze is of what is published while it holds (rule E6), whenever anybody is notified."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import combinations
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from tests.support.notified import DAY, NOW, SINCE, Notified, set_commit_time
from tests.support.pipeline_texts import FLIGHTS
from tests.support.written_tables import write_rows
from windows_pipeline.notify import snooze
from windows_pipeline.storage.catalog import firing_tables, notifications

HOUR = timedelta(hours=1)
SNOOZED, OVER, END = NOW + HOUR, NOW + 3 * HOUR, NOW + 5 * HOUR
UP = "  people: {file: people.ndjson}\n"
QUIET = "  people: {file: people.ndjson, quiet: {hours: 00:00-04:00, zone: UTC}}\n"
DOWN = "  people: {command: [/nowhere]}\n"
SENT = [
    ("A", "opened"),  # before the snooze
    ("A", "ended"),  # within it, of what the target heard of
    ("B", "worsened"),  # after it, of an episode that opened within it
    ("B", "ended"),
    ("C", "opened"),
    ("D", "ended"),  # after the snooze, though nothing was sent of its episode
]


def lines_of(made: Notified, target: str = "people") -> list[tuple[str, str]]:
    """The events that a target of the way `file` got, in the order of keys and events."""
    path = Path(made.settings.warehouse) / "flights" / f"{target}.ndjson"
    lines = path.read_text().splitlines() if path.exists() else []
    sent = [event for line in lines for event in json.loads(line)["events"]]
    order = ["opened", "worsened", "ended", "retracted"]
    return sorted(
        ((event["key"], event["event"]) for event in sent),
        key=lambda one: (one[0], order.index(one[1])),
    )


def happen(made: Notified, at: datetime, *events: str) -> None:
    """Publishes events, each as its key and event."""
    made.clock = at
    made.happen(
        *({"key": key, "event": event} for key, event in (of.split() for of in events)),
        {"key": "Z", "rule": "quiet", "event": "worsened"},  # of another rule
    )


def ends_by_itself(made: Notified, rule: str) -> None:
    snooze(made.pipeline, made.settings, rule, OVER, SNOOZED)


def ends_early(made: Notified, rule: str) -> None:
    snooze(made.pipeline, made.settings, rule, END + HOUR, SNOOZED)


def is_made_shorter(made: Notified, rule: str) -> None:
    snooze(made.pipeline, made.settings, rule, SNOOZED + HOUR / 2, SNOOZED)


@pytest.mark.parametrize("targets", [UP, QUIET, DOWN, ""], ids=["up", "quiet", "down", "new"])
@pytest.mark.parametrize("begins", [ends_by_itself, ends_early, is_made_shorter])
def test_all_orders_give_the_same_messages(
    tmp_path: Path, targets: str, begins: Callable[[Notified, str], None]
) -> None:
    """A target that is notified at any times, is in quiet hours, down, or new in the end."""
    other = "  other: {file: other.ndjson}\n"
    for number, notified in enumerate([(), (0, 1, 2, 3), *combinations(range(4), 1), (1, 2)]):
        made = Notified(tmp_path / str(number), other + targets)
        (tmp_path / str(number)).mkdir()

        def perhaps(
            step: int, at: datetime, made: Notified = made, at_steps: tuple[int, ...] = notified
        ) -> None:
            if step in at_steps:
                made.commands = ("/nowhere",)
                made.deliver(at, waits_s=())

        happen(made, NOW, "A opened")
        perhaps(0, NOW)
        begins(made, "disruption")
        if begins is is_made_shorter:  # or longer: the newest `until` counts from then on
            snooze(made.pipeline, made.settings, "disruption", OVER, SNOOZED + HOUR / 4)
        perhaps(1, SNOOZED + HOUR / 2)
        happen(made, SNOOZED + HOUR, "A worsened", "A ended", "B opened", "D opened")
        perhaps(2, SNOOZED + HOUR)
        if begins is ends_early:
            snooze(made.pipeline, made.settings, "disruption", NOW, OVER)
        happen(made, OVER, "B worsened", "B ended", "C opened", "D ended")
        perhaps(3, OVER)
        made.targets = other + UP
        made.deliver(END)
        assert [of for of in lines_of(made) if of[0] != "Z"] == SENT, notified
        assert [of for of in lines_of(made, "other") if of[0] != "Z"] == SENT, notified
        assert len(lines_of(made)) == len(SENT) + 3


def maintained(table: str) -> None:
    DeltaTable(table).optimize.compact()


def computed_again(table: str) -> None:
    rows = DeltaTable(table).to_pyarrow_table()
    write_deltalake(table, rows.slice(0, 0), mode="overwrite")
    write_deltalake(table, rows, mode="append")
    set_commit_time(Path(table), END)


def both(table: str) -> None:
    computed_again(table)
    maintained(table)
    DeltaTable(table).create_checkpoint()


@pytest.mark.parametrize("written_again", [maintained, computed_again, both])
def test_a_row_that_is_written_again_was_published_before(
    tmp_path: Path, written_again: Callable[[str], None]
) -> None:
    made = Notified(tmp_path, UP)
    spec = notifications(made.pipeline, "hourly", made.settings.warehouse)
    assert spec is not None
    made.happen({"key": "A"})
    snooze_of = (made.pipeline, made.settings, "disruption")
    snooze(*snooze_of, OVER, SNOOZED)
    made.clock = SNOOZED + HOUR
    made.happen({"key": "B"})
    snooze(*snooze_of, END + HOUR, OVER + HOUR)  # of a second snooze the rows know nothing
    written_again(spec.location)
    made.deliver(END)
    assert lines_of(made) == [("A", "opened")]


def test_a_snooze_leaves_no_incident_open(tmp_path: Path) -> None:
    """What closes an episode is sent where its opening was, or may be sent still."""
    made = Notified(tmp_path, f"{UP}  severe: {{file: severe.ndjson, min_severity: 80}}\n")
    old = {"arrival_unit": DAY - timedelta(days=9), "key": "old"}
    worse = {"key": "A", "event": "worsened", "severity": 90.0}
    made.happen({"key": "A"}, worse, {"key": "B"}, old)
    snooze(made.pipeline, made.settings, "disruption", OVER, SNOOZED)
    made.deliver(SNOOZED)
    made.clock = SNOOZED + HOUR
    made.retract("id3")
    made.happen(
        {"key": "A", "event": "ended", "severity": 90.0},
        {"key": "B", "event": "retracted", "correction": 1},
        {**old, "event": "ended", "arrival_unit": DAY},
    )
    made.deliver(SNOOZED + HOUR)
    of_b = [("B", "opened"), ("B", "retracted")]
    of_a = [("A", "opened"), ("A", "worsened"), ("A", "ended")]
    assert lines_of(made) == of_a + of_b
    assert lines_of(made, "severe") == of_a[1:]
    made.deliver(END, every=True)
    assert lines_of(made) == [*of_a, *of_b, ("old", "opened"), ("old", "ended")]


def test_early_warnings_are_snoozed_as_well(tmp_path: Path) -> None:
    """And their end is sent to who was warned."""
    text = FLIGHTS.replace("    aggregates:\n", "    trigger: {}\n    aggregates:\n")
    targets = "  people: {file: people.ndjson, events: [warned, withdrawn]}\n"
    made = Notified(tmp_path, targets, text=text)
    tables = firing_tables(made.pipeline, "hourly", made.settings.warehouse)
    assert tables is not None
    assert tables.early_warnings is not None
    row = {
        "arrival_unit": DAY, "rule": "disruption", "window_start": SINCE,
        "window_end": SINCE + HOUR, "record_count": 11, "avg_dep_delay": 60.5,
        "severity": 60.5, "failed": [],
    }  # fmt: skip
    Path(made.settings.warehouse, "flights").mkdir(parents=True)
    snooze(made.pipeline, made.settings, "disruption", OVER, SNOOZED)
    for at, states in (
        (NOW, [("A", "open")]),
        (SNOOZED, [("A", "withdrawn"), ("B", "open"), ("B", "withdrawn")]),
        (OVER, [("C", "open")]),
    ):
        write_rows(tables.early_warnings, [{**row, "key": key, "state": of} for key, of in states])
        set_commit_time(Path(tables.early_warnings.location), at)
    assert made.deliver(END)["people"].events == 3
    path = Path(made.settings.warehouse) / "flights" / "people.ndjson"
    sent = [event for line in path.open() for event in json.loads(line)["events"]]
    assert [(event["key"], event["event"]) for event in sent] == [
        ("A", "warned"), ("A", "withdrawn"), ("C", "warned"),
    ]  # fmt: skip


def test_only_a_rule_of_a_pipeline_with_tables_is_snoozed(tmp_path: Path) -> None:
    made = Notified(tmp_path, UP)
    with pytest.raises(ValueError, match="flights: must have tables, but has none in"):
        snooze(made.pipeline, made.settings, "disruption", NOW)
    made.happen({})
    with pytest.raises(ValueError, match="RULE: 'quite' is not an alert rule of flights; did you"):
        snooze(made.pipeline, made.settings, "quite", NOW)
