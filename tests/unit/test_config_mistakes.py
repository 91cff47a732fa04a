"""Errors about a pipeline's file have the file, the line, the field, the value and the fix."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.pipeline_texts import FLIGHTS, changed, line_of, of_kind, problems_of
from windows_pipeline.config import ConfigError, load_pipeline, load_pipelines

# A part of the file, the text in its place, the field that is then wrong, the value that the error
# shows, and words of the fix. The expected line follows from either text.
BROKEN = [
    ("name: flights", "name: ../flights", "name", "../flights", "use a-z, 0-9 and _"),
    ("format: jsonl", "format: xml", "source.format", "xml", "use 'csv', 'jsonl', 'parquet',"),
    ("path: data/flights  ", "path: ''  ", "source.path", "", "is empty; write a text that is no"),
    ("path: data/flights  ", "path: s3a:/b  ", "source.path", "s3a:/b", "write 's3a:///b'"),
    ("flight: bigint", "flight: int", "source.columns.flight", "int", "use 'string', 'bigint'"),
    ("flight: bigint", "flight: decimal", "source.columns.flight", "decimal", "'decimal(12,2)'"),
    ("flight: bigint", "flight: decimal(39,2)", "source.columns.flight", "decimal(39,2)", "38"),
    (
        "flight: bigint",
        "flight: decimals(2)",
        "source.columns.flight",
        "decimals(2)",
        "not a known type",
    ),
    ("flight: bigint", "flight no: bigint", "source.columns.flight no", "flight no", "letters"),
    ("flight: bigint", "offset: bigint", "source.columns.offset", "offset", "rename it"),
    ("flight: bigint", "KEY: bigint", "source.columns.KEY", "KEY", "rename it"),
    ("flight: bigint", "Origin: bigint", "source.columns.Origin", "Origin", "in case only"),
    ("key: origin", "key: orign", "source.key", "orign", "did you mean 'origin'?"),
    ("key: origin", "key: dep_delay", "source.key", "dep_delay", "must be string or bigint"),
    ("key: origin", "key: landed_at", "source.arrival", "landed_at", "is already the key; name an"),
    ("event_time: departed_at", "event_time: dest", "source.event_time", "dest", "timestamp or"),
    ("arrival: landed_at", "arrival: landed", "source.arrival", "landed", "'landed_at'?"),
    ("max_ahead: 1 hour", "max_ahead: -1 hour", "source.max_ahead", "-1 hour", "not be negative"),
    ("arrival: landed_at", "idle_after: 0 days", "source.idle_after", "0 days", "above zero"),
    ("arrival: landed_at", "idle_after: 1 day", "source.idle_after", "1 day", "leave it out"),
    ("start: 2013-01-01", "start: 2013-02-30", "partitions.start", "2013-02-30", "the calendar"),
    ("start: 2013-01-01", "start: 2013", "partitions.start", "2013", "write it as 2013-01-31"),
    ("end: 2014-01-01", "end: 2012-01-01", "partitions.end", "2012-01-01", "or a later one"),
    ("kind: sliding", "kind: slidng", "windows.hourly.kind", "slidng", "did you mean 'sliding'?"),
    ("kind: sliding", "kind: spiral", "windows.hourly.kind", "spiral", "use 'sliding', 'hopping',"),
    ("grace: 6 hours", "grace: 6", "windows.hourly.grace", "6", "whole number and a unit"),
    (
        "grace: 6 hours",
        "grace: 6 hours 6 hours",
        "windows.hourly.grace",
        "6 hours 6 hours",
        "has the unit of 'hours' twice; write each unit once, such as '12 hours'",
    ),
    (
        "key: origin",
        "max_per_batch: 0\n  key: origin",
        "source.max_per_batch",
        "0",
        "number, as 10",
    ),
    ("key: origin", "stream: maybe\n  key: origin", "source.stream", "maybe", "be true or false"),
    (
        "time_difference: 60 minutes",
        "time_difference: 0 minutes",
        "windows.hourly.time_difference",
        "0 minutes",
        "above zero",
    ),
    (
        "emit_empty: true",
        "first_window_start: 2013-01-01 00:00:00",
        "windows.hourly.first_window_start",
        "2013-01-01 00:00:00",
        "write a time with its zone",
    ),
    ("emit_empty: true", "emit_empty: 'yes'", "windows.hourly.emit_empty", "yes", "without quotes"),
    (
        "avg_dep_delay: avg(dep_delay)",
        "avg_dep_delay: mean(dep_delay)",
        "windows.hourly.aggregates.avg_dep_delay",
        "mean(dep_delay)",
        "did you mean 'avg'? Otherwise use one of count, count_distinct, sum, avg, min, max",
    ),
    (
        "avg_dep_delay: avg(dep_delay)",
        "avg_dep_delay: avg(depdelay)",
        "windows.hourly.aggregates.avg_dep_delay",
        "avg(depdelay)",
        "did you mean 'dep_delay'?",
    ),
    (
        "avg_dep_delay: avg(dep_delay)",
        "avg_dep_delay: count(origin)",
        "windows.hourly.aggregates.avg_dep_delay",
        "count(origin)",
        "takes the key, which is not a value column; use one of carrier, flight, dest, dep_delay",
    ),
    (
        "avg_dep_delay: avg(dep_delay)",
        "avg_dep_delay: avg(carrier)",
        "windows.hourly.aggregates.avg_dep_delay",
        "avg(carrier)",
        "avg takes numbers",
    ),
    (
        "min_dep_delay: min(dep_delay)",
        "_least: min(dep_delay)",
        "windows.hourly.aggregates._least",
        "_least",
        "beginning with a letter",
    ),
    (
        "min_dep_delay: min(dep_delay)",
        "closed: min(dep_delay)",
        "windows.hourly.aggregates.closed",
        "closed",
        "rename it",
    ),
    (
        "when: record_count >= 10 and avg_dep_delay > 60",
        "when: record_count >= 10 and avg_delay > 60",
        "windows.hourly.alerts.disruption.when",
        "record_count >= 10 and avg_delay > 60",
        "did you mean 'avg_dep_delay'?",
    ),
    (
        "when: record_count >= 10 and avg_dep_delay > 60",
        "when: episode_ms >= 10",
        "windows.hourly.alerts.disruption.when",
        "episode_ms >= 10",
        "'episode_ms'",
    ),
    (
        "severity: avg_dep_delay  ",
        "severity: avg_dep_delay > 3  ",
        "windows.hourly.alerts.disruption.severity",
        "avg_dep_delay > 3",
        "must be a number, not a boolean; write a number, as in 'x'",
    ),
    (
        "severity: avg_dep_delay  ",
        "severity: true  ",
        "windows.hourly.alerts.disruption.severity",
        "true",
        "is not a number; write a number, or SQL of one, as in 'record_count'",
    ),
    (
        "when: record_count >= 10 and avg_dep_delay > 60",
        "when: yes",
        "windows.hourly.alerts.disruption.when",
        "yes",
        "is not a condition; write SQL over the result columns, as in 'record_count >= 10'",
    ),
]


@pytest.mark.parametrize(("old", "new", "field", "value", "fix"), BROKEN)
def test_an_error_has_the_file_the_line_the_field_the_value_and_the_fix(
    tmp_path: Path, old: str, new: str, field: str, value: str, fix: str
) -> None:
    text = changed(old, new)
    # The line of the field that the error names, which may be another than the changed one.
    blamed = old if old.strip().startswith(field.rsplit(".", 1)[-1]) else new
    if field == "source.arrival" and new.startswith("key"):
        blamed = "  arrival:"
    line = line_of(text, blamed if blamed in text else new)
    (problem,) = problems_of(tmp_path, text)
    start = f"{tmp_path / 'flights.yaml'}:{line}: {field}: {value!r}"
    assert problem.startswith(start)
    assert fix in problem


@pytest.mark.parametrize(
    ("old", "field", "around", "example"),
    [
        ("    grace: 6 hours\n", "windows.hourly.grace", "  hourly:", "1 hour"),
        (
            "    time_difference: 60 minutes\n",
            "windows.hourly.time_difference",
            "  hourly:",
            "1 hour",
        ),
        ("  key: origin\n", "source.key", "\nsource:", "carrier"),
        ("  start: 2013-01-01\n", "partitions.start", "\npartitions:", "2026-01-31"),
        (
            "        severity: -record_count\n",
            "windows.hourly.alerts.quiet.severity",
            "      quiet:",
            "record_count",
        ),
    ],
)
def test_an_error_about_a_missing_field_has_the_line_of_its_parent(
    tmp_path: Path, old: str, field: str, around: str, example: str
) -> None:
    text = changed(old, "")
    line = line_of(text, around) + around.count("\n")
    (problem,) = problems_of(tmp_path, text)
    parent, _, name = field.rpartition(".")
    assert problem == (
        f"{tmp_path / 'flights.yaml'}:{line}: {field}: is missing; "
        f"write '{name}: {example}' in {parent}"
    )


@pytest.mark.parametrize(
    ("old", "new", "fix"),
    [
        ("grace: 6 hours", "grace:", "has no value; write 'grace: 1 hour'"),
        ("sum(distance)", "sum(carrier)", "use one of flight, dep_delay, arr_delay, distance"),
        ("sum(distance)", "count(*)", "as record_count; leave this aggregate out"),
        ("sum(distance)", "[sum(distance)]", "is not text; write text, without brackets"),
        ("sum(distance)", "", "has no value; write 'total_distance: avg(column)'"),
        (
            "sum(distance)",
            "sum(departed_at)",
            "the event_time, which is not a value column; use on",
        ),
        (
            "sum(distance)",
            "sum(carier)",
            "a column of the source; use one of flight, dep_delay, arr",
        ),
        ("sum(distance)", "sum(*)", "as record_count; leave this aggregate out, or name a column"),
        (
            "sum(distance)",
            "5",
            "'5' is not an aggregate; write it as 'avg(column)', with one of count",
        ),
        (
            "sum(distance)",
            "percentile(distance)",
            "write one from 0 to 1, as in 'percentile",
        ),
    ],
)
def test_the_fix_fits_the_field(tmp_path: Path, old: str, new: str, fix: str) -> None:
    (problem,) = problems_of(tmp_path, changed(old, new))
    assert fix in problem


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (".nan", "has no unit; write a whole number and a unit, such as '10 minutes'"),
        ("-5", "has no unit; write a whole number and a unit, such as '10 minutes'"),
        ("1.5", "has no unit; write a whole number and a unit, such as '10 minutes'"),
    ],
)
def test_the_fix_of_a_number_in_the_place_of_a_duration_is_a_duration(
    tmp_path: Path, number: str, words: str
) -> None:
    for text in (
        changed("grace: 6 hours", f"grace: {number}"),
        of_kind(f"kind: tumbling\n    size: {number}"),
    ):
        (problem,) = problems_of(tmp_path, text)
        assert problem.endswith(f": '{number}' {words}")


@pytest.mark.parametrize(
    ("field", "fix"),
    [
        ("limits: {rejectd: 5 %}", "limits.rejectd: 'rejectd' is not a field here; did you mean"),
        ("schedule: {on_landing: {quite: 5 min}}", "'quite' is not a field here; did you mean 'qu"),
    ],
)
def test_an_unknown_field_is_compared_with_those_of_its_mapping(
    tmp_path: Path, field: str, fix: str
) -> None:
    (problem,) = problems_of(tmp_path, changed("partitions:", f"{field}\npartitions:"))
    assert fix in problem


def test_an_error_lists_the_first_of_many_columns(tmp_path: Path) -> None:
    columns = "".join(f"    c{number}: double\n" for number in range(1_000))
    text = FLIGHTS.replace("    dest: string\n", f"    dest: string\n{columns}")
    text = text.replace("key: origin", "key: 5a").replace("avg(dep_delay)", "avg(zzz)")
    for problem in problems_of(tmp_path, text):
        assert re.search(r"use one of \w+(, \w+){29} and 9\d\d more$", problem)
        assert len(problem) < 500


def test_an_aggregate_must_fit_a_value_column(tmp_path: Path) -> None:
    text = FLIGHTS.replace(": bigint", ": string").replace(": double", ": string")
    text = text.replace("avg(dep_delay)", "avg(origin)").replace("sum(distance)", "count(origin)")
    text_of = dict(problem.split(": ", 2)[1:] for problem in problems_of(tmp_path, text))
    assert text_of["windows.hourly.aggregates.avg_dep_delay"] == (
        "'avg(origin)' takes the key, which is not a value column; the source has no value column "
        "that avg takes; declare one under source.columns, or use another function"
    )
    assert "use one of carrier, flight" in text_of["windows.hourly.aggregates.total_distance"]


@pytest.mark.parametrize(
    ("old", "new", "field", "fix"),
    [
        ("max_ahead: 1 hour", "max_ahaed: 1 hour", "source.max_ahaed", "did you mean 'max_ahead'"),
        ("emit_empty: true", "watermark: 3", "windows.hourly.watermark", "the fields are kind"),
        ("end: 2014-01-01", "ends: 2014-01-01", "partitions.ends", "did you mean 'end'"),
    ],
)
def test_an_error_about_an_unknown_field_has_the_nearest_known_field(
    tmp_path: Path, old: str, new: str, field: str, fix: str
) -> None:
    text = changed(old, new)
    (problem,) = problems_of(tmp_path, text)
    assert problem.startswith(f"{tmp_path / 'flights.yaml'}:{line_of(text, new)}: {field}: ")
    assert fix in problem


@pytest.mark.parametrize(
    ("first", "again", "field"),
    [
        ("      disruption:", "      quiet:", "windows.hourly.alerts.disruption"),
        (
            "      max_dep_delay: max(dep_delay)",
            "      min_dep_delay: min(dep_delay)",
            "windows.hourly.aggregates.max_dep_delay",
        ),
        ("    dest: string", "    distance: bigint", "source.columns.dest"),
        ("    kind: sliding", "    grace: 6 hours", "windows.hourly.kind"),
    ],
)
def test_an_error_about_a_repeated_name_has_both_lines(
    tmp_path: Path, first: str, again: str, field: str
) -> None:
    name = first.split(":", maxsplit=1)[0]
    rest = again.split(":", 1)[1]
    text = changed(again, f"{name}:{rest}")
    lines = [number for number, line in enumerate(text.splitlines(), 1) if line.startswith(name)]
    problem = problems_of(tmp_path, text)[0]
    assert problem.startswith(f"{tmp_path / 'flights.yaml'}:{lines[1]}: {field}: ")
    assert f"on line {lines[0]} and on line {lines[1]}; rename or remove one of them" in problem


def test_windows_must_have_different_names(tmp_path: Path) -> None:
    text = FLIGHTS + "  hourly:\n    kind: sliding\n"
    (problem,) = problems_of(tmp_path, text)
    assert "windows.hourly: 'hourly' occurs twice" in problem


def test_an_error_has_all_problems_of_a_file(tmp_path: Path) -> None:
    text = changed("grace: 6 hours", "grace: 6").replace("key: origin", "key: orign")
    text = text.replace("max(dep_delay)", "max(dep_delays").replace("end: 2014", "end: 2011")
    text = text.replace("        severity: -record_count\n", "")
    fields = [re.split(r":\d+: |: ", problem)[1] for problem in problems_of(tmp_path, text)]
    assert sorted(fields) == [
        "partitions.end",
        "source.key",
        "windows.hourly.aggregates.max_dep_delay",
        "windows.hourly.alerts.quiet.severity",
        "windows.hourly.grace",
    ]


def test_windows_are_checked_against_the_source_although_others_are_wrong(tmp_path: Path) -> None:
    text = changed("avg(dep_delay)", "avg(delay)") + "  daily:\n    kind: sliding\n"
    fields = [re.split(r":\d+: |: ", problem)[1] for problem in problems_of(tmp_path, text)]
    assert "windows.hourly.aggregates.avg_dep_delay" in fields
    assert "windows.daily.grace" in fields


OWN_KEY = """\
  routes:
    key: {key}
    kind: tumbling
    size: 1 day
    grace: 6 hours
    aggregates:
      delay: {aggregate}
    alerts:
      late:
        when: {when}
        severity: 1
