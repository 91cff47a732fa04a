"""Hadoop's file systems as Spark's configuration sets them up: PySpark has no public access.

PyArrow's file systems know neither `s3a://` nor the options that Spark's configuration passes to
Hadoop (`spark.hadoop.fs.s3a...`), so this module also serves files of object stores.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession


def shares_files(session: SparkSession) -> bool:
    """Whether Spark and this process find the same file under a path without a scheme.

    They do not over Spark Connect, whose server may run on another machine, nor when Spark's
    default file system is not the local file system.
    """
    return isinstance(session, SparkSession) and _is_local(session.sparkContext)


@lru_cache(maxsize=4)
def _is_local(context: SparkContext) -> bool:
    java: Any = context._jsc  # noqa: SLF001
    return files_are_local(java.hadoopConfiguration())


def files_are_local(hadoop: Any) -> bool:
    """Whether a Hadoop `Configuration` resolves paths without a scheme to local files."""
    scheme: str = hadoop.get("fs.defaultFS", "file:///")
    return scheme.startswith("file:")


class FileTimes:
    """Modification times of files in any file system that Spark reads; thread-safe."""

    def __init__(self, spark: SparkSession) -> None:
        """Copies the file systems' options from a classic session."""
        session: Any = spark
        self._jvm = session._jvm  # noqa: SLF001
        self._hadoop = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001

    def written_ms(self, uri: str) -> int:
        """The time at which a file was last written, in milliseconds since 1970.

        Raises:
            Py4JJavaError: The file does not exist, or its file system does not answer.
        """
        path = self._jvm.org.apache.hadoop.fs.Path(self._jvm.java.net.URI(uri))
        status = path.getFileSystem(self._hadoop).getFileStatus(path)
        written_ms: int = status.getModificationTime()
        return written_ms
