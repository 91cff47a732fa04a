"""Records as plain 64-bit numbers, for programs that read no Parquet."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq


def write_raw(folder: Path) -> Path:
    """Writes keys, times and values beside a folder of Parquet files, unless they are there.

    Returns:
        A file of 64-bit little-endian integers, one column after the other.
    """
    file = folder.with_suffix(".raw")
    if not file.exists():
        table = pq.read_table(folder, columns=["key", "time_ms", "value"])
        unfinished = file.with_suffix(".unfinished")
        with unfinished.open("wb") as sink:
            for name in table.column_names:
                np.asarray(table.column(name), "<i8").tofile(sink)
        unfinished.rename(file)
    return file
