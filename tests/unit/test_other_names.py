"""An error about an aggregate under the name of another tool suggests the aggregate."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.pipeline_texts import changed, problems_of
from windows_pipeline.aggregates import FUNCTIONS, parse_aggregate

# Names that people know from SQL, pandas, Polars or spreadsheets, and what to write.
MEANT = {
    "mean": "avg",
    "Average": "avg",
    "std_dev": "stddev",
    "var": "variance",
    "nunique": "count_distinct",
    "countDistinct": "count_distinct",
    "approx_count_distinct": "count_distinct",
    "quantile": "percentile",
    "total": "sum",
    "greatest": "max",
    "any_value": "first",
    "medain": "median",
    "p5": "percentile(a, 0.05)",
    "p99_9": "percentile(a, 0.999)",
    "p100": "percentile(a, 1)",
    "pct_90": "percentile(a, 0.9)",
    "percentile95": "percentile(a, 0.95)",
    "quantile_25": "percentile(a, 0.25)",
}
FRACTION = dict.fromkeys(MEANT.values(), "") | {"percentile": ", 0.5"}
"""What a suggested function takes after its column."""
# Texts that are no call with one column, and words of the fix.
NO_CALL = {
    "mean": "'mean' is not an aggregate; did you mean 'avg(column)'?",
    "avg delay": "'avg delay' is not an aggregate; did you mean 'avg(delay)'?",
    "sum": "did you mean 'sum(column)'?",
    "count(distinct a)": "write 'count_distinct(a)'",
    "COUNT(DISTINCT(a))": "write 'count_distinct(a)'",
    "count()": "every result already has the number of records, as record_count; leave this agg",
    "size": "every result already has the number of records, as record_count",
    "delay": "'delay' is not an aggregate; write it as 'avg(column)', with one of count, count_d",
}


@pytest.mark.parametrize("name", MEANT)
def test_an_unknown_aggregate_has_the_name_to_write(name: str) -> None:
    """Rule G1 has the names."""
    with pytest.raises(ValueError, match=f"unknown aggregate '{name}'; did you mean ") as refused:
        parse_aggregate("x", f"{name}(a)")
    suggested = MEANT[name]
    assert f"did you mean {suggested!r}? Otherwise use one of count, " in str(refused.value)
    parse_aggregate("x", suggested if "(" in suggested else f"{suggested}(a{FRACTION[suggested]})")


@pytest.mark.parametrize("text", NO_CALL)
def test_a_text_that_is_no_call_has_the_call_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="is not an aggregate") as refused:
        parse_aggregate("x", text)
    assert NO_CALL[text] in str(refused.value)


def test_each_other_name_suggests_its_function() -> None:
    """No two functions have one other name, and none is a function's own name."""
    others = [name for function in FUNCTIONS.values() for name in function.other_names]
    assert len(set(others)) == len(others)
    assert not {*others, *FUNCTIONS} & {s for f in FUNCTIONS.values() for s in f.synonyms}
    for function in FUNCTIONS.values():
        for name in function.other_names:
            with pytest.raises(ValueError, match=f"did you mean '{function.name}'"):
                parse_aggregate("x", f"{name}(a)")


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("mean", "'mean' is not an aggregate; did you mean 'avg(column)'?"),
        ("p95(distance)", "did you mean 'percentile(distance, 0.95)'?"),
        ("nunique(distance)", "did you mean 'count_distinct'?"),
    ],
)
def test_a_pipelines_error_has_the_suggestion(tmp_path: Path, text: str, fix: str) -> None:
    (problem,) = problems_of(tmp_path, changed("sum(distance)", text))
    assert f": windows.hourly.aggregates.total_distance: {text!r} " in problem
    assert fix in problem
