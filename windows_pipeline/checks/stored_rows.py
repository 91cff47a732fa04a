"""Reads rows of a table's undamaged files with PyArrow, and compares rows of two tables."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from windows_pipeline.storage.catalog import TableSpec

_ARRIVAL_UNIT = "arrival_unit"


@dataclass(frozen=True)
class StoredFiles:
    """The data files of a table's newest version.

    Attributes:
        table: The table.
        live: Path and arrival unit of each file (null where units share files); None if the log
            cannot be read.
        damaged: The paths of damaged files.
    """

    table: TableSpec
    live: list[tuple[str, date | None]] | None
    damaged: frozenset[str]

    @property
    def is_whole(self) -> bool:
        """Whether the log and every data file are undamaged."""
        return self.live is not None and not any(path in self.damaged for path, _ in self.live)

    @property
    def whole_arrival_units(self) -> set[date]:
        """The arrival units that have files, none of them damaged."""
        files = self.live or []
        broken = {arrival_unit for path, arrival_unit in files if path in self.damaged}
        return self.arrival_units - broken

    @property
    def arrival_units(self) -> set[date]:
        """The arrival units that have files."""
        return {arrival_unit for _, arrival_unit in self.live or [] if arrival_unit is not None}

    def read(self, columns: list[str] | None = None) -> pa.Table:
        """Columns of all rows."""
        return self._read([path for path, _ in self.live or []], columns)

    def of_arrival_unit(self, arrival_unit: date) -> pa.Table:
        """The rows of an arrival unit, without the column `arrival_unit`."""
        return self._read([path for path, of in self.live or [] if of == arrival_unit], None)

    def _read(self, paths: list[str], columns: list[str] | None) -> pa.Table:
        folder = Path(self.table.location)
        files = (pq.ParquetFile(folder / path, coerce_int96_timestamp_unit="us") for path in paths)
        read = [_without_zones(file.read(columns)) for file in files]
        if read:
            return pa.concat_tables(read, promote_options="permissive")
        names = columns or [column.name for column in self.table.columns]
        return pa.table({name: pa.nulls(0) for name in names})


def stored_files(table: TableSpec, live: pa.Table | None, damaged: set[str]) -> StoredFiles:
    """The files of a table by the log's entries; None as `live` if the log cannot be read."""
    if live is None:
        return StoredFiles(table, None, frozenset(damaged))
    paths = live["path"].to_pylist()
    name = f"partition.{_ARRIVAL_UNIT}"
    arrival_units = live[name].to_pylist() if name in live.column_names else [None] * len(paths)
    return StoredFiles(table, list(zip(paths, arrival_units, strict=True)), frozenset(damaged))


def rows_by_arrival_unit(files: StoredFiles) -> Counter[date]:
    """The number of rows of each arrival unit, by the files' footers."""
    found: Counter[date] = Counter()
    for path, arrival_unit in files.live or []:
        if arrival_unit is not None:
            found[arrival_unit] += pq.read_metadata(Path(files.table.location) / path).num_rows
    return found


def differing_rows(first: pa.Table, second: pa.Table) -> tuple[int, int]:
    """Counts the rows that one of two tables has and the other lacks, or has less often.

    Values are equal if their bits are equal. Columns that only one table has, and columns of
    lists, are not compared.

    Returns:
        The number of rows of `first` that `second` lacks, and of `second` that `first` lacks.
    """
    frames = [_comparable(table) for table in (first, second)]
    names = [name for name in frames[0].column_names if name in frames[1].column_names]
    counts = [
        frame.select(names).append_column("_rows", pa.array([sign] * len(frame), pa.int64()))
        for frame, sign in zip(frames, (1, -1), strict=True)
    ]
    both = pa.concat_tables(counts, promote_options="permissive")
    excess = both.group_by(names, use_threads=False).aggregate([("_rows", "sum")])["_rows_sum"]
    only_first = pc.sum(excess.filter(pc.greater(excess, 0)), min_count=0).as_py()
    only_second = pc.sum(excess.filter(pc.less(excess, 0)), min_count=0).as_py()
    return cast("int", only_first), -cast("int", only_second)


def _without_zones(table: pa.Table) -> pa.Table:
    """Timestamps in microseconds; Spark's files name no time zone, those of delta-rs name UTC."""
    for number, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            plain = table[field.name].cast(pa.timestamp("us"))
            table = table.set_column(number, field.name, plain)
    return table


def _comparable(table: pa.Table) -> pa.Table:
    """The columns as the values that grouping compares: fields of structs, and bits of doubles."""
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    columns = {}
    for name in table.column_names:
        values = table[name]
        if pa.types.is_floating(values.type):
            bits = pa.int64() if pa.types.is_float64(values.type) else pa.int32()
            values = pa.chunked_array([chunk.view(bits) for chunk in values.chunks], bits)
        elif pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        if not pa.types.is_nested(values.type):
            columns[name] = values
    return pa.table(columns)
