"""Hadoop's file systems as Spark's configuration names them: PySpark has no door to them.

PyArrow's file systems know neither `s3a://` nor the options that Spark's configuration gives to
Hadoop (`spark.hadoop.fs.s3a...`), so that files of object stores are asked for here, too.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession


def shares_files(session: SparkSession) -> bool:
    """Whether a plain path is the same file to Spark as it is to this process.

    Not over Spark Connect, whose server may be elsewhere, nor where Spark's default file system
    is not the local one.
    """
    return isinstance(session, SparkSession) and _is_local(session.sparkContext)


@lru_cache(maxsize=4)
def _is_local(context: SparkContext) -> bool:
    java: Any = context._jsc  # noqa: SLF001
    return files_are_local(java.hadoopConfiguration())


def files_are_local(hadoop: Any) -> bool:
    """Whether plain paths are local files by a Hadoop `Configuration`."""
    scheme: str = hadoop.get("fs.defaultFS", "file:///")
    return scheme.startswith("file:")


class FileTimes:
    """Tells when files were written, in any file system that Spark reads; threads may share it."""

    def __init__(self, spark: SparkSession) -> None:
        """Takes the file systems' options from a classic session."""
        session: Any = spark
        self._jvm = session._jvm  # noqa: SLF001
        self._hadoop = session._jsparkSession.sessionState().newHadoopConf()  # noqa: SLF001

    def written_ms(self, uri: str) -> int:
        """When a file was written, in milliseconds since 1970.

        Raises:
            Py4JJavaError: There is no such file, or its file system does not answer.
        """
        path = self._jvm.org.apache.hadoop.fs.Path(self._jvm.java.net.URI(uri))
        status = path.getFileSystem(self._hadoop).getFileStatus(path)
        written_ms: int = status.getModificationTime()
        return written_ms
