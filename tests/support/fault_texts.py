"""Texts of errors that real faults gave: Spark 4.2, Delta 4.4, Java 17, Linux.

Each was taken from the error that a command met: of a folder without the right to write, a small
file system that was full or mounted read-only, a deleted file, a port in use. Paths are shortened,
and of Java's traces the first lines stand here.
"""

from __future__ import annotations

_CHECKPOINT = """An error occurred while calling o2807.awaitTermination.
: org.apache.spark.sql.streaming.StreamingQueryException: /w/p/_stream/offsets/.2.0972.tmp \
(Permission denied)
=== Streaming Query ===
Identifier: p stream [id = ac70520f, runId = d350626c]
"""
_PATH_NOT_FOUND = (
    "[PATH_NOT_FOUND] Path does not exist: file:/w/p/raw_events/arrival_unit=2026-11-01/"
    "part-00000-f5ea0711-c000.parquet. SQLSTATE: 42K03"
)
_FILE_NOT_EXIST = """An error occurred while calling o28244.localCheckpoint.
: org.apache.spark.SparkException: [FAILED_READ_FILE.FILE_NOT_EXIST] Encountered error while \
reading file file:/src/part-00001-87d88a95-c000.snappy.parquet. File does not exist. It is possible
You can explicitly invalidate the cache in Spark by running 'REFRESH TABLE tableName' command
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.fileNotExistError(QueryExecutionErrors.scala)
"""
_FULL = """An error occurred while calling o110.save.
: org.apache.spark.SparkException: [TASK_WRITE_FAILED] Task failed while writing rows to \
file:/w/x. SQLSTATE: 58030
\tat org.apache.spark.sql.errors.QueryExecutionErrors$.taskFailedWhileWritingRowsError(Query.scala)
Caused by: org.apache.parquet.util.AutoCloseables$ParquetCloseResourceException: Unable to close
Caused by: org.apache.hadoop.fs.FSError: java.io.IOException: No space left on device
\tat org.apache.hadoop.fs.RawLocalFileSystem$LocalFSFileOutputStream.write(RawLocalFileSystem.java)
Caused by: java.io.IOException: No space left on device
"""
_NO_LOG_FOLDER = """An error occurred while calling o110.save.
: org.apache.spark.sql.delta.DeltaIOException: [DELTA_CANNOT_CREATE_LOG_PATH] Cannot create \
file:/w/x2/_delta_log
\tat org.apache.spark.sql.delta.DeltaErrorsBase.cannotCreateLogPathException(DeltaErrors.scala)
"""
_NO_FOLDER = """An error occurred while calling o115.parquet.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 1 \
times, most recent failure: Lost task 0.0 in stage 0.0 (TID 0) (host executor driver): \
java.io.IOException: Mkdirs failed to create file:/w/z2/_temporary/0 (exists=false, cwd=file:/w)
"""
_ENDED = "An error occurred while calling o94.sc"
_FORBIDDEN = "able to read and write there"
_GONE = ": a file of the table is gone or cannot be read"

TEXTS = {
    "a table on a read-only file system": (_NO_LOG_FOLDER, _FORBIDDEN, 4),
    "a task on a read-only file system": (_NO_FOLDER, _FORBIDDEN, 4),
    "a JVM that was killed": (_ENDED, "one of them ended", 4),
    "a task's disk is full": (_FULL, "the disk must have room", 4),
    "a checkpoint that may not be written": (_CHECKPOINT, _FORBIDDEN, 4),
    "a named file that is gone": (_PATH_NOT_FOUND, f"p/raw_events{_GONE}", 2),
    "a file that a task misses": (_FILE_NOT_EXIST, f"/src{_GONE}", 2),
}
"""Each with a part of the fault's title, and the exit status."""
