"""A table of windows at one version, which stores read to answer questions."""

from __future__ import annotations

from datetime import date, datetime
from importlib import import_module
from pathlib import Path
from typing import NoReturn, Self, get_args

from windows_pipeline.config import Pipeline
from windows_pipeline.query.declared import declared_windows
from windows_pipeline.query.pinned_windows import MOST_ROWS, PinnedWindows, Which
from windows_pipeline.query.records.definition_rows import RowFilter
from windows_pipeline.query.tables.arrow_values import microseconds
from windows_pipeline.query.tables.keys import KeyColumn, KeyRange
from windows_pipeline.query.tables.wanted import Span


class PinnedStore:
    """The table of a definition's windows, pinned to a version; also parses arguments."""

    def __init__(
        self,
        pipeline: Pipeline,
        windows_name: str,
        warehouse: str,
        table: Which = "final",
        *,
        version: int | None = None,
        most_rows: int = MOST_ROWS,
        row_filter: RowFilter | None = None,
    ) -> None:
        """Opens the table of a pipeline's windows; `open` finds the pipeline by its name.

        Args:
            pipeline: The pipeline.
            windows_name: The window definition.
            warehouse: The folder of all tables.
            table: Which windows: `final`, `current` or `firings`.
            version: The table's version; None for the newest.
            most_rows: How many rows of the table to have in memory at a time.
            row_filter: What evaluates the definition's filter, for `explain` and `trace`.

        Raises:
            NoTableError: The table does not exist.
            TableDamagedError: A file of the table is damaged.
            UnreadableTableError: Only Spark can read the table, or has no such
                version.
            ValueError: There are no such windows, or no such table.
        """
        self._pipeline, self._name, self._warehouse = pipeline, windows_name, warehouse
        if windows_name not in pipeline.windows:
            raise ValueError(
                f"windows_name: {windows_name!r} is not in {pipeline.name}; use one of "
                f"{', '.join(pipeline.windows)}"
            )
        if table not in get_args(Which):
            raise ValueError(
                f"table: must be final, current or firings, not {table!r}; use one of these"
            )
        self._windows = pipeline.windows[windows_name]
        self._which = table
        self._most_rows = most_rows
        self._row_filter = row_filter
        self._pinned = self._opened(version)

    @classmethod
    def open(
        cls,
        pipeline: str,
        windows_name: str | None = None,
        table: Which = "final",
        *,
        project: str | Path = ".",
        version: int | None = None,
    ) -> Self:
        """Opens the windows of a pipeline by its name.

        Args:
            pipeline: The pipeline's name.
            windows_name: The window definition; None for a pipeline's only one.
            table: Which windows: `final`, `current` or `firings`.
            project: The folder with settings.yaml.
            version: The table's version; None for the newest.

        Raises:
            NoTableError: The table does not exist.
            SettingsError: settings.yaml is not as it must be.
            TableDamagedError: A file of the table is damaged.
            UnreadableTableError: Only Spark can read the table, or has no such
                version.
            ValueError: There is no such pipeline, or it has no such windows.
        """
        found = declared_windows(pipeline, windows_name, project)
        return cls(*found, table, version=version)

    @classmethod
    def on(
        cls,
        spark: object,
        pipeline: str,
        windows_name: str | None = None,
        table: Which = "final",
        *,
        project: str | Path = ".",
        version: int | None = None,
    ) -> Self:
        """Opens the windows of a pipeline as `open` does, with a session that evaluates filters.

        `explain` and `trace` need it where the definition has a filter; tables are read without it.

        Args:
            spark: The session.
            pipeline: The pipeline's name.
            windows_name: The window definition; None for a pipeline's only one.
            table: Which windows: `final`, `current` or `firings`.
            project: The folder with settings.yaml.
            version: The table's version; None for the newest.

        Raises:
            NoTableError: The table does not exist.
            SettingsError: settings.yaml is not as it must be.
            UnreadableTableError: Only Spark can read the table, or has no such version.
            ValueError: There is no such pipeline, or it has no such windows.
        """
        # Imported by name, as stores must also work where pyspark is not installed.
        by_spark = import_module("windows_pipeline.query.records.spark_filter")
        found = declared_windows(pipeline, windows_name, project)
        return cls(*found, table, version=version, row_filter=by_spark.spark_filter(spark))

    @property
    def name(self) -> str:
        """The table's name: `flights/hourly/final_windows`."""
        return self._pinned.table.spec.name

    @property
    def version(self) -> int:
        """The version of the table that is read."""
        return self._pinned.table.version

    @property
    def through(self) -> date | None:
        """The last arrival day that has rows in this version; None without rows."""
        return max(self._pinned.table.days, default=None)

    @property
    def key(self) -> KeyColumn:
        """The windows' key."""
        return self._pinned.table.key

    def parsed_key(self, text: str | None, argument: str) -> object:
        """The key that a text of a command line stands for; see `KeyColumn.parsed`.

        Raises:
            ValueError: The text does not stand for a key.
        """
        has_key = bool(self._windows.keyed(self._pipeline.source).key_columns)
        return self.key.parsed(text, argument, has_key=has_key)

    @property
    def keeps_bounds(self) -> bool:
        """Whether a window keeps its bounds while it is open; a session grows."""
        return self._windows.spec.keeps_bounds

    def refresh(self) -> None:
        """Moves on to the newest version; answers that were already returned do not change."""
        self._pinned = self._opened(None)

    def _opened(self, version: int | None) -> PinnedWindows:
        of_windows = (self._pipeline, self._name, self._warehouse, self._which)
        return PinnedWindows(*of_windows, version, self._most_rows)

    def _one(self, key: object) -> KeyRange:
        return self.key.one(key, "key")

    def _range(self, key_from: object, key_to: object) -> KeyRange:
        first, last = (
            None if key is None else self.key.value(key, argument)
            for key, argument in ((key_from, "key_from"), (key_to, "key_to"))
        )
        return self.key.between(first, last)

    def _refuse(self, method: str, reason: str, right: str) -> NoReturn:
        raise ValueError(f"{method} does not fit {self.name}: {reason}; use {right}")

    def _span(self, *bounds: tuple[str, datetime | None]) -> Span:
        """Two instants by the names of their arguments; None means no bound."""
        return Span(*(None if at is None else self._instant(at, name) for name, at in bounds))

    @staticmethod
    def _instant(instant: datetime, argument: str) -> int:
        if not isinstance(instant, datetime):
            raise ValueError(
                f"{argument}: must be a datetime with a zone, not {instant!r}; write "
                "datetime(..., tzinfo=UTC)"
            )
        if instant.utcoffset() is None:
            raise ValueError(
                f"{argument}: must be an instant, so a datetime with a zone, and {instant} has "
                "none; write datetime(..., tzinfo=UTC)"
            )
        return microseconds(instant)
