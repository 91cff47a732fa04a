"""Lands a sample: its files in the folder of one arrival day."""

from __future__ import annotations

import secrets
import shutil
from datetime import date, timedelta
from pathlib import Path

import pyarrow.parquet as pq

from windows_pipeline.starter.files import SampleFile, SampleFiles, is_day

_MOST_DAYS = 3_700
"""The longest span of day folders, some ten years."""


def require_free(target: Path, root: Path) -> None:
    """Requires that a folder of day folders can be made.

    Args:
        target: The folder.
        root: The folder that it must lie in.

    Raises:
        ValueError: The target exists, or lies outside the root.
    """
    if target.exists() or target.is_symlink():
        raise ValueError(
            f"{target}: the folder exists, and is not overwritten; use another name, move it, or "
            "if it holds day folders: --from with this folder"
        )
    parent = next(parent for parent in target.parents if parent.exists())
    if not parent.resolve().is_relative_to(root.resolve()):
        raise ValueError(f"{target}: must lie in {root}, and a link leads out; remove the link")


def land(files: SampleFiles, target: Path, day: date) -> Path:
    """Copies files into the folder of a day, within a hidden folder beside the target.

    Files that are already in day folders keep their days.

    Args:
        files: The files.
        target: The folder of day folders to make, by renaming the hidden one.
        day: The arrival day.

    Returns:
        The hidden folder.
    """
    hidden = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
    hidden.mkdir(parents=True)
    try:
        for of_day in files.days or (day,):
            (hidden / str(of_day)).mkdir()
        for file in files.files:
            _copy(file, hidden / str(file.day or day) / file.path.name, files.format)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    return hidden


def _copy(file: SampleFile, target: Path, kind: str) -> None:
    if kind != "parquet":
        shutil.copyfile(file.path, target)
        return
    # Spark cannot read nanoseconds, in which pandas writes times.
    with (
        pq.ParquetFile(file.path) as rows,
        pq.ParquetWriter(
            target, rows.schema_arrow, coerce_timestamps="us", allow_truncated_timestamps=True
        ) as writer,
    ):
        for batch in rows.iter_batches():
            writer.write_batch(batch)


def fill_gaps(folder: Path) -> tuple[tuple[date, ...], tuple[date, ...]]:
    """Makes an empty folder for each day that is missing between the first and the last.

    Returns:
        All days, and those whose folders are new.

    Raises:
        ValueError: The days span over ten years.
    """
    found = sorted(date.fromisoformat(entry.name) for entry in folder.iterdir() if is_day(entry))
    span = (found[-1] - found[0]).days + 1
    if span > _MOST_DAYS:
        raise ValueError(
            f"{folder}: the day folders must span at most {_MOST_DAYS:,} days, and go from "
            f"{found[0]} to {found[-1]}; move the days of other years away"
        )
    days = tuple(found[0] + timedelta(days=number) for number in range(span))
    missing = tuple(day for day in days if day not in found)
    for day in missing:
        (folder / str(day)).mkdir()
    return days, missing
