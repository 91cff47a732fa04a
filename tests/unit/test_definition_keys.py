"""A definition's own key and filter: what is read, what is refused, what changes (rule A9)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipeline_texts import (
    FLIGHTS,
    changed,
    line_of,
    load_text,
    problems_of,
    table_definition,
)
from windows_pipeline.alerts.rule_sql import RuleError, compile_rule
from windows_pipeline.checks.own_checks import own_checks_of_records, own_checks_of_results
from windows_pipeline.config import Pipeline
from windows_pipeline.storage.catalog import specs_of

GRACE = "    grace: 6 hours\n"
WINDOWS = ("keyed_windows", "late_records", "final_windows", "corrections", "alerts")


def with_fields(*lines: str) -> str:
    """The flights with more fields in their definition."""
    return changed(GRACE, GRACE + "".join(f"    {line}\n" for line in lines))


def columns_of(pipeline: Pipeline, table: str) -> dict[str, object]:
    (spec,) = (one for one in specs_of(pipeline, "").written if one.short_name == table)
    return {column.name: column.type for column in spec.columns}


def test_a_definition_has_the_key_that_it_names(tmp_path: Path) -> None:
    """The source keeps its key; the columns that are not in the definition's key are values."""
    text = with_fields("key: flight").replace("min(dep_delay)", "count_distinct(origin)")
    pipeline = load_text(tmp_path, text)
    assert columns_of(pipeline, "raw_events")["key"] == "string"
    assert "origin" not in columns_of(pipeline, "raw_events")
    for table in WINDOWS:
        assert columns_of(pipeline, table)["key"] == "bigint", table
    late = columns_of(pipeline, "late_records")
    assert (late["origin"], "flight" in late) == ("string", False)
    hourly = pipeline.windows["hourly"]
    assert hourly.result_columns(pipeline.source)["key"] == "bigint"


def test_a_filter_is_sql_in_which_nothing_fails(tmp_path: Path) -> None:
    """It reads any column of the source by its own name, and no value of a record stops a run."""
    where = "distance * flight + 1 > -distance and origin <> 'EWR' and departed_at > landed_at"
    pipeline = load_text(tmp_path, with_fields(f"where: {where}"))
    sql = pipeline.windows["hourly"].where_sql(pipeline.source)
    least = "(-9223372036854775807L - 1L)"
    assert sql == (
        "(((TRY_ADD(TRY_MULTIPLY(`distance`, `flight`), 1L) > (-NULLIF(`distance`, "
        f"{least}))) AND (`origin` <> 'EWR')) AND (`departed_at` > `landed_at`))"
    )


def test_a_filter_reads_columns_as_raw_events_has_them(tmp_path: Path) -> None:
    """Times are timestamps, and a source partition is text, whatever the source declares."""
    text = with_fields("where: departed_at > '2013-01-01' and part in ('1', '2')")
    text = text.replace("departed_at: timestamp\n", "departed_at: bigint\n    part: bigint\n")
    load_text(tmp_path, text.replace("event_time: ", "source_partition: part\n  event_time: "))


KEYS = [
    ("carier", "'carier' is not a column of the source; did you mean 'carrier'?"),
    ("departed_at", "'departed_at' is the event_time, which is no key; use one of origin, carrier"),
    (
        "dep_delay",
        "is of type double; a key must be string or bigint or date or timestamp: use one of origin",
    ),
    ("", "has no value; write 'key: carrier'"),
    ("5", "'5' is not the name of a column; write a name, or a list as [carrier, dest]"),
    ("[carrier, carier]", "'carier' is not a column of the source; did you mean 'carrier'?"),
    ("[carrier, dep_delay]", "'dep_delay' is of type double; a key must be string or bigint"),
    ("[carrier, dest, carrier]", "names 'carrier' twice; name each column once"),
    ("[carrier, 5]", "holds 5, which is not the name of a column; write names, as in"),
]
FILTERS = [
    ("distanze > 5", "there is no column 'distanze'; did you mean 'distance'?"),
    ("distance", "must be a boolean, not a number; compare it, as in 'x > 3'"),
    (
        "record_count > 5",
        "a result of windows, but says which records windows hold; use columns of the source (ori",
    ),
    ("key = 'EWR'", "reads 'key', a result of windows"),
    ("sum(distance) > 5", "uses sum(), which expressions cannot use"),
    ("5", "'5' is not a condition; write SQL over the source's columns, as in 'amount > 0'"),
    ("", "has no value; write 'where: amount > 0'"),
]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [*(("key", *of) for of in KEYS), *(("where", *of) for of in FILTERS)],
)
def test_a_mistake_is_named_with_its_line_and_fix(
    tmp_path: Path, field: str, value: str, words: str
) -> None:
    text = with_fields(f"{field}: {value}")
    (problem,) = problems_of(tmp_path, text)
    line = line_of(text, GRACE) + 1
    assert problem.startswith(f"{tmp_path / 'flights.yaml'}:{line}: windows.hourly.{field}: ")
    assert words in problem


