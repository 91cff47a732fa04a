"""Reads a bounded share of a sample into columns of text."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa

from windows_pipeline.starter.files import SampleFile, SampleFiles
from windows_pipeline.starter.parquet_records import read_parquet_parts
from windows_pipeline.starter.text_records import (
    UTF_8,
    TextRecord,
    csv_records,
    json_records,
    json_text,
    lines_of,
    one_header,
    open_text,
)
from windows_pipeline.text.counts import counted

_MOST_COLUMNS = 1_000


@dataclass(frozen=True, slots=True)
class Share:
    """How much of a sample is read: half of it from the beginning, half from the end.

    Attributes:
        records: The most records.
        text_bytes: The most bytes of text, decompressed.
    """

    records: int = 200_000
    text_bytes: int = 32 << 20


@dataclass(frozen=True, slots=True)
class Sample:
    """The records of a sample, in the order of their files.

    Attributes:
        columns: The values of each column as a pipeline reads them: texts, null where a record
            has none.
        natives: The types that Parquet files declare, as pipelines name them; empty for text files.
        day: Each record's day folder, in days since 1970; 0 where there are no day folders.
        is_share: Whether the files have more records than the sample.
        broken: How many records cannot be read: a pipeline rejects them.
        not_text: How many of the broken records hold bytes, or escapes of JSON, that are not text.
        repeated: The names that a CSV header has twice.
        delimiter: The character between the fields of CSV files.
    """

    columns: Mapping[str, pa.StringArray]
    natives: Mapping[str, str]
    day: np.ndarray
    is_share: bool
    broken: int = 0
    not_text: int = 0
    repeated: tuple[str, ...] = ()
    delimiter: str = ","

    @property
    def record_count(self) -> int:
        """How many records could be read."""
        return len(self.day)

    def why_broken(self, kind: str) -> str:
        """Says how many of the records that cannot be read are not text, and the fix."""
        if not self.not_text:
            return ""
        if kind != "csv":
            return f"{self.not_text:,} with bytes or escapes that are no UTF-8: write UTF-8"
        return (
            f"{self.not_text:,} with bytes that are no UTF-8: convert the files, or name their "
            "encoding in the pipeline's source, such as 'encoding: latin-1'"
        )


_Part = tuple[SampleFile, int, int]
"""A file, and the bytes of it to read, decompressed: from, to."""
_Records = Callable[[Iterator[bytes]], Iterator[TextRecord]]
_EXPANSION = 8
"""Roughly how many bytes of text a byte of a compressed file decompresses to."""


def read_sample(files: SampleFiles, share: Share | None = None, encoding: str = UTF_8) -> Sample:
    """Reads all of a small sample, and the beginning and the end of a large one.

    Args:
        files: The files.
        share: How much to read.
        encoding: The encoding of CSV files.

    Raises:
        ValueError: No record can be read, or the files have no header or too many columns.
    """
    share = share or Share()
    if files.format == "parquet":
        table, natives, days, is_share = read_parquet_parts(files.files, share.records)
        sample = Sample(table, natives, np.array(days, np.int64), is_share)
    elif files.format == "csv":
        sample = _read_csv(files, share, encoding)
    else:
        sample = _read_json(files, share)
    if sample.record_count == 0:
        broken = f"; {counted(sample.broken, 'line')} cannot be read as {files.format}" * bool(
            sample.broken
        )
        why = sample.why_broken(files.format)
        broken += f" ({why})" * bool(why)
        raise ValueError(
            f"--from {files.root}: must hold at least one record, but has none in "
            f"{counted(len(files.files), 'file')}{broken}; name files with records"
        )
    if len(sample.columns) > _MOST_COLUMNS:
        raise ValueError(
            f"--from {files.root}: must have at most {_MOST_COLUMNS:,} columns, but has "
            f"{len(sample.columns):,}; if a record's fields are named by its values, write them "
            "as values of one column"
        )
    return sample


def _read_csv(files: SampleFiles, share: Share, encoding: str) -> Sample:
    found = one_header(files.files, encoding)
    header = found.names
    _require_header(files.root, header)
    taken = _Taken(files, share, partial(csv_records, header=found))
    rows = [record.fields for record in taken.records]
    texts = list(zip(*rows, strict=True)) or [()] * len(header)
    columns = {
        name: pa.array([text or None for text in values], pa.string())
        for name, values in zip(header, texts, strict=True)
    }
    repeated = tuple(name for name, count in Counter(header).items() if count > 1)
    return Sample(
        columns, {}, taken.days, taken.is_share, taken.broken, taken.not_text, repeated,
        found.delimiter,
    )  # fmt: skip


def _require_header(root: Path, header: Sequence[str]) -> None:
    looks_like_value = [name for name in header if name.strip() and not name.strip()[0].isalpha()]
    if header and len(looks_like_value) > len(header) / 2:
        raise ValueError(
            f"--from {root}: the first line must name the columns, and it is "
            f"{','.join(header)[:80]!r}; write a line with the names in front"
        )


def _read_json(files: SampleFiles, share: Share) -> Sample:
    taken = _Taken(files, share, json_records)
    rows = [record.fields for record in taken.records if isinstance(record.fields, dict)]
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {
        name: pa.array([json_text(row.get(name)) for row in rows], pa.string())
        for name in islice(names, _MOST_COLUMNS + 1)
    }
    return Sample(columns, {}, taken.days, taken.is_share, taken.broken, taken.not_text)


class _Taken:
    """Records from the beginning and the end of text files.

    Attributes:
        records: The records that can be read.
        days: The day folder of each of them.
        broken: How many records cannot be read.
        not_text: How many of the broken records are not text.
        is_share: Whether the files have more records.
    """

    def __init__(self, files: SampleFiles, share: Share, records: _Records) -> None:
        self.broken = self.not_text = 0
        head, tail = _parts(files.files, share.text_bytes)
        self.is_share = bool(tail)
        half = share.records // 2
        # `head` contains a small sample as a whole, so its first and last records are complete.
        first: list[tuple[TextRecord, date | None]] = []
        last: deque[tuple[TextRecord, date | None]] = deque(maxlen=half)
        dropped = 0
        for parts in (head, tail):
            for record, day in self._readable(parts, records):
                if len(first) < half and parts is head:
                    first.append((record, day))
                    continue
                if parts is head and tail:
                    break
                dropped += len(last) == half
                last.append((record, day))
        self.is_share = self.is_share or dropped > 0
        both = [*first, *last]
        self.records = [record for record, _ in both]
        self.days = np.array([_ordinal(day) for _, day in both], np.int64)

    def _readable(
        self, parts: Sequence[_Part], records: _Records
    ) -> Iterator[tuple[TextRecord, date | None]]:
        for file, start, end in parts:
            for record in records(self._lines_between(file, start, end)):
                if record.fields is None:
                    self.broken += 1
                    self.not_text += not record.is_text
                else:
                    yield record, file.day

    def _lines_between(self, file: SampleFile, start: int, end: int) -> Iterator[bytes]:
        """Yields the lines that begin between two bytes of a file; no line is cut."""
        with open_text(file) as stream:
            if start:
                stream.seek(start - 1)
                stream.readline()
            position = start
            for line in lines_of(stream, file.path):
                if position >= end:
                    self.is_share = True
                    return
                yield line
                position += len(line)


def _parts(files: Sequence[SampleFile], most: int) -> tuple[list[_Part], list[_Part]]:
    """Chooses the bytes to read: all of small files, the head and the tail of large ones."""
    sizes = [file.size_bytes * (_EXPANSION if file.is_compressed else 1) for file in files]
    if sum(sizes) <= most:
        # A compressed file may hold more than expected.
        return [(file, 0, most if file.is_compressed else file.size_bytes) for file in files], []
    head: list[_Part] = []
    tail: list[_Part] = []
    rest = most // 2
    for file, size in zip(files, sizes, strict=True):
        if rest > 0:
            head.append((file, 0, min(size, rest)))
            rest -= size
    rest = most // 2
    for file, size in zip(reversed(files), reversed(sizes), strict=True):
        if rest > 0 and not (file.is_compressed and any(file is one for one, _, _ in head)):
            # A compressed file can be read from its beginning only.
            start = 0 if file.is_compressed else max(0, size - rest)
            tail.append((file, start, min(size, start + rest)))
            rest -= size
    return head, tail[::-1]


def _ordinal(day: date | None) -> int:
    return 0 if day is None else day.toordinal() - date(1970, 1, 1).toordinal()
