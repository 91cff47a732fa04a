"""Calls a user's window function for firings, batch by batch (rule E3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from windows_pipeline.kernels.aggregates.user_errors import with_location
from windows_pipeline.kernels.arrow_types import arrow_type
from windows_pipeline.text.instants import time_text
from windows_pipeline.windows.firing.window_function import FiringContext, Row, WindowFunction
from windows_pipeline.windows.time_window import TimeWindow

RECORDS = "records"
"""The name of a pane's records in the content of a function that takes records."""
_CONTEXT = ("firing_id", "reason", "cause", "_stream_time_ms", "is_final")


class FunctionKernel:
    """Returns the rows that a user's function makes from firings.

    Attributes:
        ROW_NUMBER: The column of a row's number among the rows of its firing.
    """

    ROW_NUMBER: ClassVar[str] = "row_number"

    def __init__(
        self,
        function: WindowFunction,
        keys: Sequence[str],
        content: Mapping[str, str],
        *,
        kept: Sequence[str] = (),
        name: str = "the window function",
        file: str = "",
    ) -> None:
        """Sets what to call.

        Args:
            function: The function.
            keys: The columns of the key.
            content: The names of the content's values, and their columns in a firing: the
                aggregates, or `RECORDS` alone for a function that takes records.
            kept: The columns of a firing to put before each of its rows, with the row's number
                among them, `ROW_NUMBER`; none for the rows alone.
            name: What errors call the function.
            file: The function's file, whose innermost line errors name; empty for any file.
        """
        self._function = function
        self._kept = list(kept)
        self._called = name
        self._file = file
        self._keys = list(keys)
        self._content = dict(content)
        self._type = arrow_type(function.row_type)
        self._names = [name for name, _ in function.row_type.fields]

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes the result of `fire`."""
        for batch in batches:
            yield self._batch(batch)

    def _batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        results: list[Row] = []
        firing_of: list[int] = []
        for firing, (key, content, context) in enumerate(self._firings(batch)):
            rows = self._process(key, content, context)
            results += rows
            firing_of += [firing] * len(rows)
        try:
            array = pa.array(results, self._type)
        except (pa.ArrowException, TypeError, OverflowError, ValueError):
            self._check_types(batch, results, firing_of)
            raise
        made = pa.RecordBatch.from_struct_array(array)
        return self._with_kept(batch, made, firing_of) if self._kept else made

    def _with_kept(
        self, batch: pa.RecordBatch, made: pa.RecordBatch, firing_of: Sequence[int]
    ) -> pa.RecordBatch:
        """Puts the columns of its firing, and its number, before each row."""
        of_firing = batch.select(self._kept).take(pa.array(firing_of, pa.int64()))
        firings = np.array(firing_of, dtype=np.int64)
        numbers = np.arange(len(firings)) - np.searchsorted(firings, firings)
        columns = [*of_firing.columns, pa.array(numbers, pa.int64()), *made.columns]
        names = [*self._kept, self.ROW_NUMBER, *made.schema.names]
        return pa.RecordBatch.from_arrays(columns, names)

    def _process(self, key: Any, content: Any, context: FiringContext) -> list[Row]:
        try:
            returned = self._function.process(key, context.window, content, context)
            rows = None if returned is None else list(returned)
        except Exception as error:
            raise RuntimeError(
                f"{self._called} failed in {self._described(key, context)}: "
                f"{with_location(error, self._file)}"
            ) from error
        if rows is None:
            raise TypeError(
                f"{self._called} returned None in {self._described(key, context)}; have it yield "
                "rows, or return a list of them"
            )
        return [self._row(row, key, context) for row in rows]

    def _firings(self, batch: pa.RecordBatch) -> Iterator[tuple[Any, Any, FiringContext]]:
        def values(name: str) -> list[Any]:
            listed: list[Any] = batch.column(name).to_pylist()
            return listed

        keys: Iterator[Any] = zip(*map(values, self._keys), strict=True)
        if len(self._keys) == 1:
            keys = (key for (key,) in keys)
        elif not self._keys:
            keys = iter([()] * batch.num_rows)
        windows = map(TimeWindow, values("_window_start_ms"), values("_window_end_ms"))
        contexts = map(FiringContext, windows, *map(values, _CONTEXT))
        if self._function.records is not None:
            return zip(keys, values(self._content[RECORDS]), contexts, strict=True)
        rows = zip(*map(values, self._content.values()), strict=True)
        contents = (dict(zip(self._content, row, strict=True)) for row in rows)
        return zip(keys, contents, contexts, strict=True)

    def _row(self, row: Row, key: Any, context: FiringContext) -> Row:
        fits = isinstance(row, (tuple, list)) and len(row) == len(self._names)
        if isinstance(row, Mapping):
            fits = set(row) == set(self._names)
        if not fits:
            raise TypeError(self._no_row(row, key, context))
        # Arrow takes either tuples or dicts in one array.
        return tuple(row[name] for name in self._names) if isinstance(row, Mapping) else tuple(row)

    def _check_types(
        self, batch: pa.RecordBatch, results: Sequence[Row], firing_of: Sequence[int]
    ) -> None:
        contexts = list(self._firings(batch))
        for row, firing in zip(results, firing_of, strict=True):
            try:
                pa.array([row], self._type)
            except (pa.ArrowException, TypeError, OverflowError, ValueError) as error:
                key, _, context = contexts[firing]
                raise TypeError(f"{self._no_row(row, key, context)}: {error}") from error

    def _described(self, key: Any, context: FiringContext) -> str:
        start_ms, end_ms = context.window
        window = f"from {start_ms} to {end_ms} (ms)"
        if self._file:  # of a pipeline, whose tables have timestamps
            window = f"from {time_text(start_ms)} to {time_text(end_ms)}"
        return f"firing {context.firing_id} of the window of key {key!r} {window}"

    def _no_row(self, row: Row, key: Any, context: FiringContext) -> str:
        return (
            f"{self._called} returned {row!r}, which is no row of {self._function.schema!r}, in "
            f"{self._described(key, context)}"
        )
