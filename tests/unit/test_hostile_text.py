"""Parsers refuse a text of 150,000 characters at once, and no error repeats the text."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.pipeline_texts import FLIGHTS, changed, of_kind, problems_of
from windows_pipeline.aggregates import UserModules, parse_aggregate
from windows_pipeline.aggregates.column_type import parse_type
from windows_pipeline.alerts.rule_sql import compile_rule
from windows_pipeline.dataframe.names import split_name
from windows_pipeline.dataframe.sql_calls import window_calls
from windows_pipeline.dataframe.sql_functions import parse_aggregates
from windows_pipeline.text.limits import MAX_TEXT
from windows_pipeline.windows.durations import duration_ms

LONG = 150_000
SECONDS = 3.0
"""Of processor time: a number of steps that is quadratic in the length takes minutes or more."""
LONGEST_ERROR = 3_000
_ENDLESS = {
    "blanks in a call": "percentile(" + " " * LONG + "v, 0.5)",
    "blanks after a comma": "percentile(v," + " " * LONG + "x",
    "blanks before a type": "decimal(" + " " * LONG + "1,2",
    "a word and blanks": "avg" + " " * LONG + "x",
    "an alias without a name": "count(*) as" + " " * LONG + "!",
    "words": "x" + " as" * LONG,
    "digits": "0" * LONG,
    "digits and a unit": "1" * LONG + " x",
    "letters": "a" * LONG,
    "points": ".," * LONG,
    "opened parentheses": "percentile(v," + "(" * LONG,
    "pairs of parentheses": "percentile(v," + "()" * LONG,
    "arrays": "array<" * LONG,
    "structs": "struct<" + "a:int," * LONG,
    "backticks": "`" * (LONG + 1),
}
HOSTILE = {name: text if len(text) < LONG + 99 else text[:LONG] for name, text in _ENDLESS.items()}
SOME = [HOSTILE[name] for name in ("letters", "words", "opened parentheses", "blanks in a call")]
"""For fields, which read their texts by the parsers below."""
PARSERS: dict[str, Callable[[str], object]] = {
    "aggregate": lambda text: parse_aggregate("x", text),
    "aggregates of a query": lambda text: parse_aggregates(text, UserModules()),
    "type": parse_type,
    "duration": lambda text: duration_ms(text, "grace"),
    "rule": lambda text: compile_rule(text, {"v": "double"}, "number"),
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS)
def test_a_long_text_is_refused_at_once(parse: Callable[[str], object], text: str) -> None:
    began = time.thread_time()
    with pytest.raises(ValueError, match=r".") as refused:
        parse(text)
    assert time.thread_time() - began < SECONDS
    assert len(str(refused.value)) < LONGEST_ERROR


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_the_text_of_a_query_is_parsed_at_once(text: str) -> None:
    began = time.thread_time()
    split_name(text)
    for query in (text, f"sliding_windows(TABLE(e), size => '{text}')"):
        said = ""
        try:
            list(window_calls(query, ["sliding_windows"]))
        except ValueError as error:
            said = str(error)
        assert len(said) < LONGEST_ERROR
    assert time.thread_time() - began < 4 * SECONDS


@pytest.mark.parametrize(
    "text",
    ["percentile(v," + " " * (MAX_TEXT - 50) + "x", "1" * MAX_TEXT, "0" * (MAX_TEXT - 1) + "x"],
)
@pytest.mark.parametrize("parse", PARSERS.values(), ids=PARSERS)
def test_the_longest_accepted_text_is_parsed_at_once(
    parse: Callable[[str], object], text: str
) -> None:
    began = time.thread_time()
    with suppress(ValueError):
        parse(text)
    assert time.thread_time() - began < SECONDS


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("count(*) as n", ("count(*)", "n")),
        (" sum(a)  AS\ttotal ", ("sum(a)", "total")),
        ("a as b as c", ("a as b", "c")),
        ("as n", ("as n", None)),
        ("w.start", ("w.start", None)),
        ("a as b-c", ("a as b-c", None)),
    ],
)
def test_a_name_is_split_off(text: str, parts: tuple[str, str | None]) -> None:
    assert split_name(text) == parts


FIELDS = [
    ("avg(dep_delay)", "source", "windows.hourly.aggregates.avg_dep_delay"),
    ("6 hours", "grace", "windows.hourly.grace"),
    ("flight: bigint", "flight: ", "source.columns.flight"),
    ("key: origin", "key: ", "source.key"),
    ("start: 2013-01-01", "start: ", "partitions.start"),
    ("emit_empty: true", "first_window_start: ", "windows.hourly.first_window_start"),
    ("emit_empty: true", "trigger: {early_every: ", "windows.hourly.trigger.early_every"),
    ("record_count >= 10 and avg_dep_delay > 60", "", "windows.hourly.alerts.disruption.when"),
    ("kind: sliding", "kind: ", "windows.hourly.kind"),
    ("name: flights", "name: ", "name"),
]


@pytest.mark.parametrize(("old", "before", "field"), FIELDS, ids=[field for *_, field in FIELDS])
@pytest.mark.parametrize("text", SOME, ids=range(len(SOME)))
def test_a_field_with_a_long_text_is_refused_at_once(
    tmp_path: Path, old: str, before: str, field: str, text: str
) -> None:
    name = before if ":" in before else ""
    closed = "}" if "{" in name else ""
    began = time.thread_time()
    problems = problems_of(tmp_path, changed(old, f'{name}"{text}"{closed}'))
    assert time.thread_time() - began < SECONDS
    assert any(f": {field}: " in problem for problem in problems)
    assert sum(map(len, problems)) < 2 * LONGEST_ERROR


@pytest.mark.parametrize(
    "kind",
    [
        "kind: slide_rows\n    preceding: '{}'",
        "kind: slide_rows\n    preceding: 5 rows\n    following: '{}'",
        "kind: tumble_rows\n    size: '{}'",
        "kind: session_rows\n    gap: '{}'",
        "kind: count\n    size: '{}'",
    ],
)
@pytest.mark.parametrize("text", SOME, ids=range(len(SOME)))
def test_rows_with_a_long_text_are_refused_at_once(tmp_path: Path, kind: str, text: str) -> None:
    began = time.thread_time()
    problems = problems_of(tmp_path, of_kind(kind.replace("{}", text)))
    assert time.thread_time() - began < SECONDS
    assert sum(map(len, problems)) < 2 * LONGEST_ERROR


def test_long_names_are_refused_with_a_short_error(tmp_path: Path) -> None:
    name = "a" * 300
    for old, new in (
        ("name: flights", f"name: {name}"),
        ("  hourly:", f"  {name}:"),
        ("      disruption:", f"      {name}:"),
        ("flight: bigint", f"{'a' * LONG}: bigint"),
        ("emit_empty: true", f"{'a' * LONG}: true"),
    ):
        (problem,) = problems_of(tmp_path, changed(old, new))
        assert len(problem) < LONGEST_ERROR
    (problem,) = problems_of(tmp_path, FLIGHTS.replace("name: flights", f"name: {name}"))
    assert "is longer than 100 characters; use a shorter name" in problem
