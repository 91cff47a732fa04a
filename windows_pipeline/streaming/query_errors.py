"""Errors of a streaming query as a line with its fix: of its checkpoint, its source, or another."""

from __future__ import annotations

import re

from windows_pipeline.config import Pipeline
from windows_pipeline.streaming.checkpoint import PUT_BACK

_CHANGED = (
    "rows of its source's table were changed or deleted, and a stream takes added rows only. Let "
    "it follow a table to which rows are only added; or delete the pipeline's folder of tables and "
    "start over from the rows that are there now"
)
_ANOTHER = (
    "another stream of the pipeline runs, so stop it or wait for its end; or, if none runs, the "
    f"newest files in {{checkpoint}}/offsets were deleted; {PUT_BACK}"
)
_DELETE = (
    "it only says that a micro-batch ended: delete it and the file .N.crc beside it, if there is "
    "one, then run the stream again; the tables take no row twice"
)
_CHECKPOINT = (
    r"(Failed to read log file \S+|Checksum error: \S+|inconsistent state: the metadata file"
    r"|com\.fasterxml\.jackson\S*: No content|batch \d+ doesn't exist"
    r"|sources in the checkpoint offsets and now there are)"
)
_RENAMED = (
    "a column of the table that it follows, {source}, was renamed, dropped or given another type, "
    "and a stream follows one schema. Follow the table as it is now in a pipeline of another name, "
    "which has a checkpoint and tables of its own"
)
_NO_TABLE = (
    "{source} must be the Delta table that it follows, but is not; correct source.path, or put "
    "the table back"
)
_KNOWN = (
    (r"DELTA_STREAMING_[A-Z_]*SCHEMA|DELTA_SCHEMA_CHANGED", _RENAMED),
    (r"DELTA_SOURCE_TABLE_IGNORE_CHANGES|DELTA_SOURCE_IGNORE_DELETE", _CHANGED),
    (r"DELTA_SCHEMA_NOT_SET|DELTA_MISSING_DELTA_TABLE|DELTA_TABLE_NOT_FOUND", _NO_TABLE),
    (r"CONCURRENT_STREAM_LOG_UPDATE|queries are concurrently using", _ANOTHER),
    (
        r"(?:Failed to read log file|Checksum error:) (?:file:)?(\S+/commits/\d+)",
        f"a file of its checkpoint cannot be read: {{0}}; {_DELETE}",
    ),
    (_CHECKPOINT, f"its checkpoint, {{checkpoint}}, cannot be read ({{0}}); {PUT_BACK}"),
)
"""Known errors of a query: a pattern in Spark's text, and what it means; {0} is its group."""


class StreamBehindError(Exception):
    """The stream's checkpoint does not fit the tables; the message says why and names the fix."""


def in_short(error: Exception, pipeline: Pipeline, checkpoint: str) -> Exception:
    """The error of a query as a line with its fix; the error itself if it is not a known one.

    Args:
        error: What Spark raised when the query was started, or stopped.
        pipeline: The pipeline of the stream.
        checkpoint: The folder of its checkpoint.
    """
    text = str(error)
    for pattern, meaning in _KNOWN:
        if found := re.search(pattern, text):
            names = {"checkpoint": checkpoint, "source": pipeline.source.path}
            return StreamBehindError(f"{pipeline.name}: {meaning.format(*found.groups(), **names)}")
    return error
