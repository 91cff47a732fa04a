"""The causes of other programs' errors that a person acts on; the innermost error names the rest.

A file of a table that is gone or cannot be read has a message of its own: `storage.files.damage`.
"""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass

from py4j.protocol import Py4JNetworkError

from windows_pipeline.faults.chain import is_of_library, line_at, links, text_of
from windows_pipeline.faults.fault import MACHINE, USERS, Fault
from windows_pipeline.storage.files.damage import PUT_BACK

_AGAIN = "then run the same command again: it resumes where it stopped"
_OTHER_PIPELINE = "in a pipeline of another name, which has a checkpoint and tables of its own"


@dataclass(frozen=True)
class Cause:
    """A cause of errors.

    Attributes:
        must: What must hold, and does not.
        fix: What to do.
        texts: A pattern that ends in the line of a library's error that says what was found.
        kinds: Classes of errors that have this cause, whatever their text.
        status: The exit status of a command.
    """

    must: str
    fix: str
    texts: str
    kinds: tuple[type[BaseException], ...] = ()
    status: int = MACHINE


def _numbered(*numbers: int) -> str:
    """Matches how errors of Python, of delta-rs and of Java show the system's error numbers."""
    either = "|".join(map(str, numbers))
    texts = "|".join(re.escape(os.strerror(number)) for number in numbers)
    return (
        rf"\[Errno (?:{either})\]|\(os error (?:{either})\)|\bOs \{{ code: (?:{either})\b"
        rf"|(?:Exception|Error): [^\n\"']*?(?:{texts})"
    )


CAUSES = (
    Cause(
        "the disk must have room, but is full",
        f"Free space there, or raise the limit of this user's files; {_AGAIN}",
        _numbered(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
    ),
    Cause(
        "a folder must be there, but it is a file",
        "Move the file away, or name another folder in settings.yaml (warehouse); then run the "
        "same command again",
        rf"{_numbered(errno.ENOTDIR)}|ParentNotDirectoryException|Parent path is not a directory",
        status=USERS,
    ),
    Cause(
        "this user must be able to read and write there, but is not",
        "Let this user read and write it (chown, chmod), mount it writable, or name another folder "
        f"in settings.yaml (warehouse); {_AGAIN}",
        rf"{_numbered(errno.EACCES, errno.EPERM, errno.EROFS)}|AccessDeniedException"
        "|AccessControlException|Mkdirs failed to create|DELTA_CANNOT_CREATE_LOG_PATH",
    ),
    Cause(
        "there must be enough memory, but there is too little",
        "Raise spark.driver.memory in settings.yaml, or spark.executor.memory on a cluster, end "
        f"other programs, or run fewer days at once; {_AGAIN}",
        rf"{_numbered(errno.ENOMEM)}|OutOfMemoryError|Please increase heap size",
        (MemoryError,),
    ),
    Cause(
        "Spark's processes must run until the command ends, but one of them ended",
        "It is often ended for want of memory (dmesg): lower spark.driver.memory in settings.yaml "
        "below what is free, or the number of tasks at once in spark.master, or end other "
        f"programs; {_AGAIN}",
        "Python worker exited unexpectedly|Answer from Java side is empty"
        r"|\AAn error occurred while calling \S+\Z",  # with Java's answer the text is longer
        (ConnectionError, Py4JNetworkError),
    ),
    Cause(
        "Spark must be able to listen at its address, but is not",
        "End what uses the port, or correct spark.driver.host, spark.driver.port and "
        "spark.driver.bindAddress in settings.yaml; then run the same command again",
        rf"{_numbered(errno.EADDRINUSE, errno.EADDRNOTAVAIL)}|BindException",
    ),
    Cause(
        "the Python packages that the code imports must be installed, but one is not",
        "Install it where this command's Python, and on a cluster each executor's, finds it (pip "
        "install); or correct the name of the module",
        "ModuleNotFoundError: No module named",
        (ModuleNotFoundError,),
    ),
    Cause(
        "its checkpoint must be whole, and no other stream may use it",
        "If another stream of the pipeline runs, stop it or wait for its end. If a file below "
        "commits is named, delete it and the file .N.crc beside it: it only says that a "
        f"micro-batch ended, and the tables take no row twice. Otherwise {PUT_BACK}",
        r"/_stream/(?:offsets|commits|sources|metadata)\b|com\.fasterxml\.jackson\S*: No content"
        r"|batch \d+ doesn't exist|CONCURRENT_STREAM_LOG_UPDATE",
        status=USERS,
    ),
    Cause(
        "the table that it follows must be a Delta table that keeps its columns and its rows",
        "Correct source.path, or put the table back; or follow the table as it is now "
        f"{_OTHER_PIPELINE}",
        r"DELTA_(?:STREAMING_\w*SCHEMA|SCHEMA_CHANGED|SCHEMA_NOT_SET|SOURCE_|MISSING_DELTA_TABLE"
        "|TABLE_NOT_FOUND)",
        status=USERS,
    ),
    Cause(
        "the topic must have all records that were not read yet, but some are gone",
        "Send them to the topic again; or accept the loss and start over with the records that are "
        f"there, {_OTHER_PIPELINE}. Have the topic keep its records longer than the longest pause "
        "between two runs",
        r"Some data may have been lost because they are not available in Kafka[\s\S]*?Reason:\s*.",
        status=USERS,
    ),
    Cause(
        "Kafka must answer, and have the topic",
        "Start the broker, create the topic, or correct topic, servers and security options; then "
        "run again: the stream resumes where it stopped. The unread records of a topic that was "
        "deleted are lost",
        r"org\.apache\.kafka\.common\.[\w.]*Exception|Cannot fetch record for offset \d+",
        status=USERS,
    ),
)


def of_cause(error: BaseException) -> Fault | None:
    """The fault of an error that has one of these causes, or of which a cause is one."""
    where = [note for link in links(error) for note in getattr(link, "__notes__", ())]
    for link in links(error):
        for cause in CAUSES:
            found = _found(cause, link)
            if found is not None:
                title = ": ".join([", ".join(where), cause.must] if where else [cause.must])
                return Fault(title, found, cause.fix, cause.status)
    return None


def _found(cause: Cause, error: BaseException) -> str | None:
    """What an error of this cause says; None of another error."""
    text = text_of(error)
    if isinstance(error, cause.kinds):
        return text
    if not is_of_library(error):
        return None
    matches = list(re.finditer(cause.texts, text))
    return line_at(text, matches[-1].end() - 1) if matches else None
