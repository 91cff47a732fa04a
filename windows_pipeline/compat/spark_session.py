"""A Spark session as the settings say, outside Dagster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from windows_pipeline.settings import Settings

_NAMES = {
    "functions": ("col", "lit"),
    "org.apache.spark.sql.functions": ("col", "lit", "when", "expr", "coalesce", "unix_millis"),
    "org.apache.spark.sql.classic.SparkSession": ("getActiveSession", "setActiveSession"),
    "org.apache.spark.sql.expressions.Window": ("partitionBy",),
    "PythonUtils": ("toSeq", "toArray"),
    "PythonSQLUtils": ("ddlToJson", "readArrowStreamFromFile", "toDataFrame"),
}
"""The JVM's classes and functions that PySpark asks for most."""
_BETWEEN_PAIRS, _IN_A_PAIR = "\0", " -> "
"""What no value of Spark's has, and what Scala writes between a name and its value."""


class SparkStartError(Exception):
    """Spark's JVM did not start; the message says what it needs."""


def use_this_python() -> None:
    """Has Spark's workers run the Python that this process runs, unless told otherwise."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def start_session(settings: Settings) -> SparkSession:
    """Starts or takes the session.

    Raises:
        SparkStartError: Its JVM ended at once.
    """
    use_this_python()
    builder = SparkSession.builder
    for name, value in settings.spark_conf().items():
        builder = builder.config(name, value)
    try:
        return made_ready(builder.getOrCreate())
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise SparkStartError(
            "Spark did not start, and has printed why. It needs Java 17 or 21 (of JAVA_HOME, or on "
            "the path), and at its first start a network, for packages of its own"
        ) from None


def made_ready(session: SparkSession) -> SparkSession:
    """Has Spark do less for each small file, and for each small plan; returns the session."""
    if not is_remote():
        _leave_out_checksum_files(session.sparkContext)
        _remember_names(session.sparkContext)
    return session


def _leave_out_checksum_files(context: SparkContext) -> None:
    """Has local data files written without a `.crc` file beside each.

    Each costs a file and a process, a third of what a small file takes to write. Parquet's
    pages hold checksums of their own. Nothing changes where files are not local.
    """
    files = context._jvm.org.apache.hadoop.fs.FileSystem  # type: ignore[union-attr]  # noqa: SLF001
    files.getLocal(context._jsc.hadoopConfiguration()).setWriteChecksum(False)  # noqa: SLF001


def _remember_names(context: SparkContext) -> None:
    """Has PySpark find the names that it uses most without asking the JVM.

    It asks for a class, and for its function, each time that it makes a column; the JVM looks
    for a short name in several packages, of hundreds of files each: a tenth of a small step.
    """
    names: Any = context._jvm  # noqa: SLF001
    for name, members in _NAMES.items():
        of_class = getattr(names, name)
        for member in members:
            setattr(of_class, member, getattr(of_class, member))
        setattr(names, name, of_class)


def shares_files(session: SparkSession) -> bool:
    """Whether a plain path is the same file to Spark as it is to this process.

    Not over Spark Connect, whose server may be elsewhere, nor where Spark's default file system
    is not the local one.
    """
    return isinstance(session, SparkSession) and _is_local(session.sparkContext)


@lru_cache(maxsize=4)
def _is_local(context: SparkContext) -> bool:
    return files_are_local(context._jsc.hadoopConfiguration())  # noqa: SLF001


def files_are_local(hadoop: Any) -> bool:
    """Whether plain paths are local files by Hadoop's configuration."""
    scheme: str = hadoop.get("fs.defaultFS", "file:///")
    return scheme.startswith("file:")


def all_conf(session: SparkSession) -> Mapping[str, str]:
    """Spark SQL's configuration of a session, asked for at once and not a name after another."""
    if is_remote():
        return session.conf.getAll
    settings: Any = session._jsparkSession.conf().getAll()  # noqa: SLF001
    pairs = settings.mkString(_BETWEEN_PAIRS).split(_BETWEEN_PAIRS)
    return dict(pair.split(_IN_A_PAIR, 1) for pair in pairs)


@contextmanager
def configured(session: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Sets Spark SQL's configuration of a session for a while."""
    before = {name: session.conf.get(name, None) for name in conf}
    try:
        for name, value in conf.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)
