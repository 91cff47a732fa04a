"""Which correction of some windows is under way: properties of their table `corrections`.

They are set before the correction writes anything and again when it has written all, so a
correction that was killed in between is seen. Between the two it looks for a micro-batch that
began before: from then on it is alone, as each that comes later sees that it was begun, and ends.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from datetime import date

from pyspark.sql import SparkSession

from windows_pipeline.storage.table import Table

_BEGUN = "windows_pipeline.correction"
"""The number of the correction that was begun last."""
_FINISHED = "windows_pipeline.corrections_finished"
"""The number of the correction that was finished last."""
_ALONE = "windows_pipeline.correction_alone"
"""The number of the correction that was last found to be alone."""
_DETAILS = "windows_pipeline.correction_details"
"""What else is known of the one that was begun last."""


@dataclass(frozen=True)
class Correction:
    """A correction of one named windows' published results (rule E1).

    Attributes:
        number: 1, 2, ... by windows.
        first: The first unit that it computes anew.
        last: The last one.
        cause: Why, in the words of whoever corrects.
        final_version: The version of final_windows before it.
        alerts_version: The version of alerts before it.
    """

    number: int
    first: date
    last: date
    cause: str
    final_version: int
    alerts_version: int


class CorrectionUnfinishedError(Exception):
    """A correction was stopped half-way; the message names it and the cure."""

    def __init__(self, corrections: Table, unfinished: Correction) -> None:
        pipeline, windows, _ = corrections.name.split("/")
        super().__init__(
            f"{corrections.name}: correction {unfinished.number} is not finished; wait for it, or "
            f"if it was stopped, run it again: windows-pipeline correct {pipeline} "
            f"--windows {windows} --from {unfinished.first} --to {unfinished.last} "
            f"--cause {shlex.quote(unfinished.cause)}"
        )


def unfinished_correction(spark: SparkSession, corrections: Table) -> Correction | None:
    """The correction that was begun and is not finished."""
    if not corrections.exists(spark):
        return None
    properties = corrections.properties(spark)
    if _number(properties, _BEGUN) <= _number(properties, _FINISHED):
        return None
    texts = corrections.texts(spark)
    details = json.loads(texts[_DETAILS])
    return Correction(
        number=int(texts[_BEGUN]),
        first=date.fromisoformat(details["first"]),
        last=date.fromisoformat(details["last"]),
        cause=details["cause"],
        final_version=details["final_version"],
        alerts_version=details["alerts_version"],
    )


def any_correction(spark: SparkSession, corrections: Table) -> bool:
    """Whether a correction was ever begun: the table's properties are read, not its rows."""
    if not corrections.exists(spark):
        return False
    properties = corrections.properties(spark)
    return any(_number(properties, name) > 0 for name in (_BEGUN, _FINISHED))


def finished_number(spark: SparkSession, corrections: Table) -> int:
    """The number of the correction that was finished last; 0 before the first."""
    return _number(corrections.properties(spark), _FINISHED)


def mark_begun(spark: SparkSession, corrections: Table, correction: Correction) -> None:
    """Says that a correction is under way."""
    details = {
        "first": correction.first.isoformat(),
        "last": correction.last.isoformat(),
        "cause": correction.cause,
        "final_version": correction.final_version,
        "alerts_version": correction.alerts_version,
    }
    corrections.set_properties(
        spark, {_BEGUN: str(correction.number), _DETAILS: json.dumps(details)}
    )


def mark_alone(spark: SparkSession, corrections: Table, correction: Correction) -> None:
    """Says that no micro-batch was under way once it had been begun."""
    corrections.set_properties(spark, {_ALONE: str(correction.number)})


def is_alone(spark: SparkSession, corrections: Table, correction: Correction) -> bool:
    """Whether that was said of it: what has begun since has written nothing."""
    return _number(corrections.properties(spark), _ALONE) == correction.number


def mark_finished(spark: SparkSession, corrections: Table, correction: Correction) -> None:
    """Says that a correction has written all."""
    corrections.set_properties(spark, {_FINISHED: str(correction.number)})


def mark_needless(spark: SparkSession, corrections: Table) -> None:
    """Says that a correction that was begun changed nothing: its number is free again."""
    corrections.unset_properties(spark, _BEGUN, _ALONE, _DETAILS)


def forget_corrections(spark: SparkSession, corrections: Table) -> None:
    """Begins to count anew, as for a table that was emptied."""
    corrections.unset_properties(spark, _BEGUN, _ALONE, _FINISHED, _DETAILS)


def _number(properties: dict[str, str], name: str) -> int:
    return int(properties.get(name, "0"))
