"""Copies a sample into day folders, one for each arrival day."""

from __future__ import annotations

import gzip
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import IO, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from windows_pipeline.starter.arrival_order import stream_days
from windows_pipeline.starter.files import SampleFile, SampleFiles, is_day
from windows_pipeline.starter.instants import DAY_US, Instants, instants
from windows_pipeline.starter.parquet_records import open_parquet, texts_of
from windows_pipeline.starter.text_records import (
    Header,
    TextRecord,
    csv_records,
    json_records,
    json_text,
    lines_of,
    one_header,
    open_text,
)

_BATCH = 20_000
"""How many records of a text file are in memory at once."""
_MOST_DAYS = 3_700
"""The longest span of arrival days, some ten years: a longer one is hardly the arrival's."""
_WRITERS = 200
"""How many Parquet files are open at once."""
_EPOCH = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class ArrivalDay:
    """How a copy finds each record's arrival day.

    Attributes:
        column: The column of times that the day is taken from.
        type: The column's type.
        by_line: Whether lines arrive in their order: a line's day is that of the largest time so
            far. Otherwise each record has the day of its own time.
        zone: The zone of its times that name no offset; None for UTC.
    """

    column: str
    type: str
    by_line: bool
    zone: str | None = None


@dataclass(frozen=True, slots=True)
class CopiedDays:
    """The day folders that a copy made.

    Attributes:
        folder: The folder of day folders.
        days: The days with a folder.
        empty: The days without a record.
    """

    folder: Path
    days: tuple[date, ...]
    empty: tuple[date, ...]


def copy_by_day(files: SampleFiles, target: Path, root: Path, arrival: ArrivalDay) -> CopiedDays:
    """Copies files into day folders: each line or row goes unchanged to its arrival day.

    A record without a readable time goes to the day of the record before it, where the pipeline
    rejects it. Files that are already in day folders stay on their days. The folder appears whole
    or not at all.

    Args:
        files: The files.
        target: The folder to make.
        root: The folder that the target must lie in.
        arrival: What says a record's day.

    Raises:
        ValueError: The target exists, lies outside the root, or the days span over ten years.
    """
    if target.exists() or target.is_symlink():
        raise ValueError(
            f"{target}: the folder exists, and is not overwritten; use another name, or move it"
        )
    if not _parent(target).resolve().is_relative_to(root.resolve()):
        raise ValueError(f"{target}: must lie in {root}, and a link leads out; remove the link")
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
    unfinished.mkdir()
    try:
        if files.days:
            for file in files.files:
                _copy_file(file, unfinished)
            for day in files.days:
                (unfinished / str(day)).mkdir(exist_ok=True)
        elif files.format == "parquet":
            _split_parquet(files.files, unfinished, arrival)
        else:
            _split_text(files, unfinished, arrival)
        days, empty = fill_gaps(unfinished)
        unfinished.rename(target)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    return CopiedDays(target, days, empty)


def fill_gaps(folder: Path) -> tuple[tuple[date, ...], tuple[date, ...]]:
    """Makes an empty folder for each day that is missing between the first and the last.

    Returns:
        All days, and those whose folders are new.

    Raises:
        ValueError: There is no day, or the days span over ten years.
    """
    found = sorted(date.fromisoformat(entry.name) for entry in folder.iterdir() if is_day(entry))
    if not found:
        raise ValueError(
            f"{folder}: the arrival column must have a time in some record, but has none that "
            "can be read; name another column with --arrival"
        )
    span = (found[-1] - found[0]).days + 1
    if span > _MOST_DAYS:
        raise ValueError(
            f"the arrival days must span at most {_MOST_DAYS:,} days, and go from {found[0]} to "
            f"{found[-1]}; name another column with --arrival, or correct its outliers"
        )
    days = tuple(found[0] + timedelta(days=number) for number in range(span))
    missing = tuple(day for day in days if not (folder / str(day)).exists())
    for day in missing:
        (folder / str(day)).mkdir()
    return days, missing


def _parent(target: Path) -> Path:
    return next(parent for parent in target.parents if parent.exists())


def _copy_file(file: SampleFile, folder: Path) -> None:
    (folder / str(file.day)).mkdir(exist_ok=True)
    shutil.copyfile(file.path, folder / str(file.day) / file.path.name)


class _Days:
    """Finds the days of one batch of records after another.

    A time after tomorrow is ignored: the pipeline rejects its record as too far ahead.
    """

    def __init__(self, arrival: ArrivalDay) -> None:
        self._arrival = arrival
        self._last: int | None = None
        tomorrow = datetime.now(UTC).date() + timedelta(days=1)
        self._end_us = ((tomorrow - _EPOCH).days + 1) * DAY_US

    def of(self, texts: pa.StringArray) -> np.ndarray:
        """Returns the records' days, in days since 1970."""
        times = instants(texts, self._arrival.type, self._arrival.zone)
        known = Instants(times.us, times.is_time & (times.us < self._end_us))
        if self._arrival.by_line:
            days = stream_days(known, self._last)
        else:
            days = self._or_day_before(known)
        if len(days) and (known.is_time.any() or self._last is not None):
            self._last = int(days[-1])
        return days

    def _or_day_before(self, times: Instants) -> np.ndarray:
        days = times.us // DAY_US
        first = np.flatnonzero(times.is_time)[:1]
        before = (
            self._last if self._last is not None else (int(days[first[0]]) if len(first) else 0)
        )
        position = np.maximum.accumulate(np.where(times.is_time, np.arange(len(days)), -1))
        result: np.ndarray = np.where(position >= 0, days[np.maximum(position, 0)], before)
        return result