"""


@pytest.mark.parametrize(
    ("key", "aggregate", "when", "problem"),
    [
        ("[carrier, dst]", "avg(dep_delay)", "dest <> 'HNL'", "key: 'dst' is not a column of"),
        ("dep_delay", "avg(dep_delay)", "dest <> 'HNL'", "key: 'dep_delay' is of type double;"),
        ("dest", "collect_list(dep_dely)", "delay[0] > 5", "'collect_list(dep_dely)' takes 'dep"),
        (
            "[carrier, dest]",
            "min(carier)",
            "dest <> delay",
            "'min(carier)' takes 'carier', which is not",
        ),
    ],
)
def test_what_follows_from_a_mistake_is_no_second_mistake(
    tmp_path: Path, key: str, aggregate: str, when: str, problem: str
) -> None:
    text = FLIGHTS + OWN_KEY.format(key=key, aggregate=aggregate, when=when)
    (found,) = problems_of(tmp_path, text)
    assert problem in found


@pytest.mark.parametrize(
    ("key", "when", "problem"),
    [
        ("dest", "dest <> 'HNL'", "reads 'dest', the key, which results have in the column 'key'"),
        (
            "[carrier, dest]",
            "key = 'AA'",
            "reads 'key', a key of several columns; write its parts'",
        ),
        ("[]", "key is null", "reads 'key', but all records have one key, which is null; leave"),
    ],
)
def test_a_rule_names_the_key_as_results_do(
    tmp_path: Path, key: str, when: str, problem: str
) -> None:
    text = FLIGHTS + OWN_KEY.format(key=key, aggregate="avg(dep_delay)", when=when)
    (found,) = problems_of(tmp_path, text)
    assert f":{line_of(text, when)}: windows.routes.alerts.late.when: " in found
    assert problem in found


def test_a_name_must_be_text_in_yaml(tmp_path: Path) -> None:
    text = changed("dest: string", "no: string")
    (problem,) = problems_of(tmp_path, text)
    assert (
        f":{line_of(text, '    no:')}: source.columns: 'no' is not text, as a name must be"
        in problem
    )
    assert "put it in quotes" in problem


def test_a_file_must_be_readable_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.yaml: cannot be read"):
        load_pipeline(tmp_path / "nothing.yaml")
    latin = tmp_path / "latin.yaml"
    latin.write_bytes(b"name: x\n# caf\xe9\n")
    with pytest.raises(ConfigError, match=r"latin\.yaml:2: is not UTF-8"):
        load_pipeline(latin)


def test_windows_cannot_have_the_name_of_a_table(tmp_path: Path) -> None:
    (problem,) = problems_of(tmp_path, changed("  hourly:", "  raw_events:"))
    assert "'raw_events' is the name of a table; use another name" in problem


def test_a_pipeline_must_declare_windows(tmp_path: Path) -> None:
    text = FLIGHTS[: FLIGHTS.index("windows:")] + "windows: {}\n"
    (problem,) = problems_of(tmp_path, text)
    assert "declares no windows; declare at least one" in problem


def test_an_error_has_the_problems_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(FLIGHTS)
    (tmp_path / "b.yaml").write_text(FLIGHTS)
    (tmp_path / "c.yml").write_text("")
    with pytest.raises(ConfigError) as refused:
        load_pipelines(tmp_path)
    *same_name, empty = refused.value.problems
    line = line_of(FLIGHTS, "name: flights")
    for problem, file, other in zip(same_name, "ab", "ba", strict=True):
        assert problem.startswith(f"{tmp_path / file}.yaml:{line}: name: 'flights' is also the na")
        assert f"of the pipeline in {tmp_path / other}.yaml; rename one of them" in problem
    assert empty.startswith(f"{tmp_path / 'c.yml'}:1: is empty")


def test_the_folder_of_pipelines_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nowhere: is not a folder; create it"):
        load_pipelines(tmp_path / "nowhere")


# Windows of another kind, the field that is wrong, and words of the value and the fix.
BROKEN_KINDS = [
    ("kind: hopping\n    size: 1 hour", "advance", "write 'advance: 1 hour' in windows.hourly"),
    ("kind: forward", "size", "is missing; write 'size: 1 hour' in windows.hourly"),
    ("kind: forward\n    size: 0 ms", "size", "'0 ms' must be above zero; write at least '1 ms'"),
    (
        "kind: forward\n    size: 1 hour\n    emit_empty: true",
        "emit_empty",
        "'emit_empty' is not a field here; remove it; the fields are kind",
    ),
    (
        "kind: forward\n    size: 1 hour\n    trigger: {early_every: 5 ms}",
        "trigger",
        (
            "'forward' windows fire only when they close; write 'trigger: {final: true}', or use "
            "kind: sliding, hopping or tumbling"
        ),
    ),
    ("size: 1 hour", "kind", "write 'kind: ...' in windows.hourly"),
    (
        "kind: 7",
        "kind",
        "'session', 'forward', 'slide_rows', 'tumble_rows', 'session_rows' or 'count'",
    ),
]


@pytest.mark.parametrize(("fields", "field", "words"), BROKEN_KINDS)
def test_an_error_about_windows_of_any_kind_has_the_field_and_the_fix(
    tmp_path: Path, fields: str, field: str, words: str
) -> None:
    (problem,) = problems_of(tmp_path, of_kind(fields))
    assert f": windows.hourly.{field}: " in problem
    assert words in problem


def test_sessions_need_one_order_of_arrival(tmp_path: Path) -> None:
    """Rule D2: a slow source partition may still join two sessions of the others."""
    text = of_kind("kind: session\n    gap: 5 minutes")
    text = text.replace("  arrival: landed_at", "  source_partition: carrier\n  arrival: landed_at")
    (problem,) = problems_of(tmp_path, text)
    assert ": windows.hourly.kind: 'session' needs one order of arrival (rule D2), but" in problem
