"""Rules use the listed grammar and nothing else, and compile to safe SQL (rules E5 and H1)."""

from __future__ import annotations

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlglot import exp

from windows_pipeline.alerts.rule_sql import RuleError, compile_rule
from windows_pipeline.text.limits import MAX_TEXT

COLUMNS = {
    "key": "string",
    "window_start": "timestamp",
    "window_end": "timestamp",
    "opened_on": "date",
    "record_count": "bigint",
    "avg_dep_delay": "double",
}


def condition(text: str) -> str:
    return compile_rule(text, COLUMNS, "boolean").sql


def number(text: str) -> str:
    return compile_rule(text, COLUMNS, "number").sql


def refusal(text: str) -> str:
    with pytest.raises(RuleError) as refused:
        condition(text)
    shown = repr(text) if len(text) <= MAX_TEXT else f"{repr(text)[:59]}…"
    assert str(refused.value).startswith(shown)
    return str(refused.value)


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("record_count < 4", "(`record_count` < 4L)"),
        (
            "record_count >= 10 and avg_dep_delay > 60",
            "((`record_count` >= 10L) AND (`avg_dep_delay` > 60L))",
        ),
        (
            "hour(from_utc_timestamp(window_start, 'America/New_York')) between 9 and 20",
            (
                "(CAST(HOUR(FROM_UTC_TIMESTAMP(`window_start`, 'America/New_York')) AS BIGINT) "
                "BETWEEN 9L AND 20L)"
            ),
        ),
        ("key in ('EWR', 'JFK')", "(`key` IN ('EWR', 'JFK'))"),
        ("opened_on is not null", "(NOT (`opened_on` IS NULL))"),
        ("window_end - interval 1 hour >= '2013-07-01 12:00:00'", None),
        ("interval 90 minutes + window_start > timestamp '2013-07-01 00:00:00'", None),
        ("to_date(window_start) = '2013-07-01' or opened_on < date '2013-07-01'", None),
        ("case when record_count > 0 then avg_dep_delay else null end > 3", None),
        ("`record_count` = 3", "(`record_count` = 3L)"),
        ("lower(left(key, 3)) = 'ewr'", "(LOWER(LEFT(`key`, 3)) = 'ewr')"),
        ("try_cast(key as bigint) > 3", "(TRY_CAST(`key` AS BIGINT) > 3L)"),
    ],
)
def test_conditions_compile_to_sql(text: str, sql: str | None) -> None:
    written = condition(text)
    assert sql is None or written == sql
    assert sqlglot.parse_one(written, read="spark")


@pytest.mark.parametrize(
    "text",
    [
        "-record_count",
        "record_count",
        "3.5",
        "10L",
        "abs(avg_dep_delay) * 2 + record_count % 7",
        "round(avg_dep_delay, 1) + round(record_count, -18) + floor(1.5) + ceil(1.5)",
        "coalesce(avg_dep_delay, 0)",
        "least(avg_dep_delay, 100) + greatest(record_count, 1)",
        "if(record_count > 3, 1, 0)",
        "hour(window_start) + minute(window_start) + dayofweek(window_start)",
        "year(opened_on) + month(opened_on) + day(window_start)",
        "unix_millis(window_end) - unix_millis(window_start) + unix_seconds(window_end)",
        "cast(record_count as double)",
    ],
)
def test_expressions_of_numbers_compile(text: str) -> None:
    assert number(text)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("reflect('java.lang.System', 'exit', 1) = 1", "reflect()"),
        ("java_method('java.lang.System', 'exit', 1) = 1", "java_method()"),
        ("(select 1) = 1", "subquery"),
        ("exists (select 1)", "exists"),
        ("record_count in (select 1)", "query"),
        ("record_count = any (select 1)", "any"),
        ("current_user() = 'x'", "current_user()"),
        ("rand() > 0.5", "rand()"),
        ("now() > window_end", "now()"),
        ("current_timestamp > window_end", "current_timestamp()"),
        ("input_file_name() = 'x'", "input_file_name()"),
        ("ai_query('model', key) = 'x'", "ai_query()"),
        ("http_get('x') = 'y'", "http_get()"),
        (
            "count(*) > 3",
            "count(), which expressions cannot use; write it under aggregates",
        ),
        ("sum(record_count) over (partition by key) > 3", "window"),
        ("exists(array(1), x -> x > 1)", "exists"),
        ("transform(array(1), x -> x) is null", "transform()"),
        ("key like 'J%'", "like"),
        ("key || 'x' = 'y'", "'||'"),
        ("record_count & 1 = 1", "'&'"),
        ("record_count < < 4", "'<<'"),
        ("*", "star"),
        ("key[0] = 'x'", "[...] takes a list"),
        (":parameter = 1", "placeholder"),
        ("${env:HOME} = 1", "parameter"),
        ("cast(key as binary) = 'x'", "BINARY"),
        ("repeat(key, 1000000000) = 'x'", "repeat()"),
        ("regexp_replace(key, '(a+)+', '') = 'x'", "regexp_replace()"),
        ("cast(record_count as struct<a: int>) is null", "STRUCT"),
        ("to_date(window_start, 'yyyy') = opened_on", "format"),
        ("round(avg_dep_delay, 1, 2) = 1", "truncate"),
        ("record_count between symmetric 3 and 1", "symmetric"),
        ("case record_count when 1 then true end", "case"),
    ],
)
def test_an_error_names_a_node_that_the_grammar_does_not_list(text: str, named: str) -> None:
    assert named in refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-- nothing",
        "record_count > 3;",
        "record_count > 3; drop table x",
        "record_count 3",
        "record_count > 3 union select 1",
        "key = 'open",
        "(" * 900 + "record_count > 3" + ")" * 900,
        "record_count > 3 and " * 200 + "true",
        "record_count" + "::int" * 300 + " > 3",
    ],
)
def test_a_rule_must_be_one_expression(text: str) -> None:
    refusal(text)


