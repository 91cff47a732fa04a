"""Lists the bad landed files that a run left out (rule A8)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from windows_pipeline.compat.local_frame import small_frame
from windows_pipeline.sources.bad_files import BadFileError
from windows_pipeline.sources.landing import FileState
from windows_pipeline.storage.instants import with_timestamps
from windows_pipeline.storage.tables import PipelineTables
from windows_pipeline.text.instants import epoch_ms


class QuarantinedFile(NamedTuple):
    """A bad file that was left out; the fields are the columns of quarantined_files.

    Attributes:
        arrival_unit: The arrival day that lacks the file's records.
        file: The file, as `YYYY-MM-DD/name`.
        size_bytes: The file's size.
        written_ms: When the file was last written, in ms since 1970; None if that is not known.
        cause: What is wrong with the file.
        fix: What to do.
        batch: The micro-batch that left the file out; None for a run by days.
    """

    arrival_unit: date
    file: str
    size_bytes: int | None
    written_ms: int | None
    cause: str
    fix: str
    batch: int | None = None

    @property
    def error(self) -> BadFileError:
        """The error with which the file would have ended the run."""
        return BadFileError(self.file, self.cause, self.fix)


def quarantined_among(
    files: Iterable[FileState], bad: Sequence[BadFileError]
) -> list[QuarantinedFile]:
    """The bad files among landed files, by day and name."""
    of_file = {error.file: error for error in bad}
    return [
        QuarantinedFile(
            file.day, name, file.size_bytes, file.written_ms, of_file[name].cause, of_file[name].fix
        )
        for file in files
        if (name := str(file)) in of_file
    ]


def quarantine_rows(spark: SparkSession, files: Sequence[QuarantinedFile]) -> DataFrame:
    """The rows of quarantined_files."""
    schema = (
        "arrival_unit date, file string, size_bytes bigint, _written_ms bigint, cause string, "
        "fix string, batch bigint"
    )
    return with_timestamps(small_frame(spark, files, schema), "written")


def quarantined(spark: SparkSession, tables: PipelineTables) -> list[QuarantinedFile]:
    """The files that quarantined_files lists, by day and name; none if there is no table."""
    table = tables.quarantined_files
    if not table.exists(spark):
        return []
    columns = ["arrival_unit", "file", "size_bytes", "written", "cause", "fix", "batch"]
    rows = table.rows(spark, columns).to_pylist()
    return sorted(
        QuarantinedFile(
            row["arrival_unit"],
            row["file"],
            row["size_bytes"],
            None if row["written"] is None else epoch_ms(row["written"]),
            *(row[name] for name in ("cause", "fix", "batch")),
        )
        for row in rows
    )
