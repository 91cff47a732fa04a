"""Starts and configures Spark sessions."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from pathlib import Path
from string import ascii_letters, digits
from typing import TextIO, cast

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from windows_pipeline.compat.py4j_names import remember_names
from windows_pipeline.settings import Settings
from windows_pipeline.text.problems import RefusedError

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
"""The environment variable with the arguments by which PySpark starts the JVM."""
_PLAIN = frozenset(f"{ascii_letters}{digits}._-")
"""The characters that a file of Java's properties holds without escapes."""


class SparkStartError(RefusedError):
    """Spark's JVM did not start; the message says what Spark needs."""

    exit_status = 4


def use_this_python() -> None:
    """Makes Spark's workers run this process's Python, unless PYSPARK_PYTHON is set."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def start_session(settings: Settings) -> SparkSession:
    """Starts a session with the settings' configuration, or returns the running one.

    Raises:
        SparkStartError: Spark's JVM ended while it started.
    """
    use_this_python()
    conf = settings.spark_conf()
    builder = SparkSession.builder
    try:
        with _only_installed_modules(), _private(conf, settings.private_keys) as shown:
            for name, value in shown.items():
                builder = builder.config(name, value)
            return with_cached_names(builder.getOrCreate())
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise SparkStartError(_why_not_started()) from None


@contextmanager
def _only_installed_modules() -> Iterator[None]:
    """Keeps the working directory off the search path of the Python programs that the JVM starts.

    Spark starts its daemon and its workers by `python -m`, which puts the working directory first.
    An empty entry of PYTHONPATH is the working directory, too.
    """
    values = {"PYTHONSAFEPATH": "1"}
    if "PYTHONPATH" in os.environ:
        entries = os.environ["PYTHONPATH"].split(os.pathsep)
        values["PYTHONPATH"] = os.pathsep.join(filter(None, entries))
    with _environment(values):
        yield


@contextmanager
def _environment(values: Mapping[str, str]) -> Iterator[None]:
    """Sets environment variables, and restores them at the end of the block."""
    previous = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, old in previous.items():
            if old is None:
                del os.environ[name]
            else:
                os.environ[name] = old


@contextmanager
def _private(
    conf: Mapping[str, str], private_keys: AbstractSet[str]
) -> Iterator[Mapping[str, str]]:
    """Keeps values that may be secret off the command line with which PySpark starts the JVM.

    Every user of the machine can read a command line. Instead, the JVM reads these values from a
    file that only its owner can read.

    Yields:
        The configuration to pass to PySpark.

    Raises:
        SparkStartError: The environment names a file of configuration of its own.
    """
    has_jvm = SparkContext._gateway is not None  # noqa: SLF001  nothing public says so
    if not private_keys or "spark.remote" in conf or has_jvm:
        yield conf
        return
    arguments = os.environ.get(_ARGUMENTS)
    if arguments is not None and "--properties-file" in arguments:
        raise SparkStartError(
            f"{_ARGUMENTS} must name no --properties-file where settings.yaml refers to "
            "environment variables under spark; take it out, and write its lines under spark"
        )
    with _private_file() as (lines, file):
        lines.writelines(_property(name, conf[name]) for name in sorted(private_keys))
        lines.flush()
        properties = f"--properties-file {shlex.quote(file)} --load-spark-defaults"
        with _environment({_ARGUMENTS: f"{properties} {arguments or 'pyspark-shell'}"}):
            yield {name: value for name, value in conf.items() if name not in private_keys}


@contextmanager
def _private_file() -> Iterator[tuple[TextIO, str]]:
    """A file that only this user can read, and its name; it ends with the block.

    On Linux it lies in memory and ends with the process, too, even with one that is killed.
    """
    if hasattr(os, "memfd_create"):
        with os.fdopen(os.memfd_create("windows-pipeline"), "w", encoding="utf-8") as lines:
            yield lines, f"/proc/{os.getpid()}/fd/{lines.fileno()}"
        return
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", prefix="windows-pipeline-", suffix=".conf"
    ) as lines:
        yield cast("TextIO", lines), lines.name


def _property(name: str, value: str) -> str:
    """A line of a file of Java's properties."""
    return f"{_escaped(name)}={_escaped(value)}\n"


def _escaped(text: str) -> str:
    data = text.encode("utf-16-be")
    units = (int.from_bytes(data[start : start + 2]) for start in range(0, len(data), 2))
    return "".join(chr(unit) if chr(unit) in _PLAIN else f"\\u{unit:04x}" for unit in units)


def _why_not_started() -> str:
    """Says what Spark's JVM lacks, as far as this process can see."""
    home = os.environ.get("JAVA_HOME")
    fix = "install Java 17 or 21, and set JAVA_HOME to its folder, or add its bin to the PATH"
    if home and not Path(home, "bin", "java").is_file():
        return f"Spark needs Java: JAVA_HOME is {home}, which has no bin/java; {fix}"
    if not home and shutil.which("java") is None:
        return f"Spark needs Java: JAVA_HOME is not set, and the PATH has no java; {fix}"
    return (
        "Spark's JVM ended while it started; its output has the reason. It needs Java 17 or 21, "
        "the memory that spark.driver.memory in settings.yaml asks for and, at its first start, a "
        "network to download its packages"
    )


def with_cached_names(session: SparkSession) -> SparkSession:
    """Caches py4j's names, so that PySpark builds plans faster; returns the session."""
    if not is_remote():
        remember_names(session.sparkContext)
    return session


@contextmanager
def configured(session: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Sets a session's Spark SQL configuration, and restores it at the end of the block."""
    previous = {name: session.conf.get(name, None) for name in conf}
    try:
        for name, value in conf.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, old in previous.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)
