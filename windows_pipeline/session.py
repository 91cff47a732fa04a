"""A Spark session as the settings say, outside Dagster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

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