def _split_text(files: SampleFiles, folder: Path, arrival: ArrivalDay) -> None:
    header = one_header(files.files) if files.format == "csv" else Header()
    position = header.names.index(arrival.column) if header.names else -1
    days = _Days(arrival)
    for file in files.files:
        with open_text(file) as stream:
            lines = lines_of(stream, file.path)
            is_csv = files.format == "csv"
            records = csv_records(lines, header) if is_csv else json_records(lines)
            for batch in _batches(records):
                texts = pa.array(
                    [_time_of(record, position, arrival) for record in batch], pa.string()
                )
                _append(folder, file, header.line, batch, days.of(texts))


def _batches(records: Iterator[TextRecord]) -> Iterator[list[TextRecord]]:
    while batch := list(islice(records, _BATCH)):
        yield batch


def _time_of(record: TextRecord, position: int, arrival: ArrivalDay) -> str | None:
    if isinstance(record.fields, dict):
        return json_text(record.fields.get(arrival.column))
    return None if record.fields is None else record.fields[position]


def _append(
    folder: Path, file: SampleFile, header: bytes, batch: Sequence[TextRecord], days: np.ndarray
) -> None:
    """Adds a batch's records to the files of their days."""
    order = np.argsort(days, kind="stable")
    bounds = np.flatnonzero(np.append(True, np.diff(days[order]) != 0))
    for start, stop in zip(bounds, np.append(bounds[1:], len(order)), strict=True):
        day = _date(int(days[order[start]]))
        path = folder / str(day) / file.path.name
        path.parent.mkdir(exist_ok=True)
        is_new = not path.exists()
        with _appending(path, compressed=file.is_compressed) as stream:
            if header and is_new:
                stream.write(_ended(header))
            stream.writelines(_ended(batch[index].raw) for index in order[start:stop])


def _appending(path: Path, *, compressed: bool) -> IO[bytes]:
    """Opens a file to add to; a compressed one gets another member, which readers join."""
    return cast("IO[bytes]", gzip.open(path, "ab")) if compressed else path.open("ab")


def _ended(raw: bytes) -> bytes:
    return raw if raw.endswith((b"\n", b"\r")) else raw + b"\n"


def _date(day: int) -> date:
    return _EPOCH + timedelta(days=day)


def _split_parquet(files: Sequence[SampleFile], folder: Path, arrival: ArrivalDay) -> None:
    by_file = _parquet_days(files, arrival)
    for file, days in zip(files, by_file, strict=True):
        distinct = np.unique(days)
        for start in range(0, len(distinct), _WRITERS):
            _write_days(file, folder, days, distinct[start : start + _WRITERS])


def _parquet_days(files: Sequence[SampleFile], arrival: ArrivalDay) -> list[np.ndarray]:
    """Returns the day of each row of each file; reads one column only."""
    days = _Days(arrival)
    found = []
    for file in files:
        with open_parquet(file.path) as opened:
            parts = [
                days.of(texts_of(batch.column(0))).astype(np.int32)
                for batch in opened.iter_batches(columns=[arrival.column])
            ]
        found.append(np.concatenate(parts) if parts else np.zeros(0, np.int32))
    return found


def _write_days(file: SampleFile, folder: Path, days: np.ndarray, wanted: np.ndarray) -> None:
    with open_parquet(file.path) as opened, ExitStack() as stack:
        schema = _in_microseconds(opened.schema_arrow)
        writers: dict[int, pq.ParquetWriter] = {}
        position = 0
        for batch in opened.iter_batches():
            of_batch = days[position : position + batch.num_rows]
            position += batch.num_rows
            table = pa.Table.from_batches([batch])
            for day in np.intersect1d(of_batch, wanted):
                number = int(day)
                if number not in writers:
                    path = folder / str(_date(number)) / file.path.name
                    path.parent.mkdir(exist_ok=True)
                    writers[number] = stack.enter_context(pq.ParquetWriter(path, schema))
                rows = table.filter(pa.array(of_batch == day))
                writers[number].write_table(rows.cast(schema, safe=False))


def _in_microseconds(schema: pa.Schema) -> pa.Schema:
    """Returns the schema with times in microseconds: Spark cannot read nanoseconds."""
    fields = [
        field.with_type(pa.timestamp("us", field.type.tz))
        if pa.types.is_timestamp(field.type) and field.type.unit == "ns"
        else field
        for field in schema
    ]
    return pa.schema(fields)
