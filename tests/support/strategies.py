"""Hypothesis strategies: what may arrive, in which arrival units, and the windows over it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any, Generic, NamedTuple, TypeVar

from hypothesis import strategies as st

from tests.support.oracle.aggregates import Value
from tests.support.oracle.windows import (
    Definition,
    ForwardDefinition,
    Record,
    SessionDefinition,
    SlidingDefinition,
    TimeDefinition,
)

# Time zero, times below it, and one of 2026.
BASES_MS = (0, -200, 1_767_225_600_000)
# A coarse scale spreads the same pattern over minutes; a jitter of 1 ms then misses bounds.
SCALES_MS = (1, 60_000)
# Positions of records in units of the scale: few, so that equal times and shared bounds abound.
LAST_POSITION = 30
LARGE_GRACE_MS = 10**10

INT_VALUES = (*range(-9, 10), *(2**53 + 1, -(2**53) - 1, 2**31) * 6)
# 1e16 hides a 1.0 from a running sum; the tiny ones vanish beside anything (rule G2).
_TELLING_VALUES = (0.1, -0.0, 1e16, -1e16, 1e-300, 5e-324)
FINITE_VALUES = (*map(float, range(-9, 10)), *_TELLING_VALUES * 3)
# A double cannot hold the last cent of the large ones.
AMOUNTS = tuple(
    Decimal(f"{cents}e-2") for cents in (*range(-900, 901, 60), *(10**18 + 1, -(10**18)) * 15)
)
# The last ones sort otherwise in UTF-16 than in UTF-8, as Spark has it.
NAMES = ("", "a", "B", "ab", "é", "\uff5e", "\U0001f600")
SPECIAL_VALUES = (float("inf"), float("-inf"), float("nan"))


MANY_VALUES = 256

D = TypeVar("D", bound=Definition)


class ArrivalsOf(NamedTuple, Generic[D]):
    """Records in arrival units 0 to `arrival_units` - 1, some without any, and the windows.

    Offsets of a source partition do not restart with an arrival unit, so that (source partition,
    offset) names a record however the same arrivals are cut into arrival units.
    """

    records: list[Record]
    arrival_units: int
    definition: D


Arrivals = ArrivalsOf[SlidingDefinition]


class _Event(NamedTuple):
    source_partition: int
    key: str | None
    position: int
    jitter: int
    values: Mapping[str, Value | None]


def pair(value: Any, by: Any) -> dict[str, Any] | None:
    """What a function of two columns takes of a record."""
    return None if by is None else {"value": value, "by": by}


def _values(reals: Sequence[float]) -> Sequence[Mapping[str, Value | None]]:
    """Values of a record, the simplest first: to draw one of many takes a fraction of drawing each.

    Each column has its nulls; `pair` is a name with a real that decides.
    """
    draw = Random(len(reals))
    columns = {"whole": INT_VALUES, "real": reals, "amount": AMOUNTS, "name": NAMES}
    simplest = {"whole": 0, "real": 0.0, "amount": Decimal("0.00"), "name": ""}
    others = (
        {name: draw.choice((*[draw.choice(of)] * 3, None)) for name, of in columns.items()}
        for _ in range(MANY_VALUES)
    )
    return [{**each, "pair": pair(each["name"], each["real"])} for each in (simplest, *others)]


FINITE_ONLY = _values(FINITE_VALUES)
ANY_VALUES = _values((*FINITE_VALUES, *SPECIAL_VALUES * 6))


def _graces(scale_ms: int) -> st.SearchStrategy[int]:
    """From none to one that closes nothing."""
    return st.sampled_from([*(n * scale_ms for n in (0, 1, 2, 4, 8)), LARGE_GRACE_MS])


def _starts(base_ms: int, scale_ms: int) -> st.SearchStrategy[int | None]:
    """Now and then a first window start among the records."""
    some = st.integers(0, LAST_POSITION).map(lambda position: base_ms + position * scale_ms)
    return st.integers(0, 3).flatmap(lambda n: some if n == 3 else st.none())


def _idle_afters(scale_ms: int) -> st.SearchStrategy[int | None]:
    return st.none() | st.integers(0, LAST_POSITION).map(lambda position: position * scale_ms)


def _lengths(scale_ms: int) -> st.SearchStrategy[int]:
    """A few positions."""
    return st.integers(1, 8).map(lambda positions: positions * scale_ms)


def sliding_definitions(base_ms: int, scale_ms: int) -> st.SearchStrategy[SlidingDefinition]:
    """Windows a few positions wide; a grace from none to one that closes nothing."""
    return st.builds(
        SlidingDefinition,
        time_difference=_lengths(scale_ms),
        grace=_graces(scale_ms),
        first_window_start=_starts(base_ms, scale_ms),
        emit_empty=st.booleans(),
        idle_after=_idle_afters(scale_ms),
    )


def forward_definitions(_base_ms: int, scale_ms: int) -> st.SearchStrategy[ForwardDefinition]:
    """As `sliding_definitions`."""
    return st.builds(
        ForwardDefinition,
        size=_lengths(scale_ms),
        grace=_graces(scale_ms),
        idle_after=_idle_afters(scale_ms),
    )


@st.composite
def time_definitions(draw: st.DrawFn, base_ms: int, scale_ms: int) -> TimeDefinition:
    """Tumbling windows, hopping ones that overlap, and such with gaps between them."""
    size = draw(_lengths(scale_ms))
    return TimeDefinition(
        size=size,
        advance=draw(st.just(size) | _lengths(scale_ms)),
        grace=draw(_graces(scale_ms)),
        first_window_start=draw(_starts(base_ms, scale_ms)),
        emit_empty=draw(st.booleans()),
        idle_after=draw(_idle_afters(scale_ms)),
    )


def session_definitions(_base_ms: int, scale_ms: int) -> st.SearchStrategy[SessionDefinition]:
    """Gaps of a few positions, the rest as `sliding_definitions`."""
    return st.builds(
        SessionDefinition,
        gap=_lengths(scale_ms),
        grace=_graces(scale_ms),
        idle_after=_idle_afters(scale_ms),
    )


def any_definitions(base_ms: int, scale_ms: int) -> st.SearchStrategy[Definition]:
    """Of every kind."""
    return st.one_of(
        sliding_definitions(base_ms, scale_ms),
        forward_definitions(base_ms, scale_ms),
        time_definitions(base_ms, scale_ms),
        session_definitions(base_ms, scale_ms),
    )


OF_KIND: Mapping[str, Callable[[int, int], st.SearchStrategy[Any]]] = {
    "sliding": sliding_definitions,
    "forward": forward_definitions,
    "time": time_definitions,
    "session": session_definitions,
}
"""The definitions of each kind of window."""


@st.composite
def arrivals_of(
    draw: st.DrawFn,
    definitions: Callable[[int, int], st.SearchStrategy[D]],
    keys: Sequence[str | None] = ("a", "b", None),
    source_partitions: int = 2,
    max_arrival_units: int = 4,
    max_records_a_arrival_unit: int = 7,
) -> ArrivalsOf[D]:
    """Records with values of several types, and windows of one of the kinds above.

    The values are `whole` (int), `real` (float), `amount` (Decimal of scale 2) and `name` (str),
    each null at times. Now and then `real` holds infinities and NaN. Arrival is out of order,
    as times are drawn one by one. Smaller examples have fewer arrival units and records, and times
    nearer the base.
    """
    base_ms = draw(st.sampled_from(BASES_MS))
    scale_ms = draw(st.sampled_from(SCALES_MS))
    event = st.tuples(
        st.integers(0, draw(st.integers(0, source_partitions - 1))),
        st.sampled_from(keys),
        st.integers(0, LAST_POSITION),
        st.sampled_from((0, 1, -1)),
        st.sampled_from(ANY_VALUES if draw(st.booleans()) else FINITE_ONLY),
    )
    arrival_unit = st.lists(event, max_size=max_records_a_arrival_unit)
    arrival_units = draw(st.lists(arrival_unit, min_size=1, max_size=max_arrival_units))

    offsets = [0] * source_partitions
    records = []
    for number, events in enumerate(arrival_units):
        for each in map(_Event._make, events):
            jitter = each.jitter if scale_ms > 1 else 0
            records.append(
                Record(
                    number,
                    each.source_partition,
                    offsets[each.source_partition],
                    each.key,
                    base_ms + each.position * scale_ms + jitter,
                    each.values,
                )
            )
            offsets[each.source_partition] += 1
    return ArrivalsOf(records, len(arrival_units), draw(definitions(base_ms, scale_ms)))


def arrivals(
    keys: Sequence[str | None] = ("a", "b", None), source_partitions: int = 2
) -> st.SearchStrategy[Arrivals]:
    """Records for sliding windows."""
    return arrivals_of(sliding_definitions, keys, source_partitions)


def whole_inputs(
    definitions: Callable[[int, int], st.SearchStrategy[D]],
    keys: Sequence[str | None] = ("a", "b", None),
    source_partitions: int = 2,
) -> st.SearchStrategy[ArrivalsOf[D]]:
    """Records that all come at once, more of them; no source partition is idle (rule A4)."""

    def together(case: ArrivalsOf[D]) -> ArrivalsOf[D]:
        records = [replace(record, arrival_unit=0) for record in case.records]
        return ArrivalsOf(records, 1, replace(case.definition, idle_after=None))

    # Lists of lists grow longer than one alone.
    return arrivals_of(definitions, keys, source_partitions, max_arrival_units=8).map(together)
