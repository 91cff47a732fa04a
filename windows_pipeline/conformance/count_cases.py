"""Golden cases of count windows, with the answers of both of Flink's APIs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql import SparkSession

from windows_pipeline.aggregates import Aggregate, Function
from windows_pipeline.engine.counts import evaluate_counts
from windows_pipeline.windows.count_windows import CountWindows

if TYPE_CHECKING:
    from windows_pipeline.conformance.cases import Case

COUNT_KINDS = ("tumble_count", "slide_count")

_ANSWERS = ("updates", "datastream_updates")
"""The fields of the Table API's answers and of DataStream's; each case has a target for each."""


class Update(NamedTuple):
    """A window that fired: the offset of the record that fired it, and those of its records."""

    after: int
    key: str | None
    offsets: tuple[int, ...]


@dataclass
class CountAnswers:
    """The engine's answers to a case, by the fields of the format."""

    updates: list[Update] = field(default_factory=list)
    datastream_updates: list[Update] = field(default_factory=list)


def count_spec(window: Mapping[str, Any]) -> CountWindows:
    """Reads the windows of a case as those of the Table API."""
    return CountWindows(window["size"], window.get("advance", window["size"]))


def count_updates(
    raw: Mapping[str, Any], key_text: Callable[[object], str | None]
) -> dict[str, list[Update]]:
    """Reads a case's answers, sorted; DataStream has none for null keys, which it refuses."""
    return {
        name: _sorted(
            [Update(row["after"], key_text(row["key"]), tuple(row["offsets"])) for row in raw[name]]
        )
        for name in _ANSWERS
        if name in raw
    }


def answer_counts(spark: SparkSession, cases: Mapping[int, Case]) -> dict[int, CountAnswers]:
    """Answers the cases of count windows in one job, with two targets for each case.

    Args:
        spark: The session.
        cases: Cases of any kind, by their numbers.
    """
    specs = {
        number: case.spec for number, case in cases.items() if isinstance(case.spec, CountWindows)
    }
    answers = {number: CountAnswers() for number in specs}
    if not specs:
        return answers
    targets = {
        number * len(_ANSWERS) + index: replace(spec, short_first=name == "datastream_updates")
        for number, spec in specs.items()
        for index, name in enumerate(_ANSWERS)
    }
    rows = [
        (target, record.key, record.offset)
        for target in targets
        for record in cases[target // len(_ANSWERS)].records
    ]
    records = spark.createDataFrame(rows, "_computed_day int, key string, offset bigint")
    offsets = Aggregate("offsets", Function.COLLECT_LIST, "offset")
    for row in evaluate_counts(records, targets, ["key"], [offsets]).collect():
        number, index = divmod(row["_computed_day"], len(_ANSWERS))
        update = Update(row.last_offset, row.key, tuple(sorted(row.offsets)))
        getattr(answers[number], _ANSWERS[index]).append(update)
    for found in answers.values():
        found.updates = _sorted(found.updates)
        found.datastream_updates = _sorted(found.datastream_updates)
    return answers


def _sorted(updates: list[Update]) -> list[Update]:
    return sorted(updates, key=lambda update: (update.after, update.key or "", update.offsets))
