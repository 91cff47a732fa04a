"""A user's own function of a window's firing: FLIP-2's ProcessWindowFunction (rule E3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from windows_pipeline.aggregates.column_type import ColumnType, parse_type
from windows_pipeline.windows.time_window import TimeWindow


class FiringContext(NamedTuple):
    """Why a window fires, and when.

    Attributes:
        window: Its bounds in ms; of a session the first and the last record.
        firing_id: 0 for its first firing, then one more each time.
        reason: 'EARLY', 'ON_TIME' or 'LATE'.
        cause: 'RECORD' or 'STREAM_TIME'.
        stream_time: Stream time then, in ms; None at the end of the input.
        is_final: Whether the window was closed then.
    """

    window: TimeWindow
    firing_id: int
    reason: str
    cause: str
    stream_time: int | None
    is_final: bool


Row = Sequence[Any] | Mapping[str, Any]
Process = Callable[[Any, TimeWindow, Any, FiringContext], Iterable[Row]]


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """What a user makes of each firing, in Python (rule E3).

    It is called once a firing, in no order, and maybe again where a task is run again: so it
    must not remember. A function that raises, or gives a row that is not of the schema, stops
    the job with an error that names key, window and firing; nothing of it is written.

    Attributes:
        process: Called with the key (a tuple of several columns), the window, the content and
            the context; gives rows, each a tuple in the schema's order or a dict by its names.
        schema: The rows' columns and types as in Spark's DDL: 'level string, n bigint'.
        records: The content: None for the aggregates, as a dict by their names; else the
            columns of the pane's records, each record a dict, by event time. Their types need
            an order.

    Raises:
        ValueError: No function, an unknown type, or no column to hand over.
    """

    process: Process
    schema: str
    records: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Checks the arguments."""
        if not callable(self.process):
            raise ValueError(f"process: {self.process!r} is no function; pass one")
        _ = self.row_type
        if self.records is not None and (isinstance(self.records, str) or not self.records):
            raise ValueError(
                f"records: {self.records!r} is no list of columns; pass one, or None for aggregates"
            )

    @property
    def row_type(self) -> ColumnType:
        """The type of a row, a struct.

        Raises:
            ValueError: The schema is none.
        """
        try:
            return parse_type(f"struct<{self.schema}>")
        except ValueError as error:
            raise ValueError(
                f"schema: {self.schema!r} is none; write it as 'level string, n bigint': {error}"
            ) from None