def test_comments_and_hints_do_not_reach_spark() -> None:
    written = condition("record_count /*+ hint */ > 3 /* c1 */ -- c2")
    assert written == "(`record_count` > 3L)"


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("recordcount > 3", "did you mean 'record_count'?"),
        ("zzz > 3", "use one of key, window_start"),
        ("result.record_count > 3", "write the name of the column alone"),
        ("`record_count``x` > 3", "no column"),
        ("`(select 1)` > 3", "no column"),
        ("avg_dep_delay = null", "write 'is null'"),
        ("avg_dep_delay > '60'", "compare numbers with numbers, strings with strings, times with"),
        ("hour(key) = 3", "takes a timestamp"),
        ("record_count and true", "takes a boolean"),
        ("window_start > '2013-02-30'", "is not a time"),
        ("window_start > 'yesterday'", "write it as '2013-07-01'"),
        ("window_start - interval 1 hour 30 minutes > window_end", "interval 90 minutes"),
        ("window_end - window_start > interval 1 hour", "one interval"),
        ("window_end > window_start + interval 999999999 weeks", "is longer than 10,000 years; wr"),
        (
            "hour(from_utc_timestamp(window_start, 'America/NewYork')) > 3",
            "did you mean 'America/New_York'?",
        ),
        (
            "window_end > window_start" + " + interval 30000000 hours" * 3,
            "together are longer than 10,000 ",
        ),
        ("round(avg_dep_delay, 2147483648) > 1", "needs a whole number from -18 to 18 there"),
        ("round(avg_dep_delay, record_count) > 1", "needs a whole number from -18 to 18 there"),
        ("record_count > 12345678901234567890", "at most 18"),
        ("(record_count > 3) = true", "and, or, not"),
        ("record_count > > 4", "to compare, write one '>'"),
        ("record_count > 3 || true", "if either condition must hold, write OR"),
        ("record_count > 3 & key = 'x'", "if both conditions must hold, write AND"),
        ("if record_count > 3 then true", "write if(condition, a, b), or case when"),
        ("record_count is 4", "or compare values by '='"),
        ("key = JFK", "or put text in single quotes"),
        ("record_count", "must be a boolean, not a number"),
    ],
)
def test_an_error_has_the_fix_of_the_mistake(text: str, fix: str) -> None:
    assert fix in refusal(text)


def test_a_condition_cannot_be_a_severity() -> None:
    with pytest.raises(RuleError, match="must be a number, not a boolean"):
        number("record_count > 3")


def test_a_decimal_is_a_number() -> None:
    columns = {"total": "decimal(22,2)", "record_count": "bigint"}
    text = "total / record_count > 9.99 and total <> 0 and total between 1 and 2.5"
    assert compile_rule(text, columns, "boolean")
    assert compile_rule("coalesce(total, 0)", columns, "number").sql == (
        "COALESCE(`total`, CAST(0L AS DECIMAL(22,2)))"
    )
    with pytest.raises(RuleError, match="compares number with string"):
        compile_rule("total = 'much'", columns, "boolean")


