"""Windows as a query returns them: one by one, or as a table of Arrow, pandas or Polars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from windows_pipeline.query.tables.arrow_values import python_rows

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

WATERMARK = "_watermark"
"""The column that queries add; no column of a table begins with an underscore."""
_ROWS_AT_ONCE = 4_096
_OWN = ("key", "window_start", "window_end", "record_count", "first_event_time", "last_event_time")


@dataclass(frozen=True)
class StoredWindow:
    """A window of a table.

    Attributes:
        key: Its key; of composite keys a dict of the parts by name.
        start: Its first instant.
        end: Its last instant; of hopping and tumbling windows the first instant after it.
        record_count: How many records it has.
        first_event_time: The earliest event time among its records; None without records.
        last_event_time: The latest event time among its records; None without records.
        closed: Whether it is final.
        watermark: The watermark after the arrival unit, or micro-batch, that wrote the row (rule
            A4); None if there was none.
        arrival_unit: The arrival day that wrote the row.
        values: The aggregates, by name.
        failed: The names of the aggregates that can't be computed (rule G3).
        other: The table's other columns, by name: of a row window the row that it belongs to, of
            a firing its number, reason, cause and stream time.
    """

    key: Any
    start: datetime
    end: datetime
    record_count: int
    first_event_time: datetime | None
    last_event_time: datetime | None
    closed: bool
    watermark: datetime | None
    arrival_unit: date
    values: Mapping[str, Any]
    failed: tuple[str, ...]
    other: Mapping[str, Any]


class FoundWindows:
    """The windows of a query, in order; iterating reads them piece by piece.

    Each iteration reads the same rows again, as the store is pinned to a version of the table.
    """

    def __init__(
        self,
        schema: pa.Schema,
        slices: Callable[[], Iterator[pa.Table]],
        aggregates: tuple[str, ...],
    ) -> None:
        """Takes what reads the rows.

        Args:
            schema: The columns: the table's, and `_watermark`.
            slices: Reads the rows, in order, some at a time.
            aggregates: The names of the columns of aggregates.
        """
        self.schema = schema
        self._slices = slices
        self._aggregates = aggregates

    def __iter__(self) -> Iterator[StoredWindow]:
        """The windows, one by one."""
        for batch in self.batches():
            for row in python_rows(batch):
                yield self._window(row)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, some at a time."""
        for rows in self._slices():
            yield from rows.to_batches(_ROWS_AT_ONCE)

    def to_arrow(self) -> pa.Table:
        """All rows, with the table's columns and `_watermark`."""
        return pa.concat_tables([pa.Table.from_batches([], self.schema), *self._slices()])

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a DataFrame of pandas.

        Raises:
            ImportError: pandas is not installed.
        """
        frame: pd.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> pl.DataFrame:
        """All rows as a DataFrame of Polars.

        Raises:
            ImportError: Polars is not installed.
        """
        try:
            import polars as pl
        except ImportError as error:
            raise ImportError("to_polars needs Polars; install it: pip install polars") from error
        return pl.DataFrame(self.to_arrow())

    def _window(self, row: dict[str, Any]) -> StoredWindow:
        closed = row.pop("closed", row.pop("is_final", True))
        row.pop("batch", None)
        own = {name: row.pop(name) for name in _OWN}
        return StoredWindow(
            key=own["key"],
            start=own["window_start"],
            end=own["window_end"],
            record_count=own["record_count"],
            first_event_time=own["first_event_time"],
            last_event_time=own["last_event_time"],
            closed=closed,
            watermark=row.pop(WATERMARK),
            arrival_unit=row.pop("arrival_unit"),
            values={name: row.pop(name) for name in self._aggregates},
            failed=tuple(row.pop("failed", None) or ()),
            other=row,
        )
