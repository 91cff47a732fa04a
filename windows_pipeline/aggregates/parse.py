"""Aggregates by their text in a pipeline's file."""

from __future__ import annotations

import re

from windows_pipeline.aggregates.aggregate import Aggregate, Function

_CALL = re.compile(
    r"\s*(?P<function>\w+)\s*\(\s*(?P<column>\w+|\*)\s*(,\s*(?P<percentage>[^\s,()]+)\s*)?\)\s*"
)
_SYNONYMS = {"var_samp": Function.VARIANCE, "stddev_samp": Function.STDDEV}
# A list is no column that a table of results or a rule over them could take.
_FUNCTIONS = [function for function in Function if function is not Function.COLLECT_LIST]


def parse_aggregate(name: str, text: str) -> Aggregate:
    """Reads an aggregate from text such as 'avg(dep_delay)' or 'percentile(dep_delay, 0.95)'.

    Raises:
        ValueError: No call of a function, or an unknown one; names the value and the cure.
    """
    known = ", ".join(_FUNCTIONS)
    call = _CALL.fullmatch(text)
    if call is None:
        raise ValueError(
            f"{text!r} is no aggregate; write one as 'avg(column)', with one of {known}"
        )
    called = call["function"].lower()
    function = _SYNONYMS.get(called, called)
    if function not in _FUNCTIONS:
        raise ValueError(f"{text!r}: unknown aggregate {call['function']!r}; use one of {known}")
    if call["column"] == "*":
        raise ValueError(f"{text!r}: record_count is there without asking; name a column")
    try:
        return Aggregate(name, Function(function), call["column"], _number(call["percentage"]))
    except ValueError as error:
        raise ValueError(f"{text!r}: {error}, as in 'percentile(column, 0.95)'") from None


def _number(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"percentage: {text!r} is no number; write one from 0 to 1") from None
