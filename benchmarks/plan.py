"""Which work is measured, from the sizes and options of the command line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.data import Dataset, Keys
from benchmarks.workload import Aggregates, Kind, Workload

MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Planned:
    """A work, and on how many cores; None for as many as there are to be."""

    work: Workload
    cores: int | None = None

    @property
    def name(self) -> str:
        """The work's name, with the cores where they differ from the rest."""
        return self.work.name + (f" on {self.cores}" if self.cores else "")


def planned(sizes: Sequence[int], *, full: bool) -> Iterator[Planned]:
    """The works of these sizes.

    Args:
        sizes: Numbers of records.
        full: Whether to take every distribution of keys at each size, not only the main ones.
    """
    for records in sizes:
        yield from map(Planned, _of_size(records, full=full))
        if records == 50 * MILLION:
            one_key = Workload(Dataset(records, 1, Keys.SINGLE))
            yield from (Planned(one_key, cores) for cores in (1, 2))


def _of_size(records: int, *, full: bool) -> Iterator[Workload]:
    if records == 50 * MILLION:
        return
    main = Workload(evenly(records, 100))
    if records <= MILLION:
        for records_per_window in (10, 100, 1_000, 10_000):
            yield Workload(
                evenly(records, records_per_window), records_per_window=records_per_window
            )
        yield replace(main, kind=Kind.HOPPING, records_per_window=10, advances=100)
        yield replace(main, kind=Kind.SESSION, records_per_window=10)
        for aggregates in Aggregates:
            if aggregates is not main.aggregates:
                yield replace(main, aggregates=aggregates)
    else:
        yield main
    if records <= MILLION or full:
        for spread in (Keys.ZIPF, Keys.HALF):
            yield replace(main, dataset=replace(main.dataset, spread=spread))
        yield replace(main, dataset=Dataset(records, 1, Keys.SINGLE))
        yield replace(main, dataset=Dataset(records, MILLION), records_per_window=1)


def evenly(records: int, records_per_window: int) -> Dataset:
    """At most 1,000 keys, each with ten times as many records as a window holds, or more."""
    return Dataset(records, max(1, min(1_000, records // (10 * records_per_window))))
