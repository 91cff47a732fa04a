"""`load_pipeline` reads every field of a valid pipeline file."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tests.support.pipeline_texts import (
    FLIGHTS,
    PIPELINES,
    changed,
    load_text,
    of_kind,
    problems_of,
    table_definition,
)
from windows_pipeline.config import Rule, load_pipeline, load_pipelines
from windows_pipeline.windows import (
    ForwardSlidingWindows,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
)


def test_the_flights_pipeline_has_the_fields_of_its_file() -> None:
    flights = load_pipeline(PIPELINES / "flights.yaml")
    hourly = flights.windows["hourly"]
    assert flights.name == "flights"
    assert flights.source.max_ahead == 3_600_000
    assert flights.source.values == {
        "carrier": "string",
        "flight": "bigint",
        "dest": "string",
        "dep_delay": "double",
        "arr_delay": "double",
        "distance": "bigint",
    }
    assert (flights.partitions.start, flights.partitions.end) == (
        date(2013, 1, 1),
        date(2014, 1, 1),
    )
    assert hourly.spec == SlidingWindows(3_600_000, 21_600_000, None, emit_empty=True)
    assert [str(aggregate) for aggregate in hourly.aggregate_list] == [
        "avg(dep_delay)",
        "max(dep_delay)",
        "min(dep_delay)",
        "sum(distance)",
    ]
    assert hourly.result_columns(flights.source) == {
        "key": "string",
        "window_start": "timestamp",
        "window_end": "timestamp",
        "first_event_time": "timestamp",
        "last_event_time": "timestamp",
        "record_count": "bigint",
        "avg_dep_delay": "double",
        "max_dep_delay": "double",
        "min_dep_delay": "double",
        "total_distance": "bigint",
    }


def test_rules_keep_their_text_and_compile_to_sql() -> None:
    flights = load_pipeline(PIPELINES / "flights.yaml")
    hourly = flights.windows["hourly"]
    rule = hourly.alerts["disruption"]
    columns = hourly.result_columns(flights.source)
    assert rule.when == "record_count >= 10 and avg_dep_delay > 60"
    assert rule.when_sql(columns).sql == "((`record_count` >= 10L) AND (`avg_dep_delay` > 60L))"
    assert rule.severity_sql(columns).sql == "`avg_dep_delay`"
    lasting = Rule(when="record_count > 3", severity="episode_ms")
    assert lasting.severity_sql(columns).sql == "`episode_ms`"


def test_each_file_of_a_folder_declares_a_pipeline(tmp_path: Path) -> None:
    text = (PIPELINES / "flights.yaml").read_text()
    (tmp_path / "flights.yaml").write_text(text)
    (tmp_path / "again.yaml").write_text(text.replace("name: flights", "name: again"))
    again, flights = load_pipelines(tmp_path)
    assert (again.name, flights.name) == ("again", "flights")
    assert again.source == flights.source
    assert again.windows == flights.windows


def test_decimals_are_written_with_or_without_spaces(tmp_path: Path) -> None:
    for written in ("decimal(12,2)", "decimal( 12, 2 )"):
        text = changed("distance: bigint", f"distance: {written}")
        flights = load_text(tmp_path, text)
        assert flights.source.values["distance"] == "decimal(12,2)"
        columns = flights.windows["hourly"].result_columns(flights.source)
        assert columns["total_distance"] == "decimal(22,2)"
    text = changed("distance: bigint", "distance: decimal(5)")
    assert load_text(tmp_path, text).source.values["distance"] == "decimal(5,0)"


def test_a_key_cannot_be_a_decimal(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, changed("origin: string", "origin: decimal(5,0)"))
    assert "'origin' is of type decimal(5,0); the key must be string or bigint" in problem


def test_first_window_start_is_an_instant(tmp_path: Path) -> None:
    for written in (
        "2013-01-01T00:00:00Z",
        "2012-12-31 19:00:00-05:00",
        "'2013-01-01T00:00:00+00:00'",
    ):
        text = changed("emit_empty: true", f"first_window_start: {written}")
        spec = load_text(tmp_path, text).windows["hourly"].spec
        assert isinstance(spec, SlidingWindows)
        assert spec.first_window_start_ms == 1_356_998_400_000


def test_a_column_may_have_the_name_of_its_role(tmp_path: Path) -> None:
    text = FLIGHTS.replace("origin: string", "key: string").replace("key: origin", "key: key")
    text = text.replace("departed_at", "event_time")
    source = load_text(tmp_path, text).source
    assert (source.key, source.event_time) == ("key", "event_time")


def test_a_duration_may_have_several_units(tmp_path: Path) -> None:
    text = changed("grace: 6 hours", "grace: 1 hour 30 minutes")
    assert load_text(tmp_path, text).windows["hourly"].grace == 5_400_000


OTHER_KINDS = {
    "kind: hopping\n    size: 1 hour\n    advance: 15 minutes": TimeWindows(
        3_600_000, 900_000, 21_600_000
    ),
    "kind: tumbling\n    size: 1 hour": TimeWindows(3_600_000, 3_600_000, 21_600_000),
    "kind: forward\n    size: 1 hour": ForwardSlidingWindows(3_600_000, 21_600_000),
    "kind: session\n    gap: 30 minutes": SessionWindows(1_800_000, 21_600_000),
}


@pytest.mark.parametrize("fields", OTHER_KINDS)
def test_windows_of_every_kind_have_their_specification(tmp_path: Path, fields: str) -> None:
    hourly = load_text(tmp_path, of_kind(fields)).windows["hourly"]
    assert hourly.spec == OTHER_KINDS[fields]
    assert set(hourly.alerts) == {"disruption", "quiet"}


@pytest.mark.parametrize(
    "fields",
    [
        "kind: sliding\n    time_difference: 1 hour",
        *OTHER_KINDS,
        "kind: slide_rows\n    preceding: 5 rows",
        "kind: tumble_rows\n    size: 3",
        "kind: session_rows\n    gap: 1 hour",
        "kind: count\n    size: 3",
    ],
)
@pytest.mark.parametrize("empty", ["", "    aggregates: {}\n"])
def test_aggregates_may_be_left_out(tmp_path: Path, fields: str, empty: str) -> None:
    """Every result has record_count, which rules can use."""
    text = of_kind(fields).partition("    aggregates:")[0]
    rule = "{when: record_count > 3, severity: record_count}"
    hourly = load_text(tmp_path, f"{text}{empty}    alerts:\n      busy: {rule}\n")
    windows = hourly.windows["hourly"]
    assert windows.aggregate_list == []
    columns = windows.result_columns(hourly.source)
    assert list(columns) == [
        *("key", "window_start", "window_end", "first_event_time", "last_event_time"),
        "record_count",
    ]
    assert windows.alerts["busy"].when_sql(columns).sql == "(`record_count` > 3L)"


def test_a_definition_is_the_same_with_aggregates_empty_or_left_out(tmp_path: Path) -> None:
    text = FLIGHTS.partition("    aggregates:")[0]
    left_out = load_text(tmp_path, text)
    empty = load_text(tmp_path, f"{text}    aggregates: {{}}\n")
    for table in ("keyed_windows", "alerts"):
        definition = table_definition(left_out, "hourly", table)
        assert definition == table_definition(empty, "hourly", table)


def test_only_rules_of_other_columns_need_aggregates(tmp_path: Path) -> None:
    text = FLIGHTS.partition("    aggregates:")[0]
    rule = "{when: avg_dep_delay > 3, severity: record_count}"
    (problem,) = problems_of(tmp_path, f"{text}    alerts:\n      busy: {rule}\n")
    assert "there is no column 'avg_dep_delay'; use one of key, window_start" in problem
