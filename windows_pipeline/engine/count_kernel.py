"""Count windows of each partition: records in arrival order in, windows out.

A key's records are never held whole: only those that a window to come may hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from windows_pipeline.aggregates import Aggregate
from windows_pipeline.kernels.aggregates.dispatch import aggregate_windows, parts_of
from windows_pipeline.kernels.groups import CHUNK_ROWS, group_starts
from windows_pipeline.kernels.windows.count import CountedGroups
from windows_pipeline.kernels.windows.filled import WindowedRecords
from windows_pipeline.windows.count_windows import CountWindows


class CountKernel:
    """Gives the count windows of each partition; see `count_evaluation.evaluate_counts`."""

    def __init__(
        self,
        targets: Mapping[int, CountWindows],
        keys: Sequence[str],
        aggregates: Sequence[Aggregate],
        chunk_rows: int = CHUNK_ROWS,
    ) -> None:
        self._targets = dict(targets)
        self._by = ["_computed_day", *keys]
        self._aggregates = list(aggregates)
        self._chunk_rows = chunk_rows

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes records sorted by target, keys and offset."""
        held: list[pa.RecordBatch] = []
        held_rows, wanted_rows = 0, self._chunk_rows
        skipped = done = 0
        for batch in batches:
            held.append(batch)
            held_rows += batch.num_rows
            if held_rows < wanted_rows:
                continue
            table = pa.Table.from_batches(held).combine_chunks()
            groups = self._groups(table, skipped, done)
            yield from self._windows(table, groups)
            kept_from, skipped, done = groups.rest()
            held, held_rows = table.slice(kept_from).to_batches(), table.num_rows - kept_from
            # Long windows keep many records, which are then looked at twice at most.
            wanted_rows = max(self._chunk_rows, 2 * held_rows)
        if held_rows:
            table = pa.Table.from_batches(held).combine_chunks()
            yield from self._windows(table, self._groups(table, skipped, done))

    def _groups(self, table: pa.Table, skipped: int, done: int) -> CountedGroups:
        """The groups of a table whose first one began earlier, maybe."""
        starts = group_starts(table, self._by)
        self._require_order(table)
        numbers = np.array(table.column("_computed_day"), np.int64)[starts[:-1]]
        known, spec_of = np.unique(numbers, return_inverse=True)
        specs = [self._targets[int(number)] for number in known]
        of_first = np.zeros((2, len(numbers)), np.int64)
        of_first[:, 0] = skipped, done
        return CountedGroups(specs, spec_of, starts, *of_first)

    def _windows(self, table: pa.Table, groups: CountedGroups) -> Iterator[pa.RecordBatch]:
        def describe(window: int) -> str:
            last = self._named(table, int(windows.entered[window]) - 1)
            return f"the window of {records_in[window]} records that ends with {last}"

        windows = groups.windows()
        records_in = windows.entered - windows.left
        # Arrival is the only order there is: a record's place stands for its time.
        whole = WindowedRecords(groups.starts, windows.enter_order, windows, describe)
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
            columns[aggregate.name] = aggregate_windows(aggregate, column, records)
        return pa.RecordBatch.from_pydict(columns)

    def _require_order(self, table: pa.Table) -> None:
        """Refuses records of which nobody knows which came first."""
        if table.column("offset").null_count:
            missing = int(np.flatnonzero(np.asarray(table.column("offset").is_null()))[0])
            raise ValueError(
                f"{self._named(table, missing)} does not say when it came; name a column that "
                "orders arrival and has no nulls"
            )
        starts = group_starts(table, [*self._by, "offset"])
        twice = np.flatnonzero(np.diff(starts) > 1)
        if len(twice):
            raise ValueError(
                f"{self._named(table, int(starts[twice[0]]))} comes twice, so the order of "
                "arrival is not known; name a column that has each value once a key, or a "
                "struct of several"
            )

    def _named(self, table: pa.Table, record: int) -> str:
        key = [table.column(name)[record].as_py() for name in self._by[1:]]
        named = key[0] if len(key) == 1 else tuple(key)
        return f"record {table.column('offset')[record].as_py()!r} of key {named!r}"
