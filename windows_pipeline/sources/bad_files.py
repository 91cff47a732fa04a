"""Names landed files that can't be read, even if a Spark task found the fault (rule A8)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from typing import TypeVar
from urllib.parse import unquote

T = TypeVar("T")
F = TypeVar("F")

LAND_AGAIN = "land the file again, or make it readable"
_THREADS = 16
_IN_TRACE = re.compile(r"^[\w.]*\bBadFileError: (.+)$", re.MULTILINE)
_SPARK = re.compile(r"\[FAILED_READ_FILE\.(\w+)\] Encountered error while reading file (\S+)\.\s")
"""How Spark names the file that a task failed on; the path is written as in a URI."""
_CAUSED_BY = re.compile(r"^\s*Caused by: (.+)$", re.MULTILINE)
_MOST_CHARACTERS = 300


class BadFileError(ValueError):
    """A landed file can't be read; the message is one line that names file, cause and fix.

    The line ends with the names of the other bad files that were found with it.

    Attributes:
        file: The file, as `YYYY-MM-DD/name`.
        cause: What is wrong with the file.
        fix: What to do.
        others: The errors of the other bad files that were found together with this one.
    """

    def __init__(
        self, file: str, cause: str, fix: str, others: Sequence[BadFileError] = ()
    ) -> None:
        """Takes the parts of the message, whose line breaks become blanks."""
        self.file, self.cause, self.fix = map(in_a_line, (file, cause, fix))
        self.others = tuple(others)
        text = f"{self.file}: {self.cause}; {self.fix}"
        if others:
            text += f" (as bad: {', '.join(other.file for other in others)})"
        super().__init__(text)

    @property
    def all(self) -> list[BadFileError]:
        """An error for each bad file."""
        return [BadFileError(self.file, self.cause, self.fix), *self.others]

    @property
    def days(self) -> set[date]:
        """The arrival days of all bad files."""
        return {date.fromisoformat(bad.file.split("/")[0]) for bad in (self, *self.others)}


def changed_while_read(file: str, how: str) -> BadFileError:
    """The error of a file that is not any more what was listed: changed, deleted or renamed."""
    return BadFileError(file, f"was {how} while it was read", "land the file again")


def in_a_line(text: str) -> str:
    """A text without line breaks; the names of files stand so in errors."""
    return " ".join(text.split())


def unreadable(file: str, error: BaseException) -> BadFileError:
    """The error of a file that can't be opened, or not be read to its end."""
    return BadFileError(file, f"can't be read ({error})", LAND_AGAIN)


def too_many_columns(file: str, most: int) -> BadFileError:
    """The error of a file with more columns than a file of its format may have."""
    cause = f"a file must have at most {most:,} columns, but has more"
    return BadFileError(file, cause, "land the declared columns, or fewer others")


def each_checked(check: Callable[[F], T], files: Iterable[F]) -> list[T]:
    """Calls a check that reads a little of each file, in threads; returns the results in order.

    Raises:
        BadFileError: The check raised it for one file or more; the error names all of them.
    """
    with ThreadPoolExecutor(_THREADS) as threads:
        tried = list(threads.map(lambda file: _tried(check, file), files))
    require_none([error for _, error in tried if error is not None])
    return [result for results, _ in tried for result in results]


def _tried(check: Callable[[F], T], file: F) -> tuple[list[T], BadFileError | None]:
    try:
        return [check(file)], None
    except BadFileError as error:
        return [], error


def with_more(
    left_out: Sequence[BadFileError], error: BadFileError
) -> tuple[BadFileError, ...] | None:
    """The files that were left out, and those of another error; None if it names no other file."""
    known = {bad.file for bad in left_out}
    more = [bad for bad in error.all if bad.file not in known]
    return (*left_out, *more) if more else None


def require_none(bad: Sequence[BadFileError]) -> None:
    """Raises one error for all bad files.

    Raises:
        BadFileError: There is a bad file.
    """
    if bad:
        first, *others = bad
        raise BadFileError(first.file, first.cause, first.fix, others)


def bad_file_in(error: BaseException) -> BadFileError | None:
    """The bad file that an error is about; None if the error is about something else.

    Args:
        error: A `BadFileError`, or the error of a Spark job, which has a task's error as text.
    """
    if isinstance(error, BadFileError):
        return error
    text = str(error)
    found = _IN_TRACE.search(text)
    if found:
        file, _, rest = found[1].partition(": ")
        cause, _, fix = rest.rpartition("; ")
        return BadFileError(file, cause, fix) if cause else None
    found = _SPARK.search(text)
    return None if found is None else _read_by_spark(found[1], found[2], text)


def _read_by_spark(condition: str, uri: str, text: str) -> BadFileError | None:
    day, _, name = unquote(uri).rpartition("/")
    file = f"{day.rpartition('/')[2]}/{name}"
    try:
        date.fromisoformat(file.split("/", maxsplit=1)[0])
    except ValueError:  # a file of a table, whose folder is not a day's
        return None
    if condition == "FILE_NOT_EXIST":
        return changed_while_read(file, "deleted or renamed")
    causes = _CAUSED_BY.findall(text)
    why = f" ({causes[-1].strip()[:_MOST_CHARACTERS]})" if causes else ""
    return BadFileError(file, f"is cut, damaged or was changed while it was read{why}", LAND_AGAIN)


@contextmanager
def naming_bad_files() -> Iterator[None]:
    """Raises the error of a Spark job that failed on a bad file as `BadFileError`.

    Raises:
        BadFileError: A file could not be read.
    """
    try:
        yield
    except Exception as error:
        bad = bad_file_in(error)
        if bad is None or bad is error:
            raise
        raise bad from error
