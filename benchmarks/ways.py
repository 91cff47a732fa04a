"""The ways to compute windows that are measured, and what each of them computes."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.data import Keys
from benchmarks.workload import MAX_RECORDS_IN_MEMORY, Aggregates, Kind, Workload


@dataclass(frozen=True, slots=True)
class Way:
    """One engine's way.

    Attributes:
        name: As the command line and the results name it.
        engine: Whose process runs it.
        computes: What comes out, in words.
        kinds: The kinds of windows that it knows.
        left_only: Whether it gives, of sliding windows, only those that end with a record:
            half of the work.
        has_answer: Whether it computes windows at all.
        max_records: It is not asked for more.
        max_records_per_window: Nor for windows that hold more, where its work grows with them.
        max_checked_records: Its answer is that of no more: it would take minutes, or not fit.
        takes_skew: Nor, where this is false, for keys with far more records than others: their
            windows hold as many more.
    """

    name: str
    engine: str
    computes: str
    kinds: frozenset[Kind]
    left_only: bool = False
    has_answer: bool = True
    max_records: int = 10_000_000
    max_records_per_window: int = 10_000
    max_checked_records: int = MAX_RECORDS_IN_MEMORY
    takes_skew: bool = True

    def takes(self, work: Workload) -> bool:
        """Whether it can do this work."""
        knows = work.kind in self.kinds and (
            work.aggregates is Aggregates.BASIC or self.name in ("ours", "spark-floor")
        )
        skewed = work.dataset.spread in (Keys.ZIPF, Keys.HALF)
        fits = work.dataset.records <= self.max_records and (self.takes_skew or not skewed)
        return knows and fits and work.records_per_window <= self.max_records_per_window


_SLIDING = frozenset({Kind.SLIDING})
_HOPPING = frozenset({Kind.HOPPING})
_SESSION = frozenset({Kind.SESSION})
_ALL = frozenset(Kind)
_ANY_SIZE = 1_000_000_000

OURS = Way("ours", "spark", "every window, and whether it is closed", _ALL, max_records=_ANY_SIZE)
FLOOR = Way(
    "spark-floor",
    "spark",
    "no windows: the records, shuffled by key and sorted by time",
    _ALL,
    has_answer=False,
    max_records=_ANY_SIZE,
)
WAYS = {
    way.name: way
    for way in (
        OURS,
        FLOOR,
        Way(
            "spark-range",
            "spark",
            "every sliding window by two RANGE frames a record; equal times give it twice",
            _SLIDING,
            max_records_per_window=1_000,
            takes_skew=False,
        ),
        Way(
            "spark-range-tree",
            "spark",
            "the same with spark.sql.window.segmentTree.enabled",
            _SLIDING,
        ),
        Way(
            "spark-range-points",
            "spark",
            "every sliding window by one RANGE frame over records and the times when they leave",
            _SLIDING,
            max_records_per_window=100,
            takes_skew=False,
        ),
        Way(
            "spark-range-points-tree",
            "spark",
            "the same with the segment tree",
            _SLIDING,
            max_records_per_window=100,
        ),
        Way(
            "spark-range-left",
            "spark",
            "the window that ends with each record, by one RANGE frame: half of the windows",
            _SLIDING,
            left_only=True,
            max_records_per_window=1_000,
            takes_skew=False,
        ),
        Way(
            "spark-window",
            "spark",
            "hopping windows by window(), each record copied into every window that holds it",
            _HOPPING,
            max_records=1_000_000,
        ),
        Way("spark-session-window", "spark", "sessions by session_window()", _SESSION),
        Way(
            "duckdb",
            "duckdb",
            "every sliding window by a RANGE frame over records and the times when they leave",
            _SLIDING,
            max_records=_ANY_SIZE,
        ),
        Way(
            "polars",
            "polars",
            "every sliding window by two rolling groups of the sorted records",
            _SLIDING,
            max_records=_ANY_SIZE,
            max_checked_records=1_000_000,
        ),
        Way(
            "flink-over",
            "flink",
            "the window that ends with each record, by OVER in batch mode: half of the windows",
            _SLIDING,
            left_only=True,
            max_records_per_window=1_000,
            takes_skew=False,
        ),
        Way(
            "flink-hop",
            "flink",
            "HOP, as a stream",
            _HOPPING,
            max_records=1_000_000,
            max_checked_records=200_000,
        ),
        Way(
            "flink-hop-batch",
            "flink",
            "HOP in batch mode",
            _HOPPING,
            max_records=1_000_000,
            max_checked_records=200_000,
        ),
        Way("flink-session", "flink", "SESSION, as a stream: batch mode has none", _SESSION),
        Way(
            "kafka-streams",
            "kafka",
            "every sliding window by the topology test driver, in one thread, of records that "
            "come in order",
            _SLIDING,
            max_records=1_000_000,
            max_records_per_window=10,
            max_checked_records=200_000,
            takes_skew=False,
        ),
    )
}
