"""Finds count windows by arithmetic on the number of records of a key (rule F1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from windows_pipeline.kernels.windows.arrays import WindowArrays
from windows_pipeline.windows.count_windows import CountWindows


@dataclass(frozen=True)
class CountedGroups:
    """Groups of records in arrival order, each a part of a key's records.

    Attributes:
        specs: The different windows to compute.
        spec_of: By group, the index of its windows in `specs`.
        starts: Where each group's records begin; one more entry for the end of the last.
        skipped: By group, how many of the key's records came before the group's first record.
        done: By group, how many of the key's records had come when windows were last found;
            windows that had ended by then are not found again.
    """

    specs: list[CountWindows]
    spec_of: np.ndarray
    starts: np.ndarray
    skipped: np.ndarray
    done: np.ndarray

    def windows(self) -> WindowArrays:
        """The windows that these records fill, all closed; `end_ms` is the last record's index."""
        ended_before = self._ended(self.done)
        number = self._ended(self._come) - ended_before
        group = np.repeat(np.arange(len(number)), number)
        window = np.arange(len(group)) - np.repeat(np.cumsum(number) - number, number)
        first, end = self._bounds(ended_before[group] + window, group)
        origin = (self.starts[:-1] - self.skipped)[group]
        records = int(self.starts[-1])
        return WindowArrays(
            group,
            origin + end - 1,
            np.ones(len(group), np.bool_),
            origin + end,
            origin + first,
            np.arange(records),
            np.zeros(records, np.bool_),
        )

    def rest(self) -> tuple[int, int, int]:
        """The part of the last group that later records of the same key still need.

        Returns:
            The index of the first record needed, and the `skipped` and `done` of a group that
            starts with it. At least one record is needed: it identifies the group.
        """
        last = np.array([len(self.spec_of) - 1])
        come = int(self._come[-1])
        first, _ = self._bounds(self._ended(self._come)[last], last)
        from_number = min(int(first[0]), come - 1)
        return int(self.starts[-2]) + from_number - int(self.skipped[-1]), from_number, come

    @property
    def _come(self) -> np.ndarray:
        come: np.ndarray = self.skipped + np.diff(self.starts)
        return come

    def _ended(self, come: np.ndarray) -> np.ndarray:
        """How many windows of each group are full once `come` records have come."""
        beyond_full = np.maximum(come - self._size + self._advance, 0)
        ended: np.ndarray = np.where(self._short_first, come, beyond_full) // self._advance
        return ended

    def _bounds(self, window: np.ndarray, group: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The numbers, from 0, of a window's first record and of the record after its last."""
        start = window * self._advance[group]
        size = self._size[group]
        end = start + np.where(self._short_first[group], self._advance[group], size)
        return np.maximum(end - size, 0), end

    @property
    def _size(self) -> np.ndarray:
        return self._by_group([spec.size for spec in self.specs])

    @property
    def _advance(self) -> np.ndarray:
        return self._by_group([spec.advance for spec in self.specs])

    @property
    def _short_first(self) -> np.ndarray:
        return self._by_group([spec.short_first for spec in self.specs])

    def _by_group(self, by_spec: list[int]) -> np.ndarray:
        by_group: np.ndarray = np.array(by_spec, np.int64)[self.spec_of]
        return by_group