def test_a_column_of_another_type_is_refused() -> None:
    with pytest.raises(RuleError, match="of type binary"):
        compile_rule("raw is null", {"raw": "binary"}, "boolean")


LISTS = {"codes": "array<string>", "counts": "array<bigint>", "raw": "array<binary>", "n": "bigint"}


@pytest.mark.parametrize(
    ("text", "sql"),
    [
        ("size(codes) > 2", "(CAST(SIZE(`codes`) AS BIGINT) > 2L)"),
        ("counts[0] >= 3", "(TRY_ELEMENT_AT(`counts`, 1) >= 3L)"),
        ("element_at(codes, -1) = 'x'", "(TRY_ELEMENT_AT(`codes`, -1) = 'x')"),
        ("array_contains(codes, 'x')", "ARRAY_CONTAINS(`codes`, 'x')"),
        ("codes is not null", "(NOT (`codes` IS NULL))"),
        ("size(raw) = 0", "(CAST(SIZE(`raw`) AS BIGINT) = 0L)"),
    ],
)
def test_a_rule_reads_a_list_and_an_element_that_is_not_there_is_null(text: str, sql: str) -> None:
    """Rules E5, H1: Spark's x[0] would fail a run in a window without values."""
    found = compile_rule(text, LISTS, "boolean")
    assert (found.sql, found.fails) == (sql, None)


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("codes = codes", "compares a list; use size(x), x[0], element_at(x, -1) or array_con"),
        ("coalesce(codes, codes) is null", "takes no list; use size(x), x[0]"),
        ("codes", "must be a boolean, not a list"),
        ("n[0] > 1", "[...] takes a list, but n is of kind number; name a column"),
        ("size(n) > 1", "size() takes a list, but n is a number"),
        ("counts[n] > 1", "an element's number is a whole number; write x[0] or element_at(x, 1)"),
        ("counts[-1] > 1", "element_at(x, -1) for the last"),
        ("counts[2147483648] > 1", "write x[0] or element_at(x, 1) for the first"),
        ("element_at(counts, 2147483648) > 1", "write x[0] or element_at(x, 1) for the first"),
        ("element_at(counts, 0) > 1", "write x[0] or element_at(x, 1) for the first"),
        ("counts[0] = 'x'", "compares number with string"),
        ("array_contains(counts, 'x')", "looks for a string among elements of kind number; wri"),
        ("raw[0] is null", "array<binary>, whose elements expressions cannot use; use size"),
        ("transform(codes, x -> x) is null", "uses transform(), which expressions cannot use"),
        ("array(1, 2) is null", "uses array(), which expressions cannot use"),
    ],
)
def test_an_error_about_a_list_has_the_fix(text: str, fix: str) -> None:
    with pytest.raises(RuleError) as refused:
        compile_rule(text, LISTS, "boolean")
    assert fix in str(refused.value)


@pytest.mark.parametrize("text", [r"'\u0024{env:HOME}'", "'${env:HOME}'", "'${spark.app.name}'"])
def test_a_literal_cannot_insert_configuration(text: str) -> None:
    # Spark replaces ${...} before it parses, within literals too.
    assert "Spark would replace" in refusal(f"key = {text}")


def test_division_by_zero_is_null_not_an_error() -> None:
    # B8: a window of count 0 is a result; a rule over it must not fail the run.
    assert number("avg_dep_delay / record_count") == (
        "(`avg_dep_delay` / NULLIF(CAST(`record_count` AS DOUBLE), 0D))"
    )
    assert "NULLIF" in number("record_count % 3")


def test_two_minus_signs_do_not_become_a_comment() -> None:
    assert "--" not in number("- -record_count")


@given(
    st.text(st.characters(codec="utf-8"), max_size=40).filter(
        lambda text: text.isprintable() and "\\" not in text and "${" not in text
    )
)
def test_a_string_stays_one_string(value: str) -> None:
    escaped = value.replace("'", "\\'")
    written = condition(f"key = '{escaped}'")
    tree = sqlglot.parse_one(written, read="spark").unnest()
    assert isinstance(tree, exp.EQ)
    assert isinstance(tree.expression, exp.Literal)
    assert tree.expression.this == value
    # For Spark one quote opens, one closes, and quotes between them are escaped.
    inside = written.removeprefix("(`key` = '").removesuffix("')")
    assert inside.replace("\\'", "").count("'") == 0


@given(st.text(max_size=60))
def test_any_text_compiles_or_raises_a_rule_error(text: str) -> None:
    try:
        written = condition(text)
    except RuleError:
        return
    assert sqlglot.parse_one(written, read="spark")
