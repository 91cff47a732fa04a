"""The commands of windows-pipeline that pages have run, on one small project."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from tests.support.alert_ids import digest
from tests.support.command_line import call
from tests.support.doc_blocks import COMMANDS, PAGES, ROOT, blocks_of
from tests.support.doc_commands import Command, commands_of, parsed
from windows_pipeline.settings import Settings

DAYS = ("2013-01-01", "2013-01-02", "2013-01-03")
# Pages name days, keys and files of their own; these are the project's. None: left out, as the
# command would not end.
VALUES: dict[str, object] = {
    "pipeline": "flights",
    "windows": "hourly",
    "first": DAYS[0],
    "last": DAYS[1],
    "day": DAYS[2],
    "key": "LGA",
    "window_end": "2013-01-01 10:55:00",
    "event_time": "2013-01-01 10:55",
    "alert": digest(
        [
            *("flights", "hourly", "disruption", ["LGA"]),
            *("2013-01-01T09:55:00.000Z", "2013-01-01T10:55:00.000Z", None),
        ]
    ),
    "rule": "disruption",
    "every": None,
    "cause": "source fixed",
}
OF_FILES = {**VALUES, "files": ["pipelines/flights.yaml"]}
OF_A_STREAM = {**VALUES, "pipeline": "followed"}
# A pipeline of a sample, which is made once whatever pages call it.
OF_A_SAMPLE = {**VALUES, "name": "payments", "source": "payments.csv", "key": "card"}
FIRST = ("new", "validate", "run", "stream", "check")
LAST = ("correct", "rebuild", "maintain", "forget")


def departure(departed_at: datetime, minutes: int, delay: float) -> str:
    """A line of a flight that landed some minutes later."""
    instants = {
        "departed_at": departed_at.isoformat(),
        "landed_at": (departed_at + timedelta(minutes=minutes)).isoformat(),
    }
    values = {"carrier": "UA", "flight": 7, "dest": "MIA", "arr_delay": delay, "distance": 1_000}
    return json.dumps({"origin": "LGA", **instants, **values, "dep_delay": delay})


def land(folder: Path) -> None:
    """Twelve late departures of an hour; a day later one more; on the last day one that is late."""
    nine = datetime(2013, 1, 1, 10, 0, tzinfo=UTC)
    days = [
        [departure(nine + timedelta(minutes=5 * number), 60, 90.0) for number in range(12)],
        [departure(nine + timedelta(days=1), 60, 0.0), "no JSON"],
        [departure(nine + timedelta(hours=1), 60, 0.0)],
    ]
    for day, lines in zip(DAYS, days, strict=True):
        (folder / day).mkdir(parents=True)
        (folder / day / "flights.jsonl").write_text("\n".join(lines))


def sample(file: Path) -> None:
    """Payments of a few cards, a minute apart, each received five seconds later."""
    noon = datetime(2026, 11, 20, 12, tzinfo=UTC)
    lines = ["order_id,card,amount,paid_at,received_at"]
    for number in range(200):
        paid = noon + timedelta(minutes=number)
        received = paid + timedelta(seconds=5)
        lines.append(f"o{number:06},card-{number % 4},{number}.50,{paid:%FT%TZ},{received:%FT%TZ}")
    file.write_text("\n".join(lines))


@pytest.fixture
def in_project(tmp_path: Path, small_settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the flights pipeline, and one of another name that follows its files."""
    settings = small_settings.model_dump(mode="json")
    settings |= {"warehouse": "warehouse", "landing": ".", "pipelines": "pipelines"}
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump(settings))
    flights = yaml.safe_load((ROOT / "pipelines" / "flights.yaml").read_text())
    flights["windows"] = {"hourly": flights["windows"]["hourly"]}
    # Of so few records a rejected one or a late one is already a large share.
    flights["limits"] = {"rejected": "90 %", "late": "100 %"}
    flights["notify"] = {"people": {"file": "sent.jsonl"}}
    (tmp_path / "pipelines").mkdir()
    for name in ("flights", "followed"):
        text = yaml.safe_dump({**flights, "name": name})
        (tmp_path / "pipelines" / f"{name}.yaml").write_text(text)
    land(tmp_path / "data" / "flights")
    sample(tmp_path / "payments.csv")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def commands() -> list[Command]:
    """The commands of windows-pipeline in all pages."""
    found = [
        command
        for page in PAGES
        for block in blocks_of(page)
        if block.language in COMMANDS
        for command in commands_of(block)
    ]
    return [
        command
        for command in found
        if command.program == "windows-pipeline" and "--help" not in command.words
    ]


def calls() -> list[tuple[str, ...]]:
    """The different calls of the project, in an order in which each finds what it needs."""

    def sort_key(arguments: tuple[str, ...]) -> int:
        name = arguments[0]
        if name in FIRST:
            return FIRST.index(name)
        return len(FIRST) + (LAST.index(name) + 1 if name in LAST else 0)

    values_of = {"stream": OF_A_STREAM, "new": OF_A_SAMPLE, "validate": OF_FILES}
    found: list[tuple[str, ...]] = []
    for asked in map(parsed, commands()):
        arguments = tuple(asked.with_values(values_of.get(asked.name, VALUES)))
        if arguments[0] != "new" or all(one[0] != "new" for one in found):
            found.append(arguments)
    return sorted(dict.fromkeys(found), key=sort_key)


def test_the_commands_of_the_pages_end_well(
    in_project: Path,
    settings: Settings,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each ends with exit status 0, on data in which there is something for it to do."""
    del settings  # the session's: it has started
    assert {"run", "stream"} <= {arguments[0] for arguments in calls()}
    for arguments in calls():
        status, said = call(capfd, monkeypatch, *arguments)
        assert (status, "error: " in said) == (0, False), f"{arguments}: {said}"
        if arguments[0] == "trace":
            assert len(re.findall(r"\bUA\b", said)) == 12
    assert (in_project / "warehouse" / "flights" / "raw_events").is_dir()
