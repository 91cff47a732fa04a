"""Rows of a micro-batch that several steps take: here, or kept in Spark."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from windows_pipeline.storage import delta_rs


class FetchedRows:
    """Rows that were computed once."""

    def __init__(self, computed: DataFrame, here: pa.Table | None = None) -> None:
        """Takes them as they are; of those that are here `computed` tells the columns only."""
        self._computed = computed
        self._here = here

    @cached_property
    def frame(self) -> DataFrame:
        """They, for further queries."""
        if self._here is None:
            return self._computed
        spark = self._computed.sparkSession
        frame: DataFrame = spark.createDataFrame(self._here, self._computed.schema)
        return frame

    @property
    def rows(self) -> DataFrame | pa.Table:
        """They, as they are."""
        return self._computed if self._here is None else self._here

    @property
    def columns(self) -> list[str]:
        """The columns' names."""
        return self._computed.columns if self._here is None else self._here.column_names

    def where(self, flag: str) -> FetchedRows:
        """Those of which a boolean column is true."""
        if self._here is None:
            return FetchedRows(self._computed.where(F.col(flag)))
        return self._only(self._here, self._here[flag].fill_null(fill_value=False))

    def known(self, name: str) -> FetchedRows:
        """Those of which a column is not null."""
        if self._here is None:
            return FetchedRows(self._computed.where(F.col(name).isNotNull()))
        return self._only(self._here, self._here[name].is_valid())

    def _only(self, here: pa.Table, wanted: pa.ChunkedArray) -> FetchedRows:
        # Mostly all of them, and to copy them takes as long as to write them.
        return self if pc.all(wanted).as_py() else FetchedRows(self._computed, here.filter(wanted))

    def totals(self, known: Sequence[str], summed: Sequence[str]) -> list[int]:
        """How many rows have a value of some columns, then the sums of others; true is one."""
        if self._here is not None:
            counts = [len(self._here) - self._here[name].null_count for name in known]
            return counts + [pc.sum(self._here[name], min_count=0).as_py() for name in summed]
        sums = [F.coalesce(F.sum(F.col(name).cast("bigint")), F.lit(0)) for name in summed]
        return list(self._computed.agg(*map(F.count, known), *sums).collect()[0])


def fetched_rows(rows: DataFrame, *, may_fetch: bool) -> FetchedRows:
    """Computes rows once.

    Those that come here are not written down by Spark, nor fetched again for each table. Either
    way they come without the plan that made them: each further query would look through it again.

    Args:
        rows: The rows.
        may_fetch: Whether they may come here; they stay there if they are too many for that.
    """
    here = delta_rs.fetch(rows) if may_fetch else None
    return FetchedRows(rows.localCheckpoint() if here is None else rows, here)
