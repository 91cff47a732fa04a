"""What a reader says of a damaged table, in one error that names table, file, cause and command."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from windows_pipeline.storage.files.digests import LOG_FOLDER

_MOST_CHARACTERS = 300
_OF_DAMAGE = (FileNotFoundError, pa.ArrowInvalid)
_OF_READERS = (DeltaError, OSError, ValueError)
_PANIC = "PanicException"
"""What delta-rs raises where it does not expect damage; no `Exception`, and not exported."""
_NO_DAMAGE = re.compile(
    r"Permission denied|Too many open files|No space left|Read-only file system"
)
_PATH = re.compile(r"(?:file:)?(/[^'\"\n]*?\.(?:parquet|json|crc))(?!\w|\.\w)")
"""A path in an error's text. A lazy match, as folders may have blanks in their names."""
_START = re.compile(r"file:|[ (=](?=/)")
"""What stands before a path, where a text has a slash before it."""
_SIGNS = re.compile(
    r"FAILED_READ_FILE|not a Parquet file|Parquet file size is|Parquet magic|[Cc]orrupt|CRC"
    r"|ParquetDecodingException|Parquet error|Thrift|ChecksumException|checksum (?:error|failed)"
    r"|FileNotFoundException|No such file|PATH_NOT_FOUND|DELTA_VERSIONS_NOT_CONTIGUOUS"
    r"|DELTA_TRUNCATED|DELTA_STATE_RECOVER|DELTA_FILE_NOT_FOUND|DELTA_LOG_FILE_NOT_FOUND"
    r"|JsonParseException"
    r"|JsonEOFException|Json error|MALFORMED_RECORD|Kernel error|Codec failed"
    r"|[Uu]nexpected end|EOFException|Page(?:Header)?.*(?:invalid|verif)|could not (?:read|decode)"
)
"""What errors of Spark, Delta, delta-rs and PyArrow have in common that speak of damaged files."""
_CAUSED_BY = re.compile(r"^Caused by: (?:[\w.$]+(?:Exception|Error): )?(.+)$", re.MULTILINE)


class TableDamagedError(Exception):
    """A file of a table is not as it was written, or gone; the message names the commands.

    Attributes:
        table: The table's name, or its folder where the name is not known.
        file: The file, below the table's folder or with its whole path; None if not known.
        cause: What the reader said.
        lines: The message's lines: what is wrong, why, and what helps.
    """

    def __init__(self, table: str, file: str | None, cause: str) -> None:
        self.table, self.file, self.cause = table, file, cause
        pipeline = table.split("/", maxsplit=1)[0] or "PIPELINE"
        self.lines = (
            f"{table}: a file of the table is damaged or gone",
            f"{file or 'its log, or one of its data files'}: {cause}",
            f"to see all damage and how to fix it: windows-pipeline check {pipeline} --files",
        )
        super().__init__("\n  ".join(self.lines))


@contextmanager
def damage_of(table: str, *, of_log: bool = False) -> Iterator[None]:
    """Turns what delta-rs and PyArrow raise of damaged files into an error that names the table.

    Args:
        table: The table's name or folder.
        of_log: Whether only the table's log is read, so that any error of delta-rs speaks of it.

    Raises:
        TableDamagedError: A file of the table is damaged.
    """
    try:
        yield
    except (CommitFailedError, TableNotFoundError):
        raise
    except BaseException as error:
        text = str(error)
        is_sure = isinstance(error, _OF_DAMAGE) or type(error).__name__ == _PANIC
        is_sure = is_sure or (of_log and isinstance(error, DeltaError))
        is_sure = is_sure or (isinstance(error, _OF_READERS) and bool(_SIGNS.search(text)))
        if is_environment(error) or not is_sure:
            raise
        path = _PATH.search(text)
        raise TableDamagedError(
            table_name(table), path and path[1], "is gone" if _is_gone(error) else first_line(text)
        ) from error


def damage_in(error: BaseException) -> TableDamagedError | None:
    """The damage of a table of ours that an error speaks of, or that caused it; else None.

    Spark reads a table long after the step that named it, so its errors are looked at where they
    come out.
    """
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, TableDamagedError):
            return seen
        seen = seen.__cause__ or seen.__context__
    text = str(error)
    if not _SIGNS.search(text) or is_environment(error):
        return None
    for path in _paths_in(text):
        name = table_of(path)
        if name is not None:
            causes = _CAUSED_BY.findall(text)
            is_gone = not path.exists()
            cause = "is gone" if is_gone else first_line(causes[-1] if causes else text)
            return TableDamagedError(name, str(path), cause)
    return None


@contextmanager
def naming_damage() -> Iterator[None]:
    """Raises the damage of a table that an error of Spark speaks of in place of that error.

    Raises:
        TableDamagedError: A file of a table is damaged.
    """
    try:
        yield
    except Exception as error:
        damaged = damage_in(error)
        if damaged is None or damaged is error:
            raise
        raise damaged from error


def is_environment(error: BaseException) -> bool:
    """Whether an error of reading is the machine's, such as a missing permission: no damage."""
    return bool(_NO_DAMAGE.search(str(error)))


def first_line(error: object) -> str:
    """The first line of what a reader said, at most so long that a message can have it."""
    line = str(error).strip().split("\n", 1)[0]
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}..."


def table_of(path: Path) -> str | None:
    """The name of the table of ours that a file belongs to; None for any other file."""
    for folder in path.parents:
        if (folder / LOG_FOLDER).is_dir():
            return _name_in_warehouse(folder)
    return None


def _paths_in(text: str) -> Iterator[Path]:
    """The paths that an error's text may name; folders may have blanks in their names."""
    for found in _PATH.finditer(text):
        starts = [0, *(start.end() for start in _START.finditer(found[1]))]
        for start in starts:
            yield Path(unquote(found[1][start:]))


def table_name(table: str) -> str:
    """The name of a table that is named, or lies in a folder of this name."""
    return (_name_in_warehouse(Path(table)) or table) if table.startswith("/") else table


def _name_in_warehouse(folder: Path) -> str | None:
    """A table's name: a pipeline's folder is the one that holds its arrival_log."""
    for above in (folder.parent, folder.parent.parent):
        if (above / "arrival_log").is_dir():
            return str(folder.relative_to(above.parent))
    return None


def _is_gone(error: BaseException) -> bool:
    return isinstance(error, FileNotFoundError) or "No such file" in str(error)
