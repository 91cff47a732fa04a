"""Columns in the long form: what the file says, which mistakes are refused, and the digest."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pipeline_texts import (
    FLIGHTS,
    changed,
    line_of,
    load_text,
    problems_of,
    table_definition,
)
from windows_pipeline.config import Source, definition_digest
from windows_pipeline.config.columns.json_path import parse_path, path_text

PLAIN = "    flight: bigint\n"
CONCAT = "{type: string, as: \"concat(origin, ':', dest)\"}"


def with_columns(*lines: str) -> str:
    return changed(PLAIN, PLAIN + "".join(f"    {line}\n" for line in lines))


def source_of(folder: Path, *lines: str) -> Source:
    return load_text(folder, with_columns(*lines)).source


def definition_of(folder: Path, *lines: str) -> dict[str, str]:
    return table_definition(load_text(folder, with_columns(*lines)), None, "raw_events")


def test_a_derived_column_has_its_type_and_what_it_follows_from(tmp_path: Path) -> None:
    source = source_of(
        tmp_path,
        f"pair: {CONCAT}",
        'label: {type: string, as: "concat(pair, carrier)"}',
        "at: {type: timestamp_ms, as: distance}",
    )
    assert source.types["pair"] == "string"
    assert source.types["at"] == "timestamp"
    assert "pair" in source.values
    assert list(source.derived) == ["pair", "label", "at"]
    assert source.derived["label"].inputs == ("origin", "carrier", "pair", "dest")
    assert {"pair", "label", "at"}.isdisjoint(source.read_types)


def test_a_derived_column_may_have_any_role(tmp_path: Path) -> None:
    text = changed("key: origin", "key: pair").replace(PLAIN, f"{PLAIN}    pair: {CONCAT}\n")
    assert load_text(tmp_path, text).source.key == "pair"


def test_a_column_is_read_from_its_path(tmp_path: Path) -> None:
    source = source_of(
        tmp_path,
        "country: {type: string, from: $.card.country}",
        "number: {type: string, from: \"$['card'].no-1\"}",
        "note: {type: string, from: '$[\"it''s\"]'}",
    )
    assert source.paths["country"] == ("card", "country")
    assert source.paths["number"] == ("card", "no-1")
    assert source.paths["note"] == ("it's",)
    assert source.paths["origin"] == ("origin",)


NAMES = st.text(min_size=1, max_size=20).filter(
    lambda name: name.isprintable() and "\\" not in name and not {"'", '"'} <= set(name)
)


@given(st.lists(NAMES, min_size=1, max_size=5))
def test_a_path_is_read_as_it_is_written(names: list[str]) -> None:
    assert parse_path(path_text(tuple(names))) == tuple(names)


@given(st.text(max_size=40))
def test_any_text_is_a_path_or_refused(text: str) -> None:
    for candidate in (text, f"${text}", f"$.{text}", f"$['{text}']"):
        try:
            path = parse_path(candidate)
        except ValueError:
            continue
        assert parse_path(path_text(path)) == path


def test_the_days_on_which_files_must_hold_a_column(tmp_path: Path) -> None:
    source = source_of(tmp_path, "gate: {type: string, since: 2013-02-01}")
    assert "gate" not in source.columns_on(date(2013, 1, 31))
    assert "gate" in source.columns_on(date(2013, 2, 1))
    assert source.columns_on(date(2013, 1, 31)) == [
        name for name in source.columns if name != "gate"
    ]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("gate: string", "gate: {type: string}"),
        ("gate: string", "gate: {type: string, from: $.gate}"),
        ("gate: {type: string, from: $.a.b}", "gate: {from: \"$['a']['b']\", type: string}"),
        ("gate: decimal(12,2)", 'gate: {type: "decimal(12, 2)"}'),
        (f"pair: {CONCAT}", "pair: {type: string, as: \"  concat(origin, ':', dest)\"}"),
    ],
)
def test_the_same_columns_have_one_digest(tmp_path: Path, first: str, second: str) -> None:
    """Rule H1: however the file writes them."""
    one, other = definition_of(tmp_path, first), definition_of(tmp_path, second)
    assert one == other
    assert definition_digest(one) == definition_digest(other)


@pytest.mark.parametrize(
    ("line", "field", "value"),
    [
        (f"gate: {CONCAT}", "as", "concat(origin, ':', dest)"),
        ("gate: {type: string, from: $.a.b}", "from", "$.a.b"),
        ("gate: {type: string, since: 2013-02-01}", "since", "2013-02-01"),
    ],
)
def test_the_digest_holds_what_changes_values(
    tmp_path: Path, line: str, field: str, value: str
) -> None:
    """Rule H1: tables never mix rows of two expressions, paths or days."""
    plain, found = definition_of(tmp_path, "gate: string"), definition_of(tmp_path, line)
    assert found == plain | {f"source.columns.gate.{field}": value}


def test_the_digest_holds_the_zone(tmp_path: Path) -> None:
    plain = definition_of(tmp_path, "gate: timestamp")
    found = definition_of(tmp_path, "gate: {type: timestamp, zone: America/New_York}")
    zone = {"source.columns.gate.zone": "America/New_York"}
    assert found == plain | zone | {"source.columns.gate.ambiguous": "first"}
    declared = "gate: {type: timestamp, zone: America/New_York, ambiguous: %s}"
    assert definition_of(tmp_path, declared % "first") == found
    later = definition_of(tmp_path, declared % "later")
    assert later == found | {"source.columns.gate.ambiguous": "later"}


def test_a_file_without_long_forms_keeps_its_digest(tmp_path: Path) -> None:
    """Rule H1: the fields of the short form, as tables of earlier releases hold them."""
    definition = definition_of(tmp_path, "gate: string")
    columns = {name: text for name, text in definition.items() if ".columns." in name}
    assert columns["source.columns.gate"] == "string"
    assert columns["source.columns.departed_at"] == "timestamp"
    assert all(name.count(".") == 2 for name in columns)


# What is added to the columns, the field that is wrong, and words of the message: the value is
# the first of them.
BROKEN = [
    ('gate: {type: string, as: "concat(gate, dest)"}', "as", "'concat(gate, dest)' depends on"),
    ("gate: {type: bigint, as: origin}", "as", "'origin' is of kind string, but the column's typ"),
    (
        "gate: {type: string, as: concat(origin, dest)}",
        "dest)",
        "'dest)' is not a field here; if it is a part of the text before it, put that text in quo",
    ),
    ("gate: {type: string, as: upper()}", "as", "at ')'; write what the function is of, as in 'ab"),
    ("gate: {type: string, as: upper(origin}", "as", "has 1 '(' and 0 ')'; add the missing ')'"),
    (
        'gate: {type: string, as: "concat(orign, dest)"}',
        "as",
        "'concat(orign, dest)': there is no column 'orign'; did you mean 'origin'?",
    ),
    (
        'gate: {type: string, as: "concat(origin, flight)"}',
        "as",
        "takes a string, but flight is a number; pass a string, as in cast(flight as string)",
    ),
    ("gate: {type: double, as: rand()}", "as", "'rand()' uses rand(), which expressions"),
    (
        'gate: {type: double, as: "sum(flight)"}',
        "as",
        "'sum(flight)' uses sum(), which expressions cannot use; write it under aggregates",
    ),
    ("gate: {type: string, as: \"'${spark.jars}'\"}", "as", "which Spark would replace"),
    ("gate: {type: string, as: 5}", "as", "'5' is not text; put it in quotes"),
    ("gate: {type: string, as: ' '}", "as", "' ' is empty; write a text that is not blank"),
    ("gate: {as: origin}", "type", "is missing; write 'type: string' in source.columns.gate"),
    ("gate: {type: string, zon: UTC}", "zon", "'zon' is not a field here; did you mean 'zone'?"),
    ("gate: {type: string, from: card}", "from", "'card' is not a path; write names after"),
    ("gate: {type: string, from: $}", "from", "'$' names no field; write names after points"),
    ("gate: {type: string, from: '$.a.*'}", "from", "'$.a.*' has '.*' in it, but a path has no w"),
    ("gate: {type: string, from: '$.a[0]'}", "from", "has '[0]' in it, but a path cannot read an"),
    ("gate: {type: string, from: '$[\"a\\b\"]'}", "from", "where a name must be; write names"),
    (
        "gate: {type: string, from: $.origin.gate}",
        "from",
        "'$.origin.gate' is a field within a field that is read whole: read either this or $.origi",
    ),
    (
        "gate: {type: string, from: $.Origin.x}",
        "from",
        "'$.Origin.x' has a name that differs in case",
    ),
    (
        "gate: {type: string, as: origin, from: $.x}",
        "from",
        "'$.x' must be left out of a column with 'as': it is computed, not read; rem",
    ),
    (
        "gate: {type: timestamp, zone: America/NewYork}",
        "zone",
        "'America/NewYork' is not a known time zone; did you mean 'America/New_York'?",
    ),
    (
        "gate: {type: timestamp_ms, zone: UTC}",
        "zone",
        "'UTC' fits a column of type timestamp, and this one is timestamp_ms; remove zone, or",
    ),
    (
        "gate: {type: timestamp, ambiguous: later}",
        "ambiguous",
        "'later' must be left out without a zone: no time in UTC occurs twice; remove it, or name",
    ),
    (
        "gate: {type: timestamp, as: departed_at, zone: UTC}",
        "as",
        "'departed_at' is of kind timestamp, but format, zone, decimal and thousands say how to re",
    ),
    (
        "gate: {type: string, format: dd.MM.yyyy}",
        "format",
        "'dd.MM.yyyy' fits a column of type timestamp or date, and this one is string; remove form",
    ),
    (
        "gate: {type: timestamp, format: dd.MM.yy}",
        "format",
        "'dd.MM.yy' has 'yy', which is no exact part of a time; use yyyy, MM, M, dd, d, HH, H, mm,",
    ),
    (
        "gate: {type: timestamp, format: 'dd.MM. HH:mm'}",
        "format",
        "'dd.MM. HH:mm' has no year, without which a text is no exact time; add it",
    ),
    (
        "gate: {type: timestamp, format: 'dd.MM.yyyy mm'}",
        "format",
        "'dd.MM.yyyy mm' has no hour, without which a text is no exact time; add it",
    ),
    (
        "gate: {type: timestamp, format: 'dd.MM.yyyy HH:mm dd'}",
        "format",
        "has the day twice; write it once",
    ),
    (
        "gate: {type: timestamp, format: 'yyyyMd'}",
        "format",
        "has 'd' right after 'M', which takes one digit or more, so that a text has several readin",
    ),
    (
        "gate: {type: timestamp, format: 'MM/dd/yyyy hh:mm'}",
        "format",
        "has an hour of half a day or AM and PM alone; write hh with a, or HH",
    ),
    (
        "gate: {type: timestamp, format: 'yyyy-MM-dd[ HH:mm]'}",
        "format",
        "has '[', which has no meaning here; put a text into two single quotes",
    ),
    (
        'gate: {type: bigint, decimal: ";"}',
        "decimal",
        "';' is not a known value; use ','",
    ),
    (
        'gate: {type: timestamp, decimal: ","}',
        "decimal",
        "',' fits a column of type double or decimal or bigint, and this one is timestamp; remove ",
    ),
    (
        'gate: {type: timestamp_ms, thousands: "."}',
        "thousands",
        "'.' fits a column of type double or decimal or bigint, and this one is timestamp_ms; remo",
    ),
    (
        'gate: {type: double, thousands: "_"}',
        "thousands",
        "'_' is not a known value; use '.', ',', ' ' or",
    ),
    (
        'gate: {type: double, thousands: "."}',
        "thousands",
        "'.' is the decimal sign, too; add decimal: ','",
    ),
    (
        'gate: {type: "decimal(9,2)", decimal: ",", thousands: ","}',
        "thousands",
        "',' is the decimal sign, too; write another one",
    ),
    (
        "gate: {type: string, metadata: sender}",
        "metadata",
        "'sender' is no metadata of a record; write key, timestamp, headers.NAME or file_modif",
    ),
    (
        "gate: {type: string, metadata: key}",
        "metadata",
        "'key' is not known of records of format jsonl; write file_modification_time",
    ),
    (
        "gate: {type: string, metadata: file_modification_time}",
        "metadata",
        "'file_modification_time' is a time, and the column is string; declare timestamp",
    ),
    (
        "gate: {type: timestamp, metadata: file_modification_time, from: $.x}",
        "metadata",
        "'file_modification_time' must be left out of a column with 'from'; remove one of both",
    ),
    ("gate: {type: date, as: \"date '2026-02-30'\"}", "as", "'2026-02-30' is not a time; write"),
    ("gate: {type: string, since: soon}", "since", "'soon' is not a day; write it as 2013-01-31"),
]


@pytest.mark.parametrize(("line", "field", "words"), BROKEN)
def test_an_error_about_a_column_has_the_line_the_field_the_value_and_the_fix(
    tmp_path: Path, line: str, field: str, words: str
) -> None:
    text = with_columns(line)
    (problem,) = problems_of(tmp_path, text)
    where = f"{tmp_path / 'flights.yaml'}:{line_of(text, line)}: source.columns.gate.{field}: "
    assert problem.startswith(where)
    assert words in problem


def test_a_long_form_may_stand_on_lines_of_its_own(tmp_path: Path) -> None:
    """An error then has the line of the field, not of the column."""
    text = with_columns("gate:", "  type: string", "  as: concat(gat, dest)")
    (problem,) = problems_of(tmp_path, text)
    line = line_of(text, "as: concat(gat")
    assert problem.startswith(f"{tmp_path / 'flights.yaml'}:{line}: source.columns.gate.as: ")


def test_derived_columns_read_earlier_ones_alone_and_no_circle(tmp_path: Path) -> None:
    first = "one: {type: string, as: \"concat(two, 'x')\"}"
    (later,) = problems_of(tmp_path, with_columns(first, f"two: {CONCAT}"))
    assert "reads 'two', a derived column that is not above it; declare 'two' above 'one'" in later
    (circle,) = problems_of(
        tmp_path, with_columns(first, 'two: {type: string, as: "concat(one, dest)"}')
    )
    assert "source.columns.one.as: " in circle
    assert "or, where it depends on 'one', compute one from other columns" in circle


def test_records_of_csv_files_have_no_paths(tmp_path: Path) -> None:
    text = with_columns("gate: {type: string, from: $.card.gate}").replace("jsonl", "csv")
    (problem,) = problems_of(tmp_path, text)
    assert "source.columns.gate.from: '$.card.gate' must be left out with format: csv" in problem
    assert problem.endswith("name the column as the header does")


def test_a_column_with_a_role_is_there_from_the_first_day(tmp_path: Path) -> None:
    text = changed("    origin: string", "    origin: {type: string, since: 2013-02-01}")
    (problem,) = problems_of(tmp_path, text)
    assert (
        "source.columns.origin.since: '2013-02-01' leaves the key null before that day" in problem
    )


def test_some_column_must_be_in_the_records(tmp_path: Path) -> None:
    text = FLIGHTS[: FLIGHTS.index("  columns:")] + (
        "  columns:\n    k: {type: string, as: \"'a'\"}\n"
        "    t: {type: timestamp, as: \"timestamp '2013-01-01'\"}\n"
        "  key: k\n  event_time: t\npartitions: {start: 2013-01-01}\n"
        "windows: {w: {kind: tumbling, size: 1 hour, grace: 1 hour}}\n"
    )
    (problem,) = problems_of(tmp_path, text)
    assert "source.columns: are all derived; declare a column that records hold" in problem
