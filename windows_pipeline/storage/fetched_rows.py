"""Rows of a micro-batch that are computed once for several steps, on the driver or in Spark."""

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

    def __init__(self, computed: DataFrame, fetched: pa.Table | None = None) -> None:
        """Wraps rows.

        Args:
            computed: The rows in Spark. If `fetched` holds them, only the schema is used.
            fetched: The rows on the driver; None if they stay in Spark.
        """
        self._computed = computed
        self._fetched = fetched

    @cached_property
    def frame(self) -> DataFrame:
        """The rows as a frame, for further queries."""
        if self._fetched is None:
            return self._computed
        spark = self._computed.sparkSession
        # Spark refuses a column of lists without chunks, which a filter may leave.
        fetched = self._fetched if self._fetched.num_rows else self._fetched.schema.empty_table()
        frame: DataFrame = spark.createDataFrame(fetched, self._computed.schema)
        return frame

    @property
    def rows(self) -> DataFrame | pa.Table:
        """The rows: an Arrow table if they are on the driver, else a frame."""
        return self._computed if self._fetched is None else self._fetched

    @property
    def columns(self) -> list[str]:
        """The columns' names."""
        return self._computed.columns if self._fetched is None else self._fetched.column_names

    def where(self, flag: str) -> FetchedRows:
        """The rows for which a boolean column is true."""
        if self._fetched is None:
            return FetchedRows(self._computed.where(F.col(flag)))
        return self._only(self._fetched, self._fetched[flag].fill_null(fill_value=False))

    def known(self, name: str) -> FetchedRows:
        """The rows for which a column is not null."""
        if self._fetched is None:
            return FetchedRows(self._computed.where(F.col(name).isNotNull()))
        return self._only(self._fetched, self._fetched[name].is_valid())

    def _only(self, fetched: pa.Table, wanted: pa.ChunkedArray) -> FetchedRows:
        # Usually all rows are wanted, and copying them takes as long as writing them.
        if pc.all(wanted).as_py():
            return self
        return FetchedRows(self._computed, fetched.filter(wanted))

    def totals(self, known: Sequence[str], summed: Sequence[str]) -> list[int]:
        """Counts and sums columns.

        Args:
            known: Columns whose values that are not null are counted.
            summed: Columns whose values are added up; true counts as 1.

        Returns:
            The counts, then the sums.
        """
        if self._fetched is not None:
            counts = [len(self._fetched) - self._fetched[name].null_count for name in known]
            return counts + [pc.sum(self._fetched[name], min_count=0).as_py() for name in summed]
        sums = [F.coalesce(F.sum(F.col(name).cast("bigint")), F.lit(0)) for name in summed]
        return list(self._computed.agg(*map(F.count, known), *sums).collect()[0])


def fetched_rows(rows: DataFrame, *, may_fetch: bool) -> FetchedRows:
    """Computes rows once, and collects them to the driver if possible.

    Collected rows need no Spark checkpoint, and no table collects them again. Rows that stay in
    Spark are checkpointed, so that later queries do not analyse the plan that made them.

    Args:
        rows: The rows.
        may_fetch: Whether to try to collect them. They stay in Spark if they exceed its limit of
            results.
    """
    fetched = delta_rs.fetch(rows) if may_fetch else None
    return FetchedRows(rows.localCheckpoint() if fetched is None else rows, fetched)