def test_rules_and_aggregates_see_the_definitions_key(tmp_path: Path) -> None:
    """Rule A9: a rule compares values of the type that this key has."""
    rule = "when: record_count >= 10 and avg_dep_delay > 60"
    text = with_fields("key: flight").replace(rule, "when: key = 'EWR'")
    (problem,) = problems_of(tmp_path, text)
    assert "compares number with string" in problem
    (problem,) = problems_of(tmp_path, with_fields("key: dest").replace("min(dep", "min(dest"))
    assert "windows.hourly.aggregates.min_dep_delay" in problem


def test_only_a_definition_with_these_fields_has_another_definition(tmp_path: Path) -> None:
    """Rule H1: the source's tables stay, and the source's own key is as good as none."""
    plain = load_text(tmp_path, FLIGHTS)
    same = load_text(tmp_path, with_fields("key: origin"))
    other = load_text(tmp_path, with_fields("key: carrier", "where: distance > 5"))
    changes = {
        "windows.hourly.key": "carrier",
        "windows.hourly.where": "distance > 5",
    }
    for table in WINDOWS:
        before = table_definition(plain, "hourly", table)
        assert not {"windows.hourly.key", "windows.hourly.where"} & before.keys()
        assert table_definition(same, "hourly", table) == before
        assert table_definition(other, "hourly", table) == {**before, **changes}
    for table in ("raw_events", "rejected_records", "arrival_log"):
        assert table_definition(other, None, table) == table_definition(plain, None, table)


def test_an_operation_of_a_rule_still_fails_where_it_must() -> None:
    with pytest.raises(RuleError, match="there is no column 'y'"):
        compile_rule("y > 3", {"x": "double"}, "boolean")


PAIR = "struct<carrier:string,flight:bigint>"


def test_a_key_of_several_columns_is_a_struct_whose_parts_rules_read(tmp_path: Path) -> None:
    """Rule A9: in every table, of the source or of the definition; a list of one is its column."""
    rule = "when: record_count >= 10 and avg_dep_delay > 60"
    reads = "when: record_count >= 10 and carrier = 'AA' and flight > 5"
    text = with_fields("key: [carrier, flight]").replace(rule, reads)
    pipeline = load_text(tmp_path, text)
    hourly = pipeline.windows["hourly"]
    columns = hourly.result_columns(pipeline.source)
    assert columns["key"] == PAIR
    assert hourly.alerts["disruption"].when_sql(columns).sql == (
        "(((`record_count` >= 10L) AND (`key`.`carrier` = 'AA')) AND (`key`.`flight` > 5L))"
    )
    for table in WINDOWS:
        parts = columns_of(pipeline, table)["key"]
        assert isinstance(parts, tuple)
        assert [(part.name, part.type) for part in parts] == [
            ("carrier", "string"),
            ("flight", "bigint"),
        ]
        stored = table_definition(pipeline, "hourly", table)
        assert stored["windows.hourly.key"] == "carrier, flight"
    tables = specs_of(pipeline, "").of("hourly")
    assert tables.alerts.sorted_by == ("window_end", "rule", "key.carrier", "key.flight")
    of_source = load_text(tmp_path, changed("key: origin", "key: [carrier, flight]"))
    assert columns_of(of_source, "raw_events")["key"] == parts
    assert not {"carrier", "flight"} & columns_of(of_source, "raw_events").keys()
    one = load_text(tmp_path, with_fields("key: [carrier]"))
    assert one.windows["hourly"].key == "carrier"


