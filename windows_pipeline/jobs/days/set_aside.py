"""Renames damaged folders of tables, so that the tables can be created again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from itertools import count
from pathlib import Path

from windows_pipeline.compat.delta_rs import supports_folder
from windows_pipeline.storage.files.check import check_files
from windows_pipeline.storage.files.digests import LAST_CHECKPOINT, LOG_FOLDER
from windows_pipeline.storage.table import Table


def set_aside(folder: Path) -> Path | None:
    """Renames a table's folder to the first free name of `.damaged`, `.damaged1`, ...

    Returns:
        The folder's new name; None if the folder does not exist.
    """
    if not folder.exists():
        return None
    names = (folder.with_name(f"{folder.name}.damaged{number or ''}") for number in count())
    free = next(name for name in names if not name.exists())
    shutil.move(folder, free)
    return free


def set_unreadable_aside(
    tables: Iterable[Table], bookkeeping: Iterable[Table], report: Callable[[str], None]
) -> None:
    """Sets each table aside that a rebuild could not replace, as it is damaged.

    Those are tables with a damaged log, and tables of bookkeeping with any damage. Damaged data
    files of other tables stay: replacing a table reads none of them. An object store keeps
    checksums of its own, so its tables are left as they are.

    Args:
        tables: The tables to be computed again.
        bookkeeping: Small tables whose rows are read before they are written again.
        report: Called with a text on each table set aside.
    """
    read_first = [table.name for table in bookkeeping]
    for table in {table.name: table for table in (*tables, *bookkeeping)}.values():
        if not (supports_folder(table.location) and Path(table.location, LOG_FOLDER).is_dir()):
            continue
        damaged = [damage.file for damage in check_files(table.location).damages]
        of_log = [
            file for file in damaged if file.startswith(LOG_FOLDER) and file != LAST_CHECKPOINT
        ]
        if of_log or (damaged and table.name in read_first):
            aside = set_aside(Path(table.location))
            report(
                f"{table.name}: damaged ({', '.join(of_log or damaged)}); the folder is set aside "
                f"as {aside and aside.name}, and the table created again"
            )
