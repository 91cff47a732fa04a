"""The aggregate functions by name, which parsers, docs and tests go over."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches

from windows_pipeline.aggregates import counts, extremes, lists, percentiles, sums, variances
from windows_pipeline.aggregates.function import Function

FUNCTIONS: Mapping[str, Function] = {
    value.name: value
    for family in (counts, sums, extremes, variances, lists, percentiles)
    for value in vars(family).values()
    if isinstance(value, Function)
}
SYNONYMS: Mapping[str, Function] = {
    synonym: function for function in FUNCTIONS.values() for synonym in function.synonyms
}
"""Other names by which functions may be called."""
RECORD_COUNTS = frozenset({"count", "size", "len", "length", "n", "nrows", "rowcount"})
"""Calls that count all records where they name no column."""
_OTHER_NAMES = {
    other: function.name for function in FUNCTIONS.values() for other in function.other_names
}


def meant(name: str, column: str) -> str | None:
    """Returns what to write for an unknown function: a name or a call; None if nothing is near.

    Args:
        name: The name in the user's text.
        column: The column that the user's text names.
    """
    called = name.lower().replace("_", "")  # 'countDistinct' and 'count_distinct' are one
    numbered = percentiles.numbered_percentile(called, column)
    if numbered is not None:
        return numbered
    if called in _OTHER_NAMES:
        return _OTHER_NAMES[called]
    near = get_close_matches(name.lower(), FUNCTIONS, 1, 0.8)
    return near[0] if near else None
