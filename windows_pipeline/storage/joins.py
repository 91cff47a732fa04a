"""Joins frames by a window's columns; the key may be null (rule A9)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

_PREFIX = "_joined_"


def join_on(left: DataFrame, right: DataFrame, columns: Sequence[str], how: str) -> DataFrame:
    """Joins two frames by equal columns, as `DataFrame.join` does, but null equals null.

    Args:
        left: A frame.
        right: A frame; besides `columns` it has no column that `left` has.
        columns: The columns of both that must be equal.
        how: `inner`, `left`, `semi` or `anti`.

    Returns:
        The columns of `left` and, with `inner` and `left`, the other columns of `right`.
    """
    others = [name for name in right.columns if name not in columns]
    renamed = [F.col(name).alias(f"{_PREFIX}{name}") for name in columns]
    same = [F.col(name).eqNullSafe(F.col(f"{_PREFIX}{name}")) for name in columns]
    joined = left.join(right.select(*renamed, *others), reduce(and_, same), how)
    return joined.drop(*(f"{_PREFIX}{name}" for name in columns))
