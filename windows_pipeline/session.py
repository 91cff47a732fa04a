"""A Spark session as the settings say, outside Dagster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from windows_pipeline.settings import Settings


def use_this_python() -> None:
    """Has Spark's workers run the Python that this process runs, unless told otherwise."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def start_session(settings: Settings) -> SparkSession:
    """Starts or takes the session."""
    use_this_python()
    builder = SparkSession.builder
    for name, value in settings.spark_conf().items():
        builder = builder.config(name, value)
    return without_checksum_files(builder.getOrCreate())


def without_checksum_files(session: SparkSession) -> SparkSession:
    """Has local data files written without a `.crc` file beside each; returns the session.

    Each costs a file and a process, a third of what a small file takes to write. Parquet's
    pages hold checksums of their own. Nothing changes where files are not local.
    """
    if not is_remote():
        context = session.sparkContext
        files = context._jvm.org.apache.hadoop.fs.FileSystem  # type: ignore[union-attr]  # noqa: SLF001
        files.getLocal(context._jsc.hadoopConfiguration()).setWriteChecksum(False)  # noqa: SLF001
    return session


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
