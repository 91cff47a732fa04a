"""A result's columns have names of their own, and each cure can be taken where it stands (F3)."""

from __future__ import annotations

import pytest

from windows_pipeline.aggregates import Aggregate, Function
from windows_pipeline.result_names import require_apart, require_once, require_results

TOTAL = Aggregate("total", Function.SUM, "value_0_0", written="amount")


def test_a_key_that_is_named_twice_is_to_be_named_once() -> None:
    """Spark does not tell names apart by case, and a key has no alias."""
    with pytest.raises(ValueError, match=r"^by: 'Key' comes twice; name each column"):
        require_results(["key", "Key"], [], [])


@pytest.mark.parametrize("name", ["closed", "Window_End"])
def test_a_key_with_the_name_of_the_results_own_is_to_be_renamed_before(name: str) -> None:
    cure = f"rename yours before, as with events.withColumnRenamed\\('{name}', 'own_{name}'\\)"
    with pytest.raises(ValueError, match=f"^by: '{name}' is a column that the result .*; {cure}"):
        require_results(["key", name], ["window_end", "closed"], [])


@pytest.mark.parametrize("taken", [["total"], ["TOTAL"]])
def test_an_aggregate_with_another_columns_name_is_to_have_an_alias(taken: list[str]) -> None:
    told = r"^of: 'total' would be .*; give sum\(amount\) another with \.alias\('...'\)"
    with pytest.raises(ValueError, match=told):
        require_results(taken, [], [TOTAL])
    with pytest.raises(ValueError, match=told):
        require_results([], taken, [TOTAL])
    with pytest.raises(ValueError, match=told):
        require_results([], [], [TOTAL, TOTAL])


def test_names_that_differ_are_taken() -> None:
    require_results(["key", "part"], ["closed"], [TOTAL])
    require_apart("events", ["key", "at"], ["reason"])
    require_once("select", ["start", "end"], "rename one")
