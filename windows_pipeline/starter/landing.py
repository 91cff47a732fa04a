"""Lands a sample: its files in the folder of one arrival day."""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow.parquet as pq

from windows_pipeline.starter.files import SampleFiles


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

    Args:
        files: The files.
        target: The folder of day folders to make, by renaming the hidden one.
        day: The arrival day.

    Returns:
        The hidden folder.
    """
    hidden = target.with_name(f".{target.name}-{secrets.token_hex(4)}")
    of_day = hidden / str(day)
    of_day.mkdir(parents=True)
    is_parquet = files.format == "parquet"
    copy: Callable[[Path, Path], object] = _copy_parquet if is_parquet else shutil.copyfile
    try:
        for file in files.files:
            copy(file, of_day / file.name)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise
    return hidden


def _copy_parquet(file: Path, target: Path) -> None:
    """Spark cannot read nanoseconds, in which pandas writes times."""
    with (
        pq.ParquetFile(file) as rows,
        pq.ParquetWriter(
            target, rows.schema_arrow, coerce_timestamps="us", allow_truncated_timestamps=True
        ) as writer,
    ):
        for batch in rows.iter_batches():
            writer.write_batch(batch)
