"""Flink's SQL, in a JVM of its own."""

from __future__ import annotations

from pathlib import Path

from benchmarks.answers import CHECKSUMS, Answer
from benchmarks.engine import Engine
from benchmarks.jvm import Program
from benchmarks.raw_columns import write_raw
from benchmarks.workload import Kind, Workload

_SOURCE = Path(__file__).parent / "java" / "FlinkWindows.java"
VERSION = "2.3.0"
_LIBRARIES = [
    f"org.apache.flink:{name}:{VERSION}" for name in ("flink-table-planner_2.12", "flink-clients")
]
_MODES = {
    "flink-over": "BATCH",
    "flink-hop": "STREAMING",
    "flink-hop-batch": "BATCH",
    "flink-session": "STREAMING",
}
_AGGREGATES = "COUNT(*) AS n, SUM(v) AS s, MAX(v) AS m"


class FlinkEngine(Engine):
    """A Flink cluster within one JVM, with as many slots as cores."""

    def __init__(self, cores: int, memory_gib: int) -> None:
        self._program = Program(_SOURCE, _LIBRARIES, memory_gib, str(cores))
        self._sql = ""

    def load(self, folder: Path, workload: Workload) -> None:
        """Has the JVM hold the records in arrays."""
        self._program.ask("load", write_raw(folder))
        self._sql = _sql(workload)

    def run(self, way: str) -> float:
        """Runs it into a table that drops everything."""
        return float(self._program.ask("run", _MODES[way], self._sql)[0])

    def answer(self, way: str, *, left_only: bool) -> Answer:
        """Sums up distinct windows; of a stream's sums the last row is the final one."""
        sums = f"SELECT {', '.join(CHECKSUMS)} FROM (SELECT DISTINCT * FROM ({self._sql}))"
        words = self._program.ask("answer", _MODES[way], sums)
        return Answer(*map(int, words))

    def close(self) -> None:
        """Ends the JVM."""
        self._program.close()


def _sql(work: Workload) -> str:
    length = _interval(work.length_ms)
    match work.kind:
        case Kind.SLIDING:
            over = (
                # Of a timestamp and an interval Flink 2.3 makes code that does not compile.
                "OVER (PARTITION BY k ORDER BY ms "
                f"RANGE BETWEEN {work.length_ms} PRECEDING AND CURRENT ROW)"
            )
            return (
                f"SELECT k, ms AS window_end_ms, COUNT(*) {over} AS n, "
                f"SUM(v) {over} AS s, MAX(v) {over} AS m FROM records"
            )
        case Kind.HOPPING:
            return (
                f"SELECT k, {_millis('window_end')} AS window_end_ms, {_AGGREGATES} "
                f"FROM TABLE(HOP(TABLE records, DESCRIPTOR(ts), {_interval(work.advance_ms)}, "
                f"{length})) GROUP BY k, window_start, window_end"
            )
        case Kind.SESSION:
            return (
                f"SELECT k, {_millis('window_end')} - {work.length_ms} AS window_end_ms, "
                f"{_AGGREGATES} FROM TABLE(SESSION(TABLE records PARTITION BY k, "
                f"DESCRIPTOR(ts), {length})) GROUP BY k, window_start, window_end"
            )


def _millis(instant: str) -> str:
    """Milliseconds since 1970: Flink has a function for whole seconds only."""
    timestamp = f"CAST({instant} AS TIMESTAMP(3))"
    return (
        f"(CAST(TIMESTAMPDIFF(SECOND, TIMESTAMP '1970-01-01 00:00:00', {timestamp}) AS BIGINT)"
        f" * 1000 + EXTRACT(MILLISECOND FROM {timestamp}))"
    )


def _interval(length_ms: int) -> str:
    seconds, millis = divmod(length_ms, 1000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    clock = f"{hour:02d}:{minute:02d}:{second:02d}.{millis:03d}"
    return f"INTERVAL '{days} {clock}' DAY TO SECOND(3)"
