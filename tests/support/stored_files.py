"""The files of a stored table."""

from __future__ import annotations

from pathlib import Path


def data_files(table: Path) -> list[Path]:
    """The Parquet files of a table."""
    return sorted(
        path
        for path in table.rglob("*.parquet")
        if not path.relative_to(table).parts[0].startswith("_")
    )


def commits(table: Path) -> list[Path]:
    """The commits of a table's log, the oldest first."""
    return sorted((table / "_delta_log").glob("[0-9]*.json"))
