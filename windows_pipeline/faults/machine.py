"""Faults of the machine: its disk, rights, memory, ports, and programs that are not installed."""

from __future__ import annotations

import errno
import os
import re
from dataclasses import dataclass

from py4j.protocol import Py4JNetworkError

from windows_pipeline.faults.chain import is_of_library, line_at, links, text_of
from windows_pipeline.faults.fault import MACHINE, USERS, Fault

_AGAIN = "then run the same command again: it resumes where it stopped"


@dataclass(frozen=True)
class _Kind:
    """A kind of fault.

    Attributes:
        what: What is wrong.
        fix: What helps.
        errnos: The system's numbers of it.
        words: Further signs of it in the text of a library's error.
        status: The exit status.
    """

    what: str
    fix: str
    errnos: tuple[int, ...] = ()
    words: str = ""
    status: int = MACHINE


_KINDS = (
    _Kind(
        "the disk is full",
        f"Free space there, or raise the limit of this user's files; {_AGAIN}",
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
        r"DSQuotaExceededException",
    ),
    _Kind(
        "nothing can be written, as the file system is read-only",
        f"Mount it writable, or name another folder in settings.yaml (warehouse); {_AGAIN}",
        (errno.EROFS,),
    ),
    _Kind(
        "the system forbids this user to read or write it",
        f"Let this user read and write it (chown, chmod), or run as its owner; {_AGAIN}",
        (errno.EACCES, errno.EPERM),
        r"AccessDeniedException|AccessControlException",
    ),
    _Kind(
        "a file stands where a folder must be",
        "Move the file away, or name another folder in settings.yaml (warehouse); then run the "
        "same command again",
        (errno.ENOTDIR,),
        r"ParentNotDirectoryException|Parent path is not a directory",
        USERS,
    ),
    _Kind(
        "a folder cannot be made there",
        "See that all above it are folders in which this user may write, on a file system that is "
        f"not read-only; {_AGAIN}",
        words=r"Mkdirs failed to create|DELTA_CANNOT_CREATE_LOG_PATH",
    ),
    _Kind(
        "too many files are open",
        f"Raise the limit (ulimit -n), or end the processes that hold them open; {_AGAIN}",
        (errno.EMFILE, errno.ENFILE),
    ),
    _Kind(
        "the disk failed to read or write",
        "Look at the system's log for the disk's errors (dmesg), replace the disk, and compare "
        "what is stored: windows-pipeline check PIPELINE",
        (errno.EIO,),
    ),
    _Kind(
        "Spark has too little memory",
        "Raise spark.driver.memory in settings.yaml, or spark.executor.memory on a cluster, or run "
        f"fewer days at once; {_AGAIN}",
        (errno.ENOMEM,),
        r"OutOfMemoryError|Please increase heap size|Could not reserve enough space",
    ),
    _Kind(
        "Spark cannot listen at its address",
        "End what uses the port, or correct spark.driver.host, spark.driver.port and "
        "spark.driver.bindAddress in settings.yaml; then run the same command again",
        (errno.EADDRINUSE, errno.EADDRNOTAVAIL),
        r"BindException",
    ),
    _Kind(
        "a Python process of Spark ended while it computed",
        "It is often ended for want of memory (dmesg): lower the number of tasks at once in "
        f"spark.master, or run fewer days at once; {_AGAIN}",
        words=r"Python worker exited unexpectedly",
    ),
)
_BY_ERRNO = {number: kind for kind in _KINDS for number in kind.errnos}
_NUMBER = re.compile(r"\[Errno (\d+)\]|\(os error (\d+)\)|\bOs \{ code: (\d+)")
"""How errors of Python and delta-rs show the system's error number."""
_IN_JAVA = r"(?:Exception|Error): [^\n\"']*?"
_STRERROR = re.compile(
    f"{_IN_JAVA}({'|'.join(re.escape(os.strerror(number)) for number in _BY_ERRNO)})"
)
"""Java shows the system's text without the number."""
_BY_STRERROR = {os.strerror(number): kind for number, kind in _BY_ERRNO.items()}
_WORDS = {kind: re.compile(kind.words) for kind in _KINDS if kind.words}
_PATH = re.compile(r"(?:file:)?(/[^\s:'\"(),\]}]+)")
_PROGRAM = re.compile(r"Cannot run program \"([^\"\n]+)\"")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([^']+)'")
_NO_JVM = re.compile(
    r"Answer from Java side is empty|trying to connect to the Java server"
    r"|\AAn error occurred while calling \S+\Z"
)
"""py4j's text where the JVM gave no answer; with an answer the text is longer."""
_MEMORY = f"End other programs, or run fewer days at once; {_AGAIN}"
_ENDED = (
    "It is often ended for want of memory (dmesg): lower spark.driver.memory in settings.yaml "
    f"below what is free, or end other programs; {_AGAIN}"
)


def of_machine(error: BaseException) -> Fault | None:
    """The fault of the machine that an error or its causes report; None if they report none."""
    tables = [note for link in links(error) for note in getattr(link, "__notes__", ())]
    if isinstance(error, ModuleNotFoundError):
        return _missing_package(error.name or "", str(error))
    for link in links(error):
        text = text_of(link) if is_of_library(link) else ""
        if found := _NO_MODULE.search(text):
            return _missing_package(found[1], found[0])
        if isinstance(link, (ConnectionError, Py4JNetworkError)) or _NO_JVM.search(text):
            return Fault("Spark's JVM ended while it worked", text_of(link), _ENDED, MACHINE)
        if isinstance(link, MemoryError):
            return Fault("this process has too little memory", text_of(link), _MEMORY, MACHINE)
        if (known := _kind_of(link)) is not None:
            kind, cause = known
            subject = next(iter(tables), None) or _file_of(link, cause)
            title = f"{subject}: {kind.what}" if subject else kind.what
            return Fault(title, cause, kind.fix, kind.status)
    return None


def _kind_of(error: BaseException) -> tuple[_Kind, str] | None:
    """The kind of fault of one error in the chain, and the line that shows it."""
    if isinstance(error, OSError) and error.errno is not None:
        kind = _BY_ERRNO.get(error.errno)
        return None if kind is None else (kind, text_of(error))
    if not is_of_library(error):
        return None
    text = text_of(error)
    if (found := _NUMBER.search(text)) and (
        kind := _BY_ERRNO.get(int(found[found.lastindex or 1]))
    ):
        return kind, line_at(text, found.start())
    if found := _STRERROR.search(text):
        return _BY_STRERROR[found[1]], line_at(text, found.start(1))
    for kind, words in _WORDS.items():
        if found := words.search(text):
            return kind, line_at(text, found.start())
    return None


def _file_of(error: BaseException, cause: str) -> str | None:
    """The file or folder that an error names."""
    name = getattr(error, "filename", None)
    if isinstance(name, str):
        return name
    # Java names the program that it could not start and the reason on different lines.
    program = _PROGRAM.search(text_of(error))
    found = program or _PATH.search(cause)
    return found[1] if found else None


def _missing_package(module: str, cause: str) -> Fault:
    return Fault(
        f"the Python package that has the module {module!r} is not installed",
        cause,
        "Install it where this command's Python, and on a cluster each executor's, finds it (pip "
        "install); or correct the name of the module",
        MACHINE,
    )
