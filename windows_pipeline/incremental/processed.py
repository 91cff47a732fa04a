"""The rows that a user's function makes of a pipeline's firings (rules E3, E4)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from windows_pipeline.aggregates import FUNCTIONS, Aggregate
from windows_pipeline.compat.python_workers import in_workers
from windows_pipeline.config import BoundAggregates, Source, Windows
from windows_pipeline.engine.firings.process import RECORDS, FunctionKernel
from windows_pipeline.windows.firing.window_function import WindowFunction

_CONTEXT = ("_window_start_ms", "_window_end_ms", "cause", "_stream_time_ms", "is_final")
_KEY, _PANE = "_key_", "_pane"
"""The prefix of the key's parts, and the column of a pane's records, which no aggregate has."""


@dataclass(frozen=True)
class FiringFunction:
    """Calls the function of a definition, if the definition has one, for each firing.

    Attributes:
        windows: The definition.
        source: The source with the definition's key.
    """

    windows: Windows
    source: Source

    def with_records(self, aggregates: BoundAggregates) -> BoundAggregates:
        """Adds the list of a pane's records to the aggregates, if the function takes records."""
        process = self.windows.process
        if process is None or process.records is None:
            return aggregates
        # The names are identifiers of the source, so they need no escapes.
        fields = ", ".join(f"'{name}', `{name}`" for name in process.records)
        return replace(
            aggregates,
            aggregates=(*aggregates.aggregates, Aggregate(_PANE, FUNCTIONS["collect_list"], _PANE)),
            added={**aggregates.added, _PANE: f"named_struct({fields})"},
        )

    def without_records(self, fired: DataFrame) -> DataFrame:
        """The firings without the lists that `with_records` adds."""
        return fired.drop(_PANE)

    def rows_of(self, fired: DataFrame) -> DataFrame:
        """Returns the rows that the function makes of new firings.

        Args:
            fired: The frame that `arrival_unit_firings` returns of aggregates to which
                `with_records` added, with `arrival_unit` and the tables' timestamps.

        Returns:
            The columns of the table `processed`. When Spark runs it, an error of the function ends
            the job: its message names function, key, window, firing, and file and line.

        Raises:
            ValueError: The definition has no function.
        """
        process, code = self.windows.process, self.windows.window_function
        if process is None or code is None:
            raise ValueError("windows: must have a function, and have none; declare process")
        keys = {f"{_KEY}{number}": part for number, part in enumerate(self._key_parts())}
        kept = ("arrival_unit", *self.windows.window_key, "firing_id", "reason")
        names = [*self.windows.row_key, "record_count", *self.windows.aggregates, "failed"]
        content = {name: name for name in names} if process.records is None else {RECORDS: _PANE}
        needed = fired.select(
            *kept,
            *_CONTEXT,
            *(part.alias(name) for name, part in keys.items()),
            *(column for column in content.values() if column not in kept),
        )
        kernel = FunctionKernel(
            WindowFunction(code.call, process.schema_text, process.records),
            list(keys),
            content,
            kept=kept,
            name=process.function,
            file=code.file,
        )
        schema = T.StructType([needed.schema[name] for name in kept])
        schema.add(FunctionKernel.ROW_NUMBER, T.LongType())
        for name, kind in process.columns.items():
            schema.add(name, T.DataType.fromDDL(kind))
        return in_workers(needed, kernel, schema)

    def _key_parts(self) -> list[Column]:
        key = F.col("key")
        if isinstance(self.source.key, str):
            return [key]
        return [key[name] for name in self.source.key]
