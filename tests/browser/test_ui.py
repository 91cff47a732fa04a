"""What a user does and sees in the Dagster UI of `make ui`, in a real browser: `make browser`.

The tests share a project, whose days they materialize one after another.
"""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from deltalake import DeltaTable

from tests.browser.conftest import OWN_CHECK, Shared
from tests.browser.dagster_pages import DagsterPages, instant_text
from tests.browser.waiting import wait_until
from tests.support.pipelines import DERIVED, SELECTED, Project, day
from tests.support.stored_rows import named_rows
from windows_pipeline.storage.table import Table
from windows_pipeline.storage.tables import tables_of

OF_SOURCE = ("raw_events", "rejected_records", "arrival_log")
WITH_RULES = ("raw_events", "hourly/keyed_windows", "hourly/final_windows", "hourly/firings")
"""The assets whose only check is that of their table's rules."""
GRACE = timedelta(hours=6)
HOUR = timedelta(hours=1)
_FILLED_S = 240
"""How long a definition may take to be filled, the sensor's ticks included."""


def of_firings(project: Project) -> list[Table]:
    """The tables firings and early_warnings."""
    tables = tables_of(project.pipeline, project.settings.warehouse).of("hourly")
    return tables.of_firings


def landed(project: Project, of_day: date) -> list[dict[str, Any]]:
    """The records of a day but those of diverted flights, which are rejected."""
    lines = landed_file(project, of_day).read_text().splitlines()
    records: list[dict[str, Any]] = [json.loads(line) for line in lines]
    return [record for record in records if record["landed_at"] is not None]


def landed_file(project: Project, of_day: date) -> Path:
    return project.folder / "data/flights" / str(of_day) / "flights.jsonl"


