"""Count windows of each partition: records in arrival order in, windows out.

A key's records are never in memory all at once: only those that a later window can contain.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.kernels.aggregates.dispatch import aggregate_windows, parts_of
from windows_pipeline.kernels.groups import CHUNK_ROWS, group_starts
from windows_pipeline.kernels.order import in_order, require_order
from windows_pipeline.kernels.windows.count import CountedGroups
from windows_pipeline.kernels.windows.filled import WindowedRecords
from windows_pipeline.windows.count_windows import CountWindows


class CountKernel:
    """Computes the count windows of each partition; see `evaluate_counts`."""

    def __init__(
        self,
        computed_days: Mapping[int, CountWindows],
        keys: Sequence[str],
        aggregates: Sequence[Aggregate],
        chunk_rows: int = CHUNK_ROWS,
        *,
        with_failed: bool = False,
    ) -> None:
        self._computed_days = dict(computed_days)
        self._with_failed = with_failed
        self._by = ["_computed_day", *keys]
        self._aggregates = list(aggregates)
        self._chunk_rows = chunk_rows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes a partition's batches as `in_group_order` sorts them, by offset."""
        buffered: list[pa.RecordBatch] = []
        buffered_rows, least_rows = 0, self._chunk_rows
        skipped = done = 0
        for batch in in_order(batches):
            buffered.append(batch)
            buffered_rows += batch.num_rows
            if buffered_rows < least_rows:
                continue
            table = pa.Table.from_batches(buffered).combine_chunks()
            groups = self._groups(table, skipped, done)
            yield from self._windows(table, groups)
            rest_from, skipped, done = groups.rest()
            buffered = table.slice(rest_from).to_batches()
            buffered_rows = table.num_rows - rest_from
            # Long windows leave many records, each of which is then read at most twice.
            least_rows = max(self._chunk_rows, 2 * buffered_rows)
        if buffered_rows:
            table = pa.Table.from_batches(buffered).combine_chunks()
            yield from self._windows(table, self._groups(table, skipped, done))

    def _groups(self, table: pa.Table, skipped: int, done: int) -> CountedGroups:
        """The groups of a table; the first one may have begun in an earlier table."""
        starts = group_starts(table, self._by)
        self._require_order(table, starts)
        days = np.array(table.column("_computed_day"), np.int64)[starts[:-1]]
        distinct_days, spec_of = np.unique(days, return_inverse=True)
        specs = [self._computed_days[int(day)] for day in distinct_days]
        of_first = np.zeros((2, len(days)), np.int64)
        of_first[:, 0] = skipped, done
        return CountedGroups(specs, spec_of, starts, *of_first)

    def _windows(self, table: pa.Table, groups: CountedGroups) -> Iterator[pa.RecordBatch]:
        def describe(window: int) -> str:
            last = self._describe(table, int(windows.entered[window]) - 1)
            return f"the window of {record_counts[window]} records that ends with {last}"

        windows = groups.windows()
        record_counts = windows.entered - windows.left
        # Only arrival orders records here, so a record's position is its time.
        noted: list[tuple[str, np.ndarray]] | None = [] if self._with_failed else None
        whole = WindowedRecords(groups.starts, windows.enter_order, windows, describe, noted)
        for records in parts_of(whole, self._aggregates):
            yield self._batch(table, records)

    def _batch(self, table: pa.Table, records: WindowedRecords) -> pa.RecordBatch:
        windows = records.windows
        first, last = pa.array(windows.left), pa.array(windows.entered - 1)
        columns = {name: table.column(name).take(last).combine_chunks() for name in self._by}
        offset = table.column("offset")
        columns |= {
            "first_offset": offset.take(first).combine_chunks(),
            "last_offset": offset.take(last).combine_chunks(),
            "record_count": pa.array(windows.entered - windows.left),
        }
        for aggregate in self._aggregates:
            column = table.column(aggregate.column)
            columns[aggregate.result_column] = aggregate_windows(aggregate, column, records)
        if self._with_failed:
            columns["failed"] = records.failed()
        return pa.RecordBatch.from_pydict(columns)

    def _require_order(self, table: pa.Table, starts: np.ndarray) -> None:
        """Refuses records whose order of arrival is not known."""
        if table.column("offset").null_count:
            missing = int(np.flatnonzero(np.asarray(table.column("offset").is_null()))[0])
            raise ValueError(
                f"{self._describe(table, missing)} has no position in the order of arrival; name a "
                "column that orders arrival and has no nulls"
            )
        duplicates = require_order(table, starts, ["offset"])
        if len(duplicates):
            raise ValueError(
                f"{self._describe(table, int(duplicates[0]))} comes twice, so the order "
                "of arrival is not known; name a column that has each value once a key, or a "
                "struct of several"
            )

    def _describe(self, table: pa.Table, record: int) -> str:
        """Names a record in an error."""
        key = [table.column(name)[record].as_py() for name in self._by[1:]]
        shown = key[0] if len(key) == 1 else tuple(key)
        return f"record {table.column('offset')[record].as_py()!r} of key {shown!r}"
