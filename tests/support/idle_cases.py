"""A case of two source partitions, one of which is idle and resumes (rule A4)."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

from tests.support.oracle.windows import Record, final_windows, late_records
from tests.support.spark_cases import sample
from tests.support.strategies import Arrivals, arrivals


def drawn_case() -> Arrivals:
    """Of many cases with idle partitions that resume, the one with the most late records.

    What is drawn depends on the modules that are loaded, so many have to do.
    """

    def fits(case: Arrivals) -> bool:
        return (
            case.arrival_units == 3
            and len({record.source_partition for record in case.records}) > 1
        )

    def with_idle(case: Arrivals) -> Arrivals:
        idle_after = case.definition.idle_after or 2 * case.definition.time_difference + 1
        return case._replace(definition=replace(case.definition, idle_after=idle_after))

    def late_and_final(case: Arrivals) -> int:
        definition = case.definition
        late = late_records(case.records, case.arrival_units, definition)
        return len(late) * len(final_windows(case.records, case.arrival_units, definition, {}))

    cases = filter(fits, sample(arrivals(keys=("a", "b")), 400))
    return waking(max(map(with_idle, cases), key=late_and_final))


def waking(case: Arrivals) -> Arrivals:
    """Has partition 1 go far ahead of 0, which then brings what lies behind the merge."""
    far_ms = max(one.event_time for one in case.records) + (case.definition.idle_after or 0) + 1
    ahead = Record(1, 1, 0, "a", far_ms, {"whole": 1})
    behind = Record(2, 0, 0, "a", far_ms + 1, {"whole": 2})
    by_arrival_unit = sorted([*case.records, ahead, behind], key=lambda one: one.arrival_unit)
    offsets = (count(), count())
    records = [replace(one, offset=next(offsets[one.source_partition])) for one in by_arrival_unit]
    return case._replace(records=records)
