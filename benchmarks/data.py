"""Generated records: the same for the same description, written once as Parquet."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CACHE = Path(__file__).parent.parent / ".cache" / "bench"
"""Where generated records and fetched programs are kept; .gitignore has it."""

SPAN_MS = 1_000_000_000
"""Event times span this long, about 11.6 days, whatever the size."""

_FIRST_MS = 1_700_000_000_000
_ROWS_PER_FILE = 2_000_000
_ZIPF_EXPONENT = 1.1
_SCHEMA = pa.schema(
    [("key", pa.int64()), ("time_ms", pa.int64()), ("value", pa.int64()), ("amount", pa.float64())]
)


class Keys(StrEnum):
    """How records spread over keys."""

    UNIFORM = "uniform"
    ZIPF = "zipf"
    HALF = "half"
    SINGLE = "single"


@dataclass(frozen=True, slots=True)
class Dataset:
    """Records of which everything follows from these fields.

    Attributes:
        records: How many.
        keys: The number of keys, at most; skewed draws may miss some.
        spread: How records spread over them: evenly; by Zipf's law with exponent 1.1; half of
            them in one key; all in one.
        seed: Of the random numbers.
    """

    records: int
    keys: int
    spread: Keys = Keys.UNIFORM
    seed: int = 450

    @property
    def name(self) -> str:
        """The name of its folder."""
        return f"{self.records}-records-{self.keys}-keys-{self.spread}-seed-{self.seed}"

    def window_ms(self, records_per_window: int) -> int:
        """The length of windows that hold this many records on average, if keys are even."""
        return records_per_window * self.keys * SPAN_MS // self.records

    def tables(self) -> Iterator[pa.Table]:
        """The records in parts: `key`, `time_ms`, `value` (0 to 999), `amount` (0.0 to 1.0e3).

        Times are uniform and in no order. Each part has random numbers of its own, so a part
        does not depend on what was drawn before it.
        """
        for part, first in enumerate(range(0, self.records, _ROWS_PER_FILE)):
            random = np.random.default_rng([self.seed, part])
            rows = min(_ROWS_PER_FILE, self.records - first)
            columns = [
                self._keys(random, rows),
                _FIRST_MS + random.integers(0, SPAN_MS, rows),
                random.integers(0, 1000, rows),
                random.random(rows) * 1000,
            ]
            yield pa.Table.from_arrays([pa.array(one) for one in columns], schema=_SCHEMA)

    def _keys(self, random: np.random.Generator, rows: int) -> np.ndarray:
        match self.spread:
            case Keys.SINGLE:
                return np.zeros(rows, np.int64)
            case Keys.HALF:
                others = random.integers(0, self.keys, rows)
                return np.where(random.random(rows) < 0.5, 0, others)
            case Keys.ZIPF:
                weights = np.arange(1, self.keys + 1, dtype=np.float64) ** -_ZIPF_EXPONENT
                shares = np.cumsum(weights) / weights.sum()
                drawn = np.searchsorted(shares, random.random(rows))
                return np.minimum(drawn, self.keys - 1).astype(np.int64)
            case Keys.UNIFORM:
                return random.integers(0, self.keys, rows)

    def write(self, root: Path) -> Path:
        """Writes the records under a folder unless they are there.

        Returns:
            The folder of Parquet files.
        """
        folder = root / self.name
        if folder.exists():
            return folder
        unfinished = root / f"{self.name}.unfinished"
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir(parents=True)
        for part, table in enumerate(self.tables()):
            pq.write_table(table, unfinished / f"part-{part:05d}.parquet", row_group_size=500_000)
        return unfinished.rename(folder)
