"""Names that aggregates have in other tools, so that errors can suggest the aggregate meant."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

from windows_pipeline.aggregates.aggregate import Function

RECORD_COUNTS = frozenset({"count", "size", "len", "length", "n", "nrows", "rowcount"})
"""Calls that count all records where they name no column."""
# Keys are in lower case and without underscores: 'countDistinct' and 'count_distinct' are one.
_FUNCTIONS = {
    **dict.fromkeys(("mean", "average"), Function.AVG),
    **dict.fromkeys(("std", "stdev", "stddevsampled", "stdevs", "sd"), Function.STDDEV),
    **dict.fromkeys(("standarddeviation", "stdsamp"), Function.STDDEV),
    **dict.fromkeys(("stdevp", "stdpop", "stddevp", "stdp"), Function.STDDEV_POP),
    **dict.fromkeys(("var", "vars", "varsample", "variancesamp"), Function.VARIANCE),
    **dict.fromkeys(("varp", "variancep", "variancepop"), Function.VAR_POP),
    **dict.fromkeys(("minimum", "least", "smallest", "lowest"), Function.MIN),
    **dict.fromkeys(("maximum", "greatest", "largest", "highest"), Function.MAX),
    **dict.fromkeys(("nunique", "ndistinct", "distinct", "unique"), Function.COUNT_DISTINCT),
    **dict.fromkeys(("uniq", "uniqexact", "countunique", "dcount"), Function.COUNT_DISTINCT),
    **dict.fromkeys(("approxcountdistinct", "approxdistinct"), Function.COUNT_DISTINCT),
    **dict.fromkeys(("distinctcount", "cardinality"), Function.COUNT_DISTINCT),
    **dict.fromkeys(("quantile", "percentilecont", "percentiledisc"), Function.PERCENTILE),
    **dict.fromkeys(("approxpercentile", "percentileapprox"), Function.PERCENTILE),
    **dict.fromkeys(("approxquantile", "quantilecont", "quantiledisc"), Function.PERCENTILE),
    **dict.fromkeys(("total", "add"), Function.SUM),
    **dict.fromkeys(("med", "medianapprox"), Function.MEDIAN),
    **dict.fromkeys(("firstvalue", "earliest", "head", "anyvalue"), Function.FIRST),
    **dict.fromkeys(("lastvalue", "latest", "tail"), Function.LAST),
    **dict.fromkeys(("arrayagg", "listagg", "list", "grouparray"), Function.COLLECT_LIST),
    **dict.fromkeys(("countnonnull", "size", "len", "length"), Function.COUNT),
}
_PERCENTILE = re.compile(r"(?:p|pct|perc|percentile|quantile)([0-9]{1,4})")
"""A percentile with its number in the name: p95, p99_9, quantile05."""
_NUMBERED = "percentile({column}, {fraction})"


def meant(name: str, column: str, functions: Collection[Function]) -> str | None:
    """Returns what to write for an unknown function: a name or a call; None if nothing is near.

    Args:
        name: The name in the user's text.
        column: The column that the user's text names.
        functions: The functions to suggest.
    """
    called = name.lower().replace("_", "")
    numbered = _PERCENTILE.fullmatch(called)
    if numbered and Function.PERCENTILE in functions:
        digits = numbered[1].zfill(2)
        fraction = 1 if digits == "100" else float(f"0.{digits}")
        return _NUMBERED.format(column=column, fraction=f"{fraction:g}")
    function = _FUNCTIONS.get(called)
    if function in functions:
        return str(function)
    near = get_close_matches(name.lower(), functions, 1, 0.8)
    return str(near[0]) if near else None
