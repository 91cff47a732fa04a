"""Any text as a rule or an aggregate is compiled or refused, whoever calls (rules E5, G1)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TypeVar

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.mutations import mutated
from windows_pipeline.aggregates import Aggregate, parse_aggregate
from windows_pipeline.alerts.rule_sql import RuleError, columns_read, compile_rule
from windows_pipeline.text.limits import MAX_TEXT
from windows_pipeline.windows.durations import duration_ms, duration_text

T = TypeVar("T")

COLUMNS = {
    "key": "string",
    "window_start": "timestamp",
    "record_count": "bigint",
    "opened_on": "date",
    "mean": "double",
    "total": "decimal(22,2)",
}
LONGEST_ERROR = 9 * MAX_TEXT
"""An error may show the text with each character as an escape of up to 4 characters, twice."""
RULES = [
    "record_count >= 10 and mean > 60 or key in ('EWR', 'JFK')",
    "hour(from_utc_timestamp(window_start, 'America/New_York')) between 9 and 20",
    "case when record_count > 0 then mean / record_count else null end > -3.5e2",
    "coalesce(total, 0) <> least(1, 2.50) and not (opened_on is null)",
    "window_start - interval 90 minutes >= timestamp '2013-07-01 12:00:00'",
    "cast(window_start as date) = '2013-07-01' and if(mean % 2 = 1, true, false)",
]
AGGREGATES = ["avg(dep_delay)", "percentile(dep_delay, 0.95)", "count_distinct( x )", "sum(a)"]
DURATIONS = ["1 hour 30 minutes", "-10 ms", "6h", "2 weeks 1 day"]
PIECES = [
    *(b"(", b")", b"[", b"]", b"{", b"}", b"<", b">", b"'", b'"', b"`", b"\\", b";", b"--", b"/*"),
    *(b"*/", b"::", b"->", b"=>", b"||", b"&&", b"!", b"~", b"@", b"$", b"${x}", b"?", b":p", b","),
    *(b" and ", b" or ", b" not ", b" is ", b" null ", b" in (", b" between ", b" case when "),
    *(b" then ", b" end ", b" interval ", b" cast(", b" as ", b" select ", b" over (", b" from "),
    *(b"date ", b"timestamp ", b"lateral view ", b"x'41'", b"1e400", b"0x1F", b"9" * 40, b"1L"),
    *(b"\x00", b"\xff", b"\xf0\x9f\x98\x80", b"\xe2\x80\xae", b"\n", b"\t", b"array<", b"struct<"),
    *(b"percentile(", b", nan)", b", 1e999)", b", -0.5)", b"distinct ", b"*", b"avg"),
]


def require_short_error(error: ValueError, start: str = "") -> None:
    assert str(error).startswith(start)
    assert 0 < len(str(error)) < LONGEST_ERROR


def require_rule(text: str) -> bool:
    """Whether a text is a rule; if so, what it is compiled to is SQL."""
    for want in ("boolean", "number"):
        try:
            written = compile_rule(text, COLUMNS, want)
        except RuleError as error:
            require_short_error(error)
            continue
        assert sqlglot.parse_one(written.sql, read="spark")
        assert columns_read(text) <= COLUMNS.keys()
        return True
    return False


def require_aggregate(text: str) -> bool:
    try:
        found = parse_aggregate("x", text)
    except ValueError as error:
        require_short_error(error)
        return False
    assert parse_aggregate("x", str(found)) == found
    return True


def require_duration(text: str) -> bool:
    try:
        found = duration_ms(text, "grace")
    except ValueError as error:
        require_short_error(error, "grace: ")
        return False
    assert duration_ms(duration_text(found), "grace") == found
    return True


PARSERS: dict[str, tuple[list[str], Callable[[str], bool]]] = {
    "rules": (RULES, require_rule),
    "aggregates": (AGGREGATES, require_aggregate),
    "durations": (DURATIONS, require_duration),
}


def fuzz(name: str, seeds: range) -> None:
    texts, require = PARSERS[name]
    found = set()
    for seed in seeds:
        random = Random(seed)
        text = mutated(random, random.choice(texts).encode(), PIECES, most=3)
        found.add(require(text.decode(errors="replace")))
    assert found == {True, False}  # else the changes are too few, or too many


@pytest.mark.parametrize("name", PARSERS)
def test_a_changed_text_is_read_or_refused(name: str) -> None:
    fuzz(name, range(400))


@pytest.mark.long
@pytest.mark.parametrize("name", PARSERS)
def test_many_changed_texts_are_read_or_refused(name: str) -> None:
    fuzz(name, range(1_000, 16_000))


@given(st.text(max_size=80), st.sampled_from(sorted(PARSERS)))
@settings(max_examples=200, deadline=None)
def test_any_text_is_read_or_refused(text: str, name: str) -> None:
    PARSERS[name][1](text)


OPEN = 20
"""How many parentheses, cases and signs may be open at once."""
LEVELS = 100
DEEPEST = {
    "parentheses": ("(" * OPEN + "mean" + ")" * OPEN, "number"),
    "functions": ("abs(" * OPEN + "mean" + ")" * OPEN, "number"),
    "coalesce": ("coalesce(mean, " * OPEN + "1" + ")" * OPEN, "number"),
    "casts": ("cast(" * OPEN + "mean" + " as int)" * OPEN, "number"),
    "cases": ("case when mean > 1 then " * OPEN + "1" + " end" * OPEN, "number"),
    "ifs": ("if(mean > 1, " * OPEN + "1" + ", 2)" * OPEN, "number"),
    "not": ("not " * OPEN + "mean > 1", "boolean"),
    "minus": ("- " * OPEN + "mean", "number"),
    "sums in parentheses": ("(1 + " * OPEN + "mean" + ")" * OPEN, "number"),
    "minus in parentheses": ("(- " * (OPEN - 1) + "mean" + ")" * (OPEN - 1), "number"),
    "a sum": ("mean" + " + 1" * (LEVELS - 2), "number"),
    "or": ("mean > 1" + " or mean > 1" * (LEVELS - 3), "boolean"),
    "casts in a row": ("mean" + "::double" * (LEVELS - 2), "number"),
    "a list": ("record_count in (" + ", ".join("7" for _ in range(600)) + ")", "boolean"),
    "many cases": ("case " + "when mean > 1 then 2 " * 90 + "end", "number"),
    "many values": ("greatest(" + ", ".join("mean" for _ in range(300)) + ")", "number"),
}


def called(times: int, function: Callable[[], T]) -> T:
    return function() if times == 0 else called(times - 1, function)


@pytest.mark.parametrize(("text", "want"), DEEPEST.values(), ids=DEEPEST)
def test_the_deepest_rules_compile_whoever_calls(text: str, want: str) -> None:
    """A rule that a command takes must not be too deep in Dagster, which stacks more calls."""
    compiled = compile_rule.__globals__["_compiled"]
    compiled.cache_clear()
    wanted = "boolean" if want == "boolean" else "number"
    assert called(300, lambda: compile_rule(text, COLUMNS, wanted))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "(" * (OPEN + 1) + "mean" + ")" * (OPEN + 1),
        "case when true then " * (OPEN + 1) + "1" + " end" * (OPEN + 1),
        "not " * (OPEN + 1) + "true",
        "- " * (OPEN + 1) + "mean",
        "(" * OPEN + "- mean" + ")" * OPEN,
        "(" * 900 + "mean" + ")" * 900,
        "[" * 1_900,
    ],
)
def test_a_rule_has_at_most_so_many_open(text: str) -> None:
    with pytest.raises(RuleError) as refused:
        compile_rule(text, COLUMNS, "number")
    assert str(refused.value).endswith(
        "must have at most 20 parentheses, cases, minus signs and 'not' open at once, but has "
        "more; simplify it, or divide it into several rules"
    )


@pytest.mark.parametrize("text", ["mean" + " + 1" * LEVELS, "true" + " or mean > 1" * LEVELS])
def test_a_rule_has_at_most_so_many_levels(text: str) -> None:
    with pytest.raises(RuleError) as refused:
        compile_rule(text, COLUMNS, "number")
    assert str(refused.value).endswith(
        "must have at most 100 levels, where each operator of a chain is one, but has more; "
        "simplify it ('x in (...)' for many 'or'), or divide it into several rules"
    )


def test_a_percentage_is_a_number_from_0_to_1() -> None:
    assert require_aggregate("percentile(x, 1e-3)")
    for text in ("nan", "inf", "1e999", "-0.5", "1.01", "0x1", "", "1_0e-1x"):
        assert not require_aggregate(f"percentile(x, {text})"), text
    assert isinstance(parse_aggregate("x", "percentile(x, 1)"), Aggregate)
