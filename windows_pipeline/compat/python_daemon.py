"""Spark's Python daemon, whose workers are forked from a process that has imported what they need.

`spark.python.daemon.module` names a module to run; PySpark documents neither what that module has
to do nor `pyspark.daemon`, which does the rest.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path


def serve(make_ready: Callable[[], None]) -> None:
    """Serves Spark's requests for workers until Spark ends; each worker has what is imported here.

    Args:
        make_ready: Imports what workers need; PySpark's own worker is imported beside.
    """
    sys.path[:] = without_archives(sys.path)
    import pyspark.worker  # noqa: F401

    make_ready()
    # After each task a worker collects garbage: what it has from here is none.
    gc.freeze()
    from pyspark.daemon import manager

    manager()


def without_archives(path: list[str]) -> list[str]:
    """A search path without archives of packages that are installed around them.

    Spark puts PySpark's own archive first, which lies within PySpark. An archive has no compiled
    files, so each process would compile what it imports; and each worker reads its index again.

    Args:
        path: Folders and archives, in order.

    Returns:
        The path less such archives; the folder that the packages are installed in is there.
    """
    archives = [entry for entry in path if _is_installed_around(Path(entry))]
    kept = [entry for entry in path if entry not in archives]
    folders = (str(Path(entry).parents[3]) for entry in archives)
    return kept + [folder for folder in dict.fromkeys(folders) if folder not in kept]


def _is_installed_around(archive: Path) -> bool:
    """Whether it is `pyspark/python/lib/<archive>.zip` in a folder with PySpark and Py4J."""
    if archive.suffix != ".zip" or archive.parts[-4:-1] != ("pyspark", "python", "lib"):
        return False
    folder = archive.parents[3]
    return all((folder / name / "__init__.py").exists() for name in ("pyspark", "py4j"))