def departed(record: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(record["departed_at"])


def shows_landed(pages: DagsterPages, project: Project, newest: date) -> None:
    """What is said of a day is what has landed: its records, and how far they close windows."""
    records = landed(project, newest)
    pages.open_day("raw_events", newest)
    pages.shows_metadata("dagster/partition_row_count", str(len(records)))
    pages.open_day("hourly/final_windows", newest)
    pages.shows_metadata("closed_through", instant_text(max(map(departed, records)) - GRACE))


@pytest.mark.smoke
def test_a_backfill_by_clicks_is_shown_as_it_is(two_days: Project, pages: DagsterPages) -> None:
    """The graph has every table; each day has its checks, its numbers and its plots."""
    pages.open_graph()
    for asset in (*OF_SOURCE, *DERIVED, "notifications", "corrections"):
        pages.shows_asset(asset)
    for asset in ("firings", "early_warnings"):
        pages.shows_asset(asset)
    for asset in WITH_RULES:
        pages.shows_asset(asset.split("/")[-1], "1 / 1 Passed")
    for asset in WITH_RULES:
        pages.shows_passed(asset, ["rules"])
        for arrived in (day(1), day(2)):
            pages.shows_passed_day(asset, "rules", arrived)
    shows_landed(pages, two_days, day(2))
    pages.open_day("hourly/alerts", day(2))
    pages.shows_plot("alerts")
    for arrived in (day(1), day(2)):
        pages.open_day("raw_events", arrived)
        pages.shows_plot("lateness")


@pytest.mark.usefixtures("two_days")
def test_lineage_leads_from_raw_records_to_messages(pages: DagsterPages) -> None:
    """An asset's tab Lineage has what it is made of, and what is made of it, and no other asset.

    Dagster draws the lineage of columns in its paid version only, so the description of a column
    names the columns of raw_events of which it is made.
    """
    made_of = ("raw_events", "arrival_log", "rejected_records", "keyed_windows", "final_windows")
    pages.open_lineage("hourly/notifications")
    pages.shows_asset("alerts")
    pages.shows_no_asset("keyed_windows")
    pages.look("Upstream")
    for asset in (*made_of, "early_warnings", "alerts", "notifications"):
        pages.shows_asset(asset)
    pages.shows_no_asset("corrections")

    pages.open_lineage("raw_events")
    pages.shows_asset("source")
    pages.look("Downstream")
    for asset in ("raw_events", *DERIVED, "corrections", "firings", "notifications"):
        pages.shows_asset(asset)
    pages.shows_no_asset("arrival_log")

    for column, description in {
        "key": "the source's column origin (from raw_events: key)",
        "avg_dep_delay": "avg(dep_delay) (from raw_events: dep_delay)",
        "total_distance": "sum(distance) (from raw_events: distance)",
        "window_end": "last instant of the window (from raw_events: event_time)",
    }.items():
        pages.shows_column("hourly/alerts", column, description)


def test_an_alert_leads_to_its_records(
    two_days: Project, shared_ui: Shared, pages: DagsterPages
) -> None:
    """Rule E5: the command that a rule's check shows prints the records of the worst window.

    The landed files, read by hand, have the same records.
    """
    alerts = [row for row in named_rows(two_days.windows.alerts) if row["arrival_unit"] == day(2)]
    worst = max(alerts, key=lambda row: float(row["severity"]))
    pages.open_failed_day("hourly/alerts", "alert_disruption", day(2), "warning_outline")
    assert pages.value("rule") == "record_count >= 10 and avg_dep_delay > 60"
    (episode,) = pages.rows("worst_episodes")
    assert episode["key"] == worst["key"]
    assert instant(episode["from"]) == worst["episode_start"]
    assert instant(episode["to"]) == max(row["window_end"] for row in alerts)
    assert episode["severity"] == f"{round(worst['severity'], 3):g}"
    records = [
        record
        for number in (1, 2)
        for record in landed(two_days, day(number))
        if record["origin"] == worst["key"]
        and worst["window_end"] - HOUR <= departed(record) <= worst["window_end"]
    ]
    delays = [record["dep_delay"] for record in records]
    assert len(records) == worst["record_count"] >= 10
    assert f"avg_dep_delay={round(sum(delays) / len(delays), 3):g}" in episode["worst window"]

    lines = shared_ui.call(episode["trace"]).splitlines()
    table = lines.index("records") + 2
    columns = [
        part
        for name in lines[table].split()
        for part in ([f"day of {name}", name] if name in ("event_time", "landed_at") else [name])
    ]
    traced = [dict(zip(columns, line.split(), strict=False)) for line in lines[table + 2 :]]
    assert Counter(
        (
            instant(f"{row['day of event_time']} {row['event_time']}"),
            row["carrier"],
            row["flight"],
            float(row["dep_delay"]),
        )
        for row in traced
        if row
    ) == Counter(
        (departed(record), record["carrier"], str(record["flight"]), record["dep_delay"])
        for record in records
    )


def instant(text: str) -> datetime:
    """The instant that a page or a command writes in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_a_sensor_that_is_switched_on_delivers_each_message_once(
    two_days: Project, shared_ui: Shared, pages: DagsterPages
) -> None:
    """Rule E6: the daemon's tick starts the run that notifies of each opened episode, once.

    From the state that this tick left, another one would start nothing, and the command finds
    nothing to send.
    """
    received = shared_ui.received
    assert received.bodies == []
    pages.open_sensor("flights_notify")
    pages.switch(on=True)
    pages.follow_tick()
    opened = Counter(
        (row["rule"], row["key"], row["episode_start"])
        for row in named_rows(two_days.windows.alerts)
    )
    sent = [event for body in received.bodies for event in body["events"]]
    assert {event["event"] for event in sent} == {"opened"}
    assert Counter(
        (event["rule"], event["key"], datetime.fromisoformat(event["since"])) for event in sent
    ) == Counter(dict.fromkeys(opened, 1))
    assert received.ids == [body["id"] for body in received.bodies]

    pages.open_sensor("flights_notify")
    pages.switch(on=False)
    version = DeltaTable(str(two_days.folder / "warehouse/flights/hourly/notifications")).version()
    pages.preview_tick(json.dumps({"flights/hourly/notifications": version}))
    pages.shows_text("nothing happened to an episode of alerts since the last run")
    assert "0 messages of 0 events" in shared_ui.call("windows-pipeline notify flights")
    assert len(received.bodies) == len(received.ids) == len(opened)


def test_one_day_by_clicks_is_shown_as_it_is(
    three_days: Project, pages: DagsterPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pages of a day that was materialized by itself say what the files and tables hold."""
    shows_landed(pages, three_days, day(3))
    tables_hold_what_is_shown(pages, three_days)
    instance_knows_the_runs(three_days, monkeypatch)


def tables_hold_what_is_shown(pages: DagsterPages, project: Project) -> None:
    """Each day has the rows and the version that its page shows."""
    firings = of_firings(project)[0]
    for table in (project.windows.final_windows, project.windows.alerts, firings):
        rows = Counter(row["arrival_unit"] for row in named_rows(table, ["arrival_unit"]))
        name = table.name.removeprefix("flights/")
        assert rows, name
        pages.shows_storage(name, table.location)
        pages.open_day(name, day(3))
        pages.shows_metadata("delta_version", str(DeltaTable(table.location).version()))
        for shown in (day(1), day(2), day(3)):
            pages.open_day(name, shown)
            pages.shows_metadata("dagster/partition_row_count", str(rows[shown]))
    raw = Counter(row["arrival_unit"] for row in named_rows(project.source.raw_events))
    assert raw == {day(number): len(landed(project, day(number))) for number in (1, 2, 3)}


def instance_knows_the_runs(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The range was one run, the day after it another; each table has its days.

    Those that a step writes beside its first one have the days with rows.
    """
    home = project.folder / ".dagster_home"
    monkeypatch.setenv("DAGSTER_HOME", str(home))
    days = {str(day(number)) for number in (1, 2, 3)}
    with dg.DagsterInstance.from_config(str(home)) as instance:
        runs = [run for run in instance.get_runs() if run.asset_selection]
        assert [run.status for run in runs] == [dg.DagsterRunStatus.SUCCESS] * 2
        of_windows = [*project.windows.of_every_definition, *of_firings(project)]
        for table in [*project.source.of_source, *of_windows]:
            key = dg.AssetKey(table.name.split("/"))
            with_rows = {str(row["arrival_unit"]) for row in named_rows(table, ["arrival_unit"])}
            is_main = key.path[-1] in {*SELECTED, "firings"}
            assert instance.get_materialized_partitions(key) == (days if is_main else with_rows)


@pytest.mark.smoke
def test_a_failing_check_shows_why_and_what_to_do(
    three_days: Project, shared_ui: Shared, pages: DagsterPages
) -> None:
    """Nothing of the day is published; the check has the rule, the record and the next command.

    That command, once the file is mended, publishes the day, and the check passes.
    """
    file, refused = landed_file(three_days, day(4)), day(4)
    text = file.read_text()
    first, others = text.split("\n", 1)
    file.write_text(json.dumps(json.loads(first) | {"dep_delay": -5000.0}) + f"\n{others}")
    broken = landed(three_days, refused)[0]

    pages.materialize_in_vain(refused, "flights__raw_events")
    pages.open_graph()
    pages.shows_asset("raw_events", "0 / 1 Passed")
    ingested = named_rows(three_days.source.raw_events, ["arrival_unit"])
    assert refused not in {row["arrival_unit"] for row in ingested}
    pages.open_failed_day("raw_events", "rules", refused, "cancel")

    pages.open_check("raw_events", "rules")
    pages.shows_text(f"{OWN_CHECK} failed")
    assert pages.value("failed_rules") == OWN_CHECK
    rule = "dep_delay > -1440 (a check of the pipeline's own)"
    assert f"{OWN_CHECK}\t🔴 fails\t1\t{rule}" in pages.markdown("rules")
    (row,) = pages.rows(f"{OWN_CHECK}_sample")
    assert instant(row.pop("departed_at")) == departed(broken)
    assert row == {
        "arrival_unit": str(refused),
        "offset": "0",
        "origin": broken["origin"],
        "dep_delay": "-5000.0",
    }
    said, _, command = pages.value("next").rpartition(": ")
    assert said.startswith("Nothing was published, and the table is unchanged. Fix the cause, then")
    assert command == f"windows-pipeline run flights --from {refused} --to {refused}"

    file.write_text(text)
    shared_ui.call(command)
    pages.shows_passed_day("raw_events", "rules", refused)
    pages.open_graph()
    pages.shows_asset("raw_events", "1 / 1 Passed")


def test_a_new_definition_is_filled_by_automation_conditions(
    three_days: Project, pages: DagsterPages
) -> None:
    """Rule H1: the sensor that is switched on requests the ingested days, in one run."""
    file = three_days.folder / "pipelines" / "flights.yaml"
    declared = yaml.safe_load(file.read_text())
    aggregates = {"worst": "max(dep_delay)"}
    of_hours = {"kind": "tumbling", "size": "1 hour", "grace": "1 day", "aggregates": aggregates}
    declared["windows"]["hours"] = of_hours
    file.write_text(yaml.safe_dump(declared))
    pages.reload_definitions()
    pages.open_sensor("flights_automation")
    pages.switch(on=True)
    tables = tables_of(three_days.pipeline, three_days.settings.warehouse).of("hours")
    wait_until(lambda: Path(tables.alerts.location).is_dir(), _FILLED_S, "the alerts of hours")
    pages.open_sensor("flights_automation")
    pages.switch(on=False)

    ingested = {row["arrival_unit"] for row in named_rows(three_days.source.arrival_log)}
    pages.shows_request("hours/final_windows", len(ingested))
    worst: dict[tuple[str, datetime], float] = {}
    records = [record for of_day in ingested for record in landed(three_days, of_day)]
    closed = max(map(departed, records)) - timedelta(days=1)
    for record in records:
        start = departed(record).replace(minute=0, second=0, microsecond=0)
        if start + HOUR <= closed:
            name = record["origin"], start
            worst[name] = max(record["dep_delay"], worst.get(name, record["dep_delay"]))
    found = named_rows(tables.final_windows, ["key", "window_start", "worst"])
    assert {(row["key"], row["window_start"]): row["worst"] for row in found} == worst
