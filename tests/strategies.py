"""Hypothesis strategies: what may arrive, in which units, and which windows are asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from hypothesis import strategies as st

from oracle import Record, SlidingDefinition

# Time zero, times below it, and one of 2026.
BASES_MS = (0, -200, 1_767_225_600_000)
# A coarse scale spreads the same pattern over minutes; a jitter of 1 ms then misses bounds.
SCALES_MS = (1, 60_000)
# Positions of records in units of the scale: few, so that equal times and shared bounds abound.
LAST_POSITION = 30
LARGE_GRACE_MS = 10**10

INT_VALUES = st.integers(-9, 9) | st.sampled_from((2**53 + 1, -(2**53) - 1, 2**31))
# 1e16 hides a 1.0 from a running sum; the tiny ones vanish beside anything (rule G2).
FINITE_VALUES = st.integers(-9, 9).map(float) | st.sampled_from(
    (0.1, -0.0, 1e16, -1e16, 1e-300, 5e-324)
)
SPECIAL_VALUES = st.sampled_from((float("inf"), float("-inf"), float("nan")))


class Arrivals(NamedTuple):
    """Records in units 0 to `units` - 1, some of them empty, and the windows asked for.

    The offsets of a source partition go on from unit to unit, so that (source partition,
    offset) names a record however the same arrivals are cut into units.
    """

    records: list[Record]
    units: int
    definition: SlidingDefinition


class _Event(NamedTuple):
    source_partition: int
    key: str | None
    position: int
    jitter: int
    whole: int | None
    real: float | None


@st.composite
def definitions(draw: st.DrawFn, base_ms: int, scale_ms: int) -> SlidingDefinition:
    """Windows a few positions wide; a grace from none to one that closes nothing."""
    positions = st.integers(0, LAST_POSITION)
    grace = st.sampled_from((0, 1, 2, 4, 8)).map(lambda position: position * scale_ms)
    clamped = draw(st.integers(0, 3)) == 3
    return SlidingDefinition(
        time_difference=draw(st.integers(1, 8)) * scale_ms,
        grace=LARGE_GRACE_MS if draw(st.integers(0, 7)) == 7 else draw(grace),
        first_window_start=base_ms + draw(positions) * scale_ms if clamped else None,
        emit_empty=draw(st.booleans()),
        idle_after=draw(st.none() | positions.map(lambda position: position * scale_ms)),
    )


@st.composite
def arrivals(
    draw: st.DrawFn,
    keys: Sequence[str | None] = ("a", "b", None),
    source_partitions: int = 2,
    max_units: int = 4,
    max_records_a_unit: int = 7,
) -> Arrivals:
    """Records with the values `whole` (int or null) and `real` (float or null).

    Now and then `real` holds infinities and NaN. Arrival is out of order, as times are drawn
    one by one. Smaller examples have fewer units and records, and times nearer the base.
    """
    base_ms = draw(st.sampled_from(BASES_MS))
    scale_ms = draw(st.sampled_from(SCALES_MS))
    real = FINITE_VALUES | SPECIAL_VALUES if draw(st.booleans()) else FINITE_VALUES
    event = st.builds(
        _Event,
        source_partition=st.integers(0, draw(st.integers(0, source_partitions - 1))),
        key=st.sampled_from(keys),
        position=st.integers(0, LAST_POSITION),
        jitter=st.sampled_from((0, 1, -1)),
        whole=INT_VALUES | st.none(),
        real=real | st.none(),
    )
    unit = st.lists(event, max_size=max_records_a_unit)
    units = draw(st.lists(unit, min_size=1, max_size=max_units))

    offsets = [0] * source_partitions
    records = []
    for number, events in enumerate(units):
        for each in events:
            jitter = each.jitter if scale_ms > 1 else 0
            records.append(
                Record(
                    number,
                    each.source_partition,
                    offsets[each.source_partition],
                    each.key,
                    base_ms + each.position * scale_ms + jitter,
                    {"whole": each.whole, "real": each.real},
                )
            )
            offsets[each.source_partition] += 1
    return Arrivals(records, len(units), draw(definitions(base_ms, scale_ms)))
