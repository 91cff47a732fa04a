"""The order of a run's tests: modules that run whole pipelines first, and quick tests last."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter

import pytest

LONGEST_FIRST = ("pipeline", "streaming", "project", "spark")
"""Folders of tests whose modules take long; the other tests are quick."""


def dealt(items: Sequence[pytest.Item], processes: int) -> list[pytest.Item]:
    """The tests, so that each process begins with its share of the modules that take long.

    pytest-xdist gives each process an equal stretch of the tests, and a process that is done takes
    from the end of another's stretch. So modules that take long stay whole, and what is taken are
    quick tests.
    """
    rank = {folder: number for number, folder in enumerate(LONGEST_FIRST)}
    long = [item for item in items if item.path.parent.name in rank]
    quick = [item for item in items if item.path.parent.name not in rank]
    long.sort(key=lambda item: rank[item.path.parent.name])
    modules = [list(tests) for _, tests in groupby(long, attrgetter("path"))]
    found: list[pytest.Item] = []
    for process in range(processes):
        begins = [item for module in modules[process::processes] for item in module]
        length = (len(items) - len(found)) // (processes - process)
        ends = quick[: max(0, length - len(begins))]
        del quick[: len(ends)]
        found += begins + ends
    return found + quick
