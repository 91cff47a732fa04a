"""One error for a file of a table that is gone or cannot be read."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

LOG_FOLDER = "_delta_log"
_MOST_CHARACTERS = 300
_FROM_LANDED = "raw_events"
_OF_PIPELINE: dict[str, str | None] = {
    "raw_events": _FROM_LANDED,
    "arrival_log": _FROM_LANDED,
    "rejected_records": _FROM_LANDED,
    "quarantined_files": _FROM_LANDED,
    "_landed_files": None,
}
_OF_WINDOWS: dict[str, str | None] = {
    "keyed_windows": "keyed_windows",
    "late_records": "keyed_windows",
    "failed_windows": "keyed_windows",
    "final_windows": "final_windows",
    "corrections": "final_windows",
    "alerts": "alerts",
    "notifications": "alerts",
    "firings": "firings",
    "early_warnings": "firings",
    "processed": "firings",
    "_computed_days": None,
    "_fired_days": None,
    "_processed_days": None,
}
"""The step of a rebuild that computes each table again; None for what a run notes again."""
_STEPS = _OF_PIPELINE | _OF_WINDOWS
_TABLE = rf"\w+/(?:{'|'.join(_OF_PIPELINE)}|\w+/(?:{'|'.join(_OF_WINDOWS)}))"
_BELOW = rf"{LOG_FOLDER}[^\s'\"),]*|(?:arrival_unit(?:=|%3D)[\d-]+/)?[^/'\"\n]*?\.parquet"
_FILE = re.compile(
    rf"(?P<folder>(?:[a-z0-9]+:/)?/[^'\"\n]*?/(?P<table>{_TABLE}))/(?P<below>{_BELOW})"
)
"""A file of a table in an error's text; a table's folder is WAREHOUSE/PIPELINE[/WINDOWS]/TABLE."""
_OTHER_FILE = re.compile(r"(?P<folder>/[^'\"\n]*?)/[^/'\"\n]*?\.parquet")
"""A data file of another table, which the pipeline follows."""
_DAY = re.compile(r"arrival_unit(?:=|%3D)(\d{4}-\d\d-\d\d)")
_IS_GONE = re.compile(
    r"No such file|Object at location .* not found|FileNotFound|not exist|PATH_NOT_FOUND"
)
_UNREADABLE = re.compile(r"Parquet error|No such file")
"""What delta-rs says of a file that it cannot read, where it does not name the file."""
_PANIC = "PanicException"
"""What delta-rs raises where it does not expect damage; no `Exception`, and not exported."""
_NUMBER = re.compile(r"\(os error (\d+)\)|\bOs \{ code: (\d+)")
_CAUSED_BY = re.compile(r"^Caused by: (?:[\w.$]+(?:Exception|Error): )?(.+)$", re.MULTILINE)


class TableDamagedError(Exception):
    """A file of a table is gone or cannot be read; the message says what computes it again.

    Attributes:
        table: The table's name, or its folder where it is no table of a pipeline.
        file: The file; None if not known.
        cause: What the reader said.
        lines: The message's lines: what is wrong, why, and what helps.
    """

    def __init__(self, table: str, file: str | None, cause: str) -> None:
        self.table, self.file, self.cause = table, file, cause
        day = _DAY.search(file or "")
        of_day = f" (day {day[1]})" if day else ""
        self.lines = (
            f"{table}: a file of the table is gone or cannot be read",
            f"{file or 'its log, or one of its data files'}{of_day}: {cause}",
            f"Put the file back from a backup{_or_compute_again(table, file)}",
        )
        super().__init__("\n  ".join(self.lines))


def _or_compute_again(table: str, file: str | None) -> str:
    """What helps without a backup; nothing for a table that no pipeline fills."""
    name = table.rsplit("/", 1)[-1]
    if table.startswith("/") or name not in _STEPS:
        return ", or correct what the pipeline reads"
    # A rebuild replaces data files without reading them, but it reads logs and bookkeeping.
    first = ""
    if file is None or LOG_FOLDER in file or _STEPS[name] is None:
        first = f"move the folder {table} out of the warehouse, then "
    return f"; or {first}{computes_again(table)}"


def computes_again(table: str) -> str:
    """What computes a table again.

    Args:
        table: The table's name, such as `flights/hourly/alerts`.
    """
    pipeline, step = table.split("/", 1)[0], _STEPS[table.rsplit("/", 1)[-1]]
    rebuild = f"windows-pipeline rebuild {pipeline} --from {step}"
    if step is None:
        return f"note again what is computed: windows-pipeline run {pipeline}"
    if step != _FROM_LANDED:
        return f"compute the table again from raw_events: {rebuild}"
    return (
        f"start over from the landed files: {rebuild} (a stream: delete its folder of tables, "
        f"then: windows-pipeline stream {pipeline}). This loses the days whose landed files are "
        "gone, too: first land them again from the source"
    )


@contextmanager
def damage_of(table: str, *, of_log: bool = False) -> Iterator[None]:
    """Turns what delta-rs and PyArrow raise of unreadable files into an error with the table.

    Args:
        table: The table's name or folder.
        of_log: Whether only the table's log is read, so that any error of delta-rs speaks of it.

    Raises:
        TableDamagedError: A file of the table is gone or cannot be read.
    """
    try:
        yield
    except (CommitFailedError, TableNotFoundError):
        raise
    except BaseException as error:
        text = str(error)
        is_sure = isinstance(error, FileNotFoundError | pa.ArrowInvalid)
        is_sure = is_sure or type(error).__name__ == _PANIC
        is_sure = is_sure or (of_log and isinstance(error, DeltaError))
        of_reader = isinstance(error, DeltaError | OSError | ValueError)
        is_sure = is_sure or (of_reader and bool(_FILE.search(text) or _UNREADABLE.search(text)))
        if is_environment(error) or not is_sure:
            raise
        file = _FILE.search(text)
        # delta-rs leaves out the slash with which the folder begins.
        below = LOG_FOLDER if of_log else file and file["below"]
        path = below and f"{table}/{below}"
        raise TableDamagedError(table_name(table), path, _cause(error)) from error


def damage_in(error: BaseException) -> TableDamagedError | None:
    """The unreadable file of a table that an error names, or that caused it; None without one.

    Spark reads a table long after the step that named it, so its errors are looked at where they
    come out.
    """
    link: BaseException | None = error
    while link is not None:
        if isinstance(link, TableDamagedError):
            return link
        link = link.__cause__ or link.__context__
    text = str(error)
    if is_environment(error):
        return None
    if file := _FILE.search(text):
        return TableDamagedError(file["table"], f"{file['folder']}/{file['below']}", _cause(error))
    if _IS_GONE.search(text) and (other := _OTHER_FILE.search(text)):
        return TableDamagedError(other["folder"], other[0], "is gone")
    return None


def is_environment(error: BaseException) -> bool:
    """Whether an error of reading is the machine's, such as a missing permission."""
    found = _NUMBER.search(str(error))
    number = int(found[1] or found[2]) if found else getattr(error, "errno", None)
    return isinstance(error, MemoryError) or number not in (None, errno.ENOENT)


def _cause(error: BaseException) -> str:
    """What a reader said, in a line that a message can have."""
    text = str(error)
    if isinstance(error, FileNotFoundError) or _IS_GONE.search(text):
        return "is gone"
    causes = _CAUSED_BY.findall(text)
    return first_line(causes[-1] if causes else text)


def first_line(error: object) -> str:
    """The first line of what a reader said, at most so long that a message can have it."""
    line = str(error).strip().split("\n", 1)[0]
    return line if len(line) <= _MOST_CHARACTERS else f"{line[:_MOST_CHARACTERS]}..."


def table_name(table: str) -> str:
    """The name of a table that is named, or lies in a folder of this name."""
    found = _FILE.match(f"{table.rstrip('/')}/{LOG_FOLDER}")
    return found["table"] if found else table
