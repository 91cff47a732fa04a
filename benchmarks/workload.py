"""What is measured: windows of certain records, with certain aggregates."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from benchmarks.data import SPAN_MS, Dataset
from windows_pipeline import (
    Aggregation,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    avg,
    count,
    count_distinct,
    first,
    last,
    max_,
    min_,
    percentile,
    sum_,
)
from windows_pipeline.windows import WindowSpec

MAX_RECORDS_IN_MEMORY = 10_000_000
"""The most records of an input that an engine holds in memory, in the form that suits the engine.
A larger input is read from Parquet in each run, as it may not fit in memory."""
_PART_RECORDS = 1_000_000


class Kind(StrEnum):
    """The kinds of windows."""

    SLIDING = "sliding"
    HOPPING = "hopping"
    SESSION = "session"


class Aggregates(StrEnum):
    """What is computed in each window."""

    COUNT = "count"
    BASIC = "count-sum-max"
    TEN = "ten"
    ORDER = "min-max-first-last"
    FLOAT = "float-sum"
    DISTINCT = "distinct"
    PERCENTILE = "percentile"


@dataclass(frozen=True, slots=True)
class Workload:
    """Work that every engine is given alike.

    Attributes:
        dataset: The records.
        kind: The kind of windows.
        records_per_window: How many a window holds on average, of evenly spread keys.
        advances: Of hopping windows, size / advance.
        aggregates: What is computed.
    """

    dataset: Dataset
    kind: Kind = Kind.SLIDING
    records_per_window: int = 100
    advances: int = 1
    aggregates: Aggregates = Aggregates.BASIC

    @property
    def name(self) -> str:
        """Names it, without the seed."""
        data = self.dataset
        kind = self.kind + (f"-{self.advances}" if self.kind is Kind.HOPPING else "")
        return (
            f"{kind} {self.aggregates} {size_text(data.records)} "
            f"{size_text(data.keys)}-{data.spread} {self.records_per_window}-a-window"
        )

    @property
    def length_ms(self) -> int:
        """The time difference, the size or the gap.

        A gap is chosen so that a session has this many records on average.
        """
        if self.kind is Kind.SESSION:
            mean_gap_ms = self.dataset.keys * SPAN_MS / self.dataset.records
            return round(mean_gap_ms * math.log(self.records_per_window))
        return self.dataset.window_ms(self.records_per_window)

    @property
    def advance_ms(self) -> int:
        """Of hopping windows, from one start to the next."""
        return self.length_ms // self.advances

    @property
    def columns(self) -> list[str]:
        """The columns that the work needs."""
        values = {
            Aggregates.COUNT: [],
            Aggregates.FLOAT: ["amount"],
            Aggregates.TEN: ["value", "amount"],
        }
        return ["key", "time_ms", *values.get(self.aggregates, ["value"])]

    def windows(self) -> WindowSpec:
        """The windows in this library's terms."""
        match self.kind:
            case Kind.SLIDING:
                return SlidingWindows(self.length_ms, 0)
            case Kind.HOPPING:
                return TimeWindows(self.length_ms, self.advance_ms, 0)
            case Kind.SESSION:
                return SessionWindows(self.length_ms, 0)

    def of(self) -> list[Aggregation]:
        """The aggregates in this library's terms."""
        match self.aggregates:
            case Aggregates.COUNT:
                return [count()]
            case Aggregates.TEN:
                of_value = [
                    count(),
                    *(how("value") for how in (sum_, avg, min_, max_, first, last)),
                ]
                return [*of_value, *(how("amount") for how in (sum_, min_, max_))]
            case Aggregates.BASIC:
                return [count().alias("n"), sum_("value").alias("s"), max_("value").alias("m")]
            case Aggregates.ORDER:
                return [min_("value"), max_("value"), first("value"), last("value")]
            case Aggregates.FLOAT:
                return [sum_("amount")]
            case Aggregates.DISTINCT:
                return [count_distinct("value")]
            case Aggregates.PERCENTILE:
                return [percentile("value", 0.95)]

    def checked(self, at_most: int) -> Workload:
        """The work whose answers are compared: itself, or a part where it has too many records.

        Each key keeps its number of records where there are enough keys.
        """
        data = self.dataset
        if data.records <= min(at_most, MAX_RECORDS_IN_MEMORY):
            return self
        records = min(at_most, _PART_RECORDS)
        keys = max(1, data.keys * records // data.records)
        return replace(self, dataset=replace(data, records=records, keys=keys))


def size_text(number: int) -> str:
    """A number as in 1M, 10k."""
    for unit, name in ((1_000_000, "M"), (1_000, "k")):
        if number >= unit and number % unit == 0:
            return f"{number // unit}{name}"
    return str(number)


def size_number(text: str) -> int:
    """The number that such a text says.

    Raises:
        ValueError: It is no number with k, M or nothing after it.
    """
    units = {"k": 1_000, "m": 1_000_000}
    unit = units.get(text[-1:].lower(), 1)
    digits = text[:-1] if unit > 1 else text
    if not digits.isdecimal():
        raise ValueError(f"{text!r} is no size; give one like 100k, 1M or 50M")
    return int(digits) * unit
