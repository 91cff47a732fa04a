"""Which files and row groups of a table may hold wanted rows, by smallest and largest values.

Tables have these values of the columns that sort their files, in the log for each file, and in the
footers of Parquet files for each row group, whoever wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from windows_pipeline.query.tables.arrow_values import integer
from windows_pipeline.query.tables.keys import KEY, KeyRange

_DAY = "partition.arrival_unit"


class Span(NamedTuple):
    """A span of time, bounds included, in microseconds since 1970; None for an open bound."""

    first_us: int | None = None
    last_us: int | None = None

    def meets(self, smallest_us: int | None, largest_us: int | None) -> bool:
        """Whether values between these bounds may be within the span; true if both are unknown."""
        if smallest_us is not None and self.last_us is not None and smallest_us > self.last_us:
            return False
        return not (
            largest_us is not None and self.first_us is not None and largest_us < self.first_us
        )

    def within(self, other: Span) -> Span:
        """The time that both spans have in common."""
        firsts = [us for us in (self.first_us, other.first_us) if us is not None]
        lasts = [us for us in (self.last_us, other.last_us) if us is not None]
        return Span(max(firsts, default=None), min(lasts, default=None))


@dataclass(frozen=True)
class Wanted:
    """Which rows of a table are wanted.

    Attributes:
        keys: Their keys.
        times: For columns of timestamps, from when to when.
        days: Their arrival days; None for all.
    """

    keys: KeyRange = field(default_factory=KeyRange)
    times: Mapping[str, Span] = field(default_factory=dict)
    days: frozenset[date] | None = None


class FileEntry(NamedTuple):
    """A file of a table as the log has it.

    Attributes:
        path: Its path, below the table's folder.
        day: Its arrival day, as Arrow has it; None if days share files.
        row_count: How many rows it has; None if the log does not say.
        smallest: The smallest value of each column that is known; times in microseconds.
        largest: The largest value of each column that is known.
    """

    path: str
    day: pa.Scalar | None
    row_count: int | None
    smallest: Mapping[str, Any]
    largest: Mapping[str, Any]


class Piece(NamedTuple):
    """A row group of a file; day and values are those of `FileEntry`.

    Attributes:
        number: Its number within the file.
    """

    number: int
    day: pa.Scalar | None
    smallest: Mapping[str, Any]
    largest: Mapping[str, Any]


def file_entries(entries: pa.Table) -> list[FileEntry]:
    """The files that have rows, with what the log knows of their values."""
    columns = {name: _plain(name, entries[name]) for name in entries.column_names if "." in name}
    counts = entries["num_records"].to_pylist()
    days = list(entries[_DAY]) if _DAY in columns else None
    found = []
    for number, path in enumerate(entries["path"].to_pylist()):
        smallest: dict[str, Any] = {}
        largest: dict[str, Any] = {}
        for name, values in columns.items():
            kind, _, of = name.partition(".")
            if kind in ("min", "max") and values[number] is not None:
                (smallest if kind == "min" else largest)[of] = values[number]
        for of in [name for name in smallest if _is_key(name)]:
            if columns.get(f"null_count.{of}", {number: None})[number] != 0:
                del smallest[of]  # statistics leave nulls out, and null is the smallest key
        day = None if days is None else days[number]
        found.append(FileEntry(path, day, counts[number], smallest, largest))
    return found


def _plain(name: str, values: pa.ChunkedArray) -> list[Any]:
    """Values of the log as Python has them; times in microseconds."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us", values.type.tz)).cast(pa.int64())
        if name.startswith("max."):  # Delta cuts times of statistics to milliseconds
            values = pc.add(values, integer(999))
    found: list[Any] = values.to_pylist()
    return found


def may_have(part: FileEntry | Piece, wanted: Wanted) -> bool:
    """Whether a file or row group may have wanted rows, by its smallest and largest values."""
    for name, span in wanted.times.items():
        if not span.meets(part.smallest.get(name), part.largest.get(name)):
            return False
    return wanted.keys.may_be_within(part.smallest, part.largest)


def statistics(group: Any, schema: pa.Schema) -> dict[str, tuple[Any, Any]]:
    """The smallest and largest values of a row group's columns that Parquet knows."""
    kinds = dict(_leaves(schema))
    found = {}
    for number in range(group.num_columns):
        column = group.column(number)
        name, known = column.path_in_schema, column.statistics
        if known is None or not known.has_min_max or name not in kinds:
            continue
        if _is_key(name) and known.null_count != 0:
            continue
        kind = kinds[name]
        if pa.types.is_timestamp(kind) and kind.unit == "us" and known.physical_type == "INT64":
            found[name] = (known.min_raw, known.max_raw)
        elif pa.types.is_string(kind) or pa.types.is_int64(kind):
            try:
                found[name] = (known.min, known.max)
            except UnicodeDecodeError:  # cut within a character
                continue
    return found


def _leaves(schema: pa.Schema) -> Iterator[tuple[str, pa.DataType]]:
    """The columns that have statistics, as Parquet names them, with a struct's fields."""
    for column in schema:
        if pa.types.is_struct(column.type):
            yield from ((f"{column.name}.{part.name}", part.type) for part in column.type)
        else:
            yield column.name, column.type


def _is_key(name: str) -> bool:
    return name == KEY or name.startswith(f"{KEY}.")