def test_a_part_of_the_sources_key_is_a_value_of_a_definition_with_another(tmp_path: Path) -> None:
    text = with_fields("key: [carrier, dest]", "where: flight > 5 and carrier > 'A'")
    text = text.replace("key: origin", "key: [carrier, flight]")
    late = columns_of(load_text(tmp_path, text), "late_records")
    assert (late["flight"], late["origin"], "carrier" in late) == ("bigint", "string", False)


PARTS = [
    ("key: origin", "key: [origin, orign]", "source.key: 'orign' is not a column of the source"),
    ("key: origin", "key: [origin, landed_at]", "source.arrival: 'landed_at' is already the key"),
    (
        "key: origin",
        "key: [origin, dep_delay]",
        "source.key: 'dep_delay' is of type double; the key must be string or bigint",
    ),
]


@pytest.mark.parametrize(("old", "new", "words"), PARTS)
def test_a_mistake_in_the_sources_parts_is_named(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    (problem,) = problems_of(tmp_path, changed(old, new))
    line = line_of(FLIGHTS, old) if "arrival" not in words else line_of(FLIGHTS, "arrival: ")
    assert problem.startswith(f"{tmp_path / 'flights.yaml'}:{line}: {words}")


def test_a_part_and_a_result_cannot_share_a_name(tmp_path: Path) -> None:
    """A rule would read one for the other."""
    text = with_fields("key: [carrier, dest]").replace("max_dep_delay: max(", "dest: max(")
    (problem,) = problems_of(tmp_path, text)
    assert "windows.hourly.aggregates.dest: 'dest' is the name of a part of the key" in problem
    named = FLIGHTS.replace("origin", "rule").replace("key: rule", "key: [rule, dest]")
    (problem,) = problems_of(tmp_path, named)
    assert "windows.hourly.key: 'rule' is a part of the key, and the name of a column" in problem
    (problem,) = problems_of(
        tmp_path,
        with_fields("key: [carrier, dest]").replace("when: record_count >= 10", "when: key > 3"),
    )
    assert "reads 'key', a key of several columns; write its parts' names" in problem


def test_all_records_may_have_one_key(tmp_path: Path) -> None:
    """Rule A9: the column stays, null, and no column of the source is missing from the values."""
    text = with_fields("key: []", "where: origin <> 'EWR'").replace("min(dep", "count(origin")
    pipeline = load_text(tmp_path, text.replace("count(origin_delay)", "count_distinct(origin)"))
    hourly = pipeline.windows["hourly"]
    assert "key" not in hourly.result_columns(pipeline.source)
    for table in WINDOWS:
        assert columns_of(pipeline, table)["key"] == "string"
        assert table_definition(pipeline, "hourly", table)["windows.hourly.key"] == "[]"
    assert specs_of(pipeline, "").of("hourly").final_windows.sorted_by == ("window_end",)
    late = columns_of(pipeline, "late_records")
    assert (late["origin"], late["carrier"]) == ("string", "string")
    text = with_fields("key: []").replace("when: record_count >= 10", "when: key is null")
    (problem,) = problems_of(tmp_path, text)
    assert "reads 'key', but all records have one key, which is null" in problem
    of_source = load_text(tmp_path, changed("key: origin", "key: []"))
    raw = columns_of(of_source, "raw_events")
    assert (raw["key"], raw["origin"]) == ("string", "string")
    assert of_source.windows["hourly"].keyed(of_source.source) == of_source.source


def test_checks_of_ones_own_read_the_parts_of_a_key(tmp_path: Path) -> None:
    """Rule A9: of results as rules do, and of records as the source declares them."""
    check = "    checks:\n      of_part:\n        that: carrier <> 'AA' and flight > 5\n"
    text = with_fields("key: [carrier, flight]").replace(GRACE, GRACE + check)
    text = text.replace("key: origin", "key: [origin, dest]")
    text = text.replace("windows:\n", "checks:\n  of_record:\n    that: dest <> 'EWR'\nwindows:\n")
    pipeline = load_text(tmp_path, text)
    hourly = pipeline.windows["hourly"]
    columns = hourly.result_columns(pipeline.source)
    of_results = own_checks_of_results(hourly, columns, "final_windows")
    assert of_results.columns["carrier"] == "`key`.`carrier`"
    assert of_results.types["flight"] == "bigint"
    assert own_checks_of_records(pipeline).columns["dest"] == "`key`.`dest`"
