"""Spark's Python daemon: forks workers from a process that has already imported their modules.

`spark.python.daemon.module` names the module that Spark runs as its daemon. PySpark documents
neither what that module must do nor `pyspark.daemon`, which this module builds on.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path


def serve(make_ready: Callable[[], None]) -> None:
    """Forks workers at Spark's request until Spark ends; workers inherit all imported modules.

    Args:
        make_ready: Imports the modules that workers need, besides `pyspark.worker`.
    """
    sys.path[:] = without_archives(sys.path)
    import pyspark.worker  # noqa: F401

    make_ready()
    # A worker collects garbage after each task; objects inherited from the daemon need no scan.
    gc.freeze()
    from pyspark.daemon import manager

    manager()


def without_archives(path: list[str]) -> list[str]:
    """Replaces PySpark's zip archives on a search path by the folder PySpark is installed in.

    Spark puts the archive inside PySpark's package first on the path. An archive contains no
    bytecode, so each process would compile what it imports, and each worker would read the
    archive's index again.

    Args:
        path: Folders and archives, in order.

    Returns:
        The path without these archives, and with the folder of the installed packages.
    """
    archives = [entry for entry in path if _is_installed_around(Path(entry))]
    others = [entry for entry in path if entry not in archives]
    folders = (str(Path(entry).parents[3]) for entry in archives)
    return others + [folder for folder in dict.fromkeys(folders) if folder not in others]


def _is_installed_around(archive: Path) -> bool:
    """Whether the path is `pyspark/python/lib/*.zip` in a folder with PySpark and Py4J."""
    if archive.suffix != ".zip" or archive.parts[-4:-1] != ("pyspark", "python", "lib"):
        return False
    folder = archive.parents[3]
    return all((folder / name / "__init__.py").exists() for name in ("pyspark", "py4j"))
