"""One error for a file of a table that is gone or cannot be read."""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from windows_pipeline.storage.catalog import OF_SOURCE, OF_WINDOWS

LOG_FOLDER = "_delta_log"
_STEPS = {kind.name: kind.step for kind in (*OF_SOURCE, *OF_WINDOWS)}
"""The step of a rebuild that computes each table again; None for what a run notes again."""
_OF_SOURCE = {kind.name for kind in OF_SOURCE}
"""Tables in the folder PIPELINE/TABLE; the others are in PIPELINE/WINDOWS/TABLE."""
_FILE = re.compile(
    rf"(?P<folder>(?:[a-z0-9]+:/)?/[^'\"\n]*?)"
    rf"/(?P<below>{LOG_FOLDER}\b[^\s'\"),]*|(?:arrival_unit(?:=|%3D)[\d-]+/)?[^/'\"\n]*?\.parquet)"
)
"""A file of a table in an error's text."""
_DAY = re.compile(r"arrival_unit(?:=|%3D)(\d{4}-\d\d-\d\d)")
_IS_GONE = re.compile(
    r"No such file|Object at location .* not found|FileNotFound|not exist|PATH_NOT_FOUND"
)
_READERS = (DeltaError, pa.ArrowException, OSError, ValueError, OverflowError, NotImplementedError)
"""What delta-rs and PyArrow raise of a file that they cannot read."""
_PANIC = "PanicException"
"""What delta-rs raises where it does not expect damage; no `Exception`, and not exported."""
_NUMBER = re.compile(r"\(os error (\d+)\)|\bOs \{ code: (\d+)")
_OF_STORE = re.compile(r"Generic (S3|GCS|MicrosoftAzure|HTTP|HTTP client) error")
"""What delta-rs says of an object store that does not answer, or refuses to."""
_CAUSED_BY = re.compile(r"^Caused by: (?:[\w.$]+(?:Exception|Error): )?(.+)$", re.MULTILINE)
GONE = "is gone"
"""The cause of an error of a file that is not there."""
PUT_BACK = (
    "put the checkpoint back as it was when the tables were written last; or delete the pipeline's "
    "folder of tables and start over"
)
"""The fix for a stream's checkpoint that does not say which records the tables have."""


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
    if step != "raw_events":
        return f"compute the table again from raw_events: {rebuild}"
    return (
        f"start over from the landed files: {rebuild} (a stream: delete its folder of tables, "
        f"then: windows-pipeline stream {pipeline}). This loses the days whose landed files are "
        "gone, too: first land them again from the source"
    )


@contextmanager
def damage_of(
    table: str, file: str | None = None, search: Callable[[], str | None] | None = None
) -> Iterator[None]:
    """Turns what delta-rs and PyArrow raise of unreadable files into an error with the table.

    Args:
        table: The table's name or folder.
        file: The file that is read; None for a block that may fail for other reasons, too, so that
            only an error that speaks of a file is one of the table.
        search: Finds the file in a block that only reads files, where the error does not name it.

    Raises:
        TableDamagedError: A file of the table is gone or cannot be read.
    """
    try:
        yield
    except (CommitFailedError, TableNotFoundError):
        raise
    except BaseException as error:
        text = str(error)
        named = _FILE.search(text)
        is_shown = file or search or named or "Parquet error" in text or _IS_GONE.search(text)
        is_of_file = type(error).__name__ == _PANIC or (isinstance(error, _READERS) and is_shown)
        if _is_of_machine(error) or not is_of_file:
            raise
        if file is None and named:
            file = f"{table}/{named['below']}"  # delta-rs leaves out the folder's first slash
        if file is None and search is not None:
            file = search()
        raise TableDamagedError(table_name(table), file, _cause(error)) from error


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
    found = _FILE.search(text)
    if found is None or _is_of_machine(error):
        return None
    table = table_name(found["folder"])
    is_of_pipeline = table != found["folder"]
    if is_of_pipeline or _IS_GONE.search(text):
        return TableDamagedError(table, found[0], _cause(error))
    return None


def _is_of_machine(error: BaseException) -> bool:
    """Whether an error of reading is the machine's or the store's, such as a missing permission."""
    if _OF_STORE.search(str(error)):
        return True
    found = _NUMBER.search(str(error))
    number = int(found[1] or found[2]) if found else getattr(error, "errno", None)
    return isinstance(error, MemoryError) or number not in (None, errno.ENOENT)


def _cause(error: BaseException) -> str:
    """What a reader said, in a line that a message can have."""
    text = str(error)
    if isinstance(error, FileNotFoundError) or _IS_GONE.search(text):
        return GONE
    causes = _CAUSED_BY.findall(text)
    return (causes[-1] if causes else text).strip().split("\n", 1)[0]


def table_name(folder: str) -> str:
    """The name of the table in a folder, such as `flights/hourly/alerts`; of another the folder."""
    parts = folder.rstrip("/").split("/")
    if parts[-1] not in _STEPS:
        return folder
    return "/".join(parts[-2 if parts[-1] in _OF_SOURCE else -3 :])
