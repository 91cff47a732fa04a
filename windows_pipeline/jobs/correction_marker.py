"""Records which correction is unfinished, in properties of the table `corrections`.

A correction sets `CORRECTION_BEGUN` before it writes rows and `CORRECTION_FINISHED` after its
last write, so a killed correction is noticed. In between it looks for a micro-batch that began
earlier. If there is none, it sets `_ALONE`; every later micro-batch sees the begun correction and
ends before it writes rows.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from datetime import date

from pyspark.sql import SparkSession

from windows_pipeline.storage.catalog import (
    CORRECTION_BEGUN,
    CORRECTION_DETAILS,
    CORRECTION_FINISHED,
)
from windows_pipeline.storage.table import Table
from windows_pipeline.text.problems import RefusedError

_ALONE = "windows_pipeline.correction_alone"
"""The number of the newest correction that found no running micro-batch."""


@dataclass(frozen=True)
class Correction:
    """A correction of the published results of one window definition (rule E1).

    Attributes:
        number: 1, 2, ... for each window definition.
        first: The first day to compute again.
        last: The last day to compute again.
        cause: Why, in the words of the user.
        final_version: The version of final_windows before the correction.
        alerts_version: The version of alerts before the correction.
    """

    number: int
    first: date
    last: date
    cause: str
    final_version: int
    alerts_version: int


class CorrectionUnfinishedError(RefusedError):
    """A correction is not finished; the message names the command that resumes it."""

    def __init__(self, corrections: Table, unfinished: Correction) -> None:
        pipeline, windows, _ = corrections.name.split("/")
        super().__init__(
            f"{corrections.name}: correction {unfinished.number} was started but not finished. If "
            f"no correction is running, resume with: windows-pipeline correct {pipeline} "
            f"--windows {windows} --from {unfinished.first} --to {unfinished.last} "
            f"--cause {shlex.quote(unfinished.cause)}"
        )


def unfinished_correction(spark: SparkSession, corrections: Table) -> Correction | None:
    """The correction that was begun and is not finished."""
    if not corrections.exists(spark):
        return None
    properties = corrections.properties(spark)
    if _number(properties, CORRECTION_BEGUN) <= _number(properties, CORRECTION_FINISHED):
        return None
    texts = corrections.texts(spark)
    details = json.loads(texts[CORRECTION_DETAILS])
    return Correction(
        number=int(texts[CORRECTION_BEGUN]),
        first=date.fromisoformat(details["first"]),
        last=date.fromisoformat(details["last"]),
        cause=details["cause"],
        final_version=details["final_version"],
        alerts_version=details["alerts_version"],
    )


def any_correction(spark: SparkSession, corrections: Table) -> bool:
    """Whether a correction was ever begun, by the table's properties; rows are not read."""
    if not corrections.exists(spark):
        return False
    properties = corrections.properties(spark)
    return any(_number(properties, name) > 0 for name in (CORRECTION_BEGUN, CORRECTION_FINISHED))


def finished_number(spark: SparkSession, corrections: Table) -> int:
    """The number of the newest finished correction; 0 before the first."""
    return _number(corrections.properties(spark), CORRECTION_FINISHED)


def mark_begun(spark: SparkSession, corrections: Table, correction: Correction) -> None:
    """Marks a correction as begun."""
    details = {
        "first": correction.first.isoformat(),
        "last": correction.last.isoformat(),
        "cause": correction.cause,
        "final_version": correction.final_version,
        "alerts_version": correction.alerts_version,
    }
    corrections.set_properties(
        spark, {CORRECTION_BEGUN: str(correction.number), CORRECTION_DETAILS: json.dumps(details)}
    )


def mark_alone(spark: SparkSession, corrections: Table, correction: Correction) -> None:
    """Marks that no micro-batch was running after the correction had begun."""
    corrections.set_properties(spark, {_ALONE: str(correction.number)})


def is_alone(spark: SparkSession, corrections: Table, correction: Correction) -> bool:
    """Whether no micro-batch was running after the correction had begun."""
    return _number(corrections.properties(spark), _ALONE) == correction.number


def mark_finished(spark: SparkSession, corrections: Table, correction: Correction) -> None:
    """Marks a correction as finished."""
    corrections.set_properties(spark, {CORRECTION_FINISHED: str(correction.number)})


def mark_needless(spark: SparkSession, corrections: Table) -> None:
    """Withdraws a correction that changed nothing; the next correction gets its number."""
    corrections.unset_properties(spark, CORRECTION_BEGUN, _ALONE, CORRECTION_DETAILS)


def forget_corrections(spark: SparkSession, corrections: Table) -> None:
    """Restarts the numbers of corrections, once their table is emptied."""
    corrections.unset_properties(
        spark, CORRECTION_BEGUN, _ALONE, CORRECTION_FINISHED, CORRECTION_DETAILS
    )


def _number(properties: dict[str, str], name: str) -> int:
    return int(properties.get(name, "0"))
