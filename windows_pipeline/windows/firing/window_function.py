"""User-defined functions of a window's firing: FLIP-2's ProcessWindowFunction (rule E3)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from windows_pipeline.aggregates.column_type import ColumnType, parse_type
from windows_pipeline.windows.time_window import TimeWindow


class FiringContext(NamedTuple):
    """Why and when a window fires.

    Attributes:
        window: The window's bounds in ms; for a session, the times of its first and last record.
        firing_id: The number of the window's firing, from 0.
        reason: 'EARLY', 'ON_TIME' or 'LATE'.
        cause: 'RECORD' or 'STREAM_TIME'.
        stream_time: The stream time of the firing, in ms; None at the end of the input.
        is_final: Whether the window was closed at the firing.
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
    """A Python function that turns each firing into rows (rule E3).

    The engine calls the function once for each firing, in no defined order, and again if Spark
    repeats a task: the function must not keep state. If the function raises, or returns a row
    that does not fit the schema, the job fails with an error that names the key, the window and
    the firing, and writes nothing.

    Attributes:
        process: Called with the key (a tuple if it has several columns), the window, the
            content and the context. Returns rows: tuples in the schema's order, or dicts by the
            schema's names.
        schema: The columns and types of the rows as in Spark's DDL: 'level string, n bigint'.
        records: The columns of the pane's records to pass as the content, each record a dict,
            in the order of event time; their types must have an order. None to pass the
            aggregates, a dict by their names.

    Raises:
        ValueError: The function is not callable, the schema is wrong, or `records` is not a list
            of columns.
    """

    process: Process
    schema: str
    records: Sequence[str] | None = None

    def __post_init__(self) -> None:
        """Checks the arguments."""
        if not callable(self.process):
            raise ValueError(f"process: {self.process!r} is not a function; pass a function")
        _ = self.row_type
        if self.records is not None and (isinstance(self.records, str) or not self.records):
            raise ValueError(
                f"records: {self.records!r} is not a list of columns; pass a list, or None for "
                "aggregates"
            )

    @property
    def row_type(self) -> ColumnType:
        """The struct type of a row.

        Raises:
            ValueError: The schema is not a list of names and types.
        """
        try:
            return parse_type(f"struct<{self.schema}>")
        except ValueError as error:
            raise ValueError(
                f"schema: {self.schema!r} is not a schema; write it as 'level string, n bigint': "
                f"{error}"
            ) from None
