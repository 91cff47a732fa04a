"""Spark's Python daemon, ready for work: its workers are forked from it and have all of it at once.

`spark.python.daemon.module` names it. Spark ends workers that had nothing to do for a minute, and
each new one would take seconds to import what the kernels need and to set up Numba's compiler.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

# A thread that runs when a process is forked may hold a lock for ever: NumPy's library, and the
# allocator that PyArrow brings, start none then.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")


def without_archives(path: list[str]) -> list[str]:
    """A search path without archives of packages that are installed around them.

    Spark puts PySpark's own archive first, which lies within PySpark. An archive has no compiled
    files, so each process would compile what it imports; and each worker reads its index anew.

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


def make_ready() -> None:
    """Imports what workers need, and has Numba set up its compiler."""
    import numba
    import pandas as pd  # noqa: F401  PySpark's workers import it for any Arrow batch
    import pyspark.worker  # noqa: F401

    import windows_pipeline.checks.recount_kernel
    import windows_pipeline.checks.recount_session_kernel
    import windows_pipeline.engine.count_kernel
    import windows_pipeline.engine.firings.kernel
    import windows_pipeline.engine.row_kernel
    import windows_pipeline.engine.window_kernel  # noqa: F401

    # The first function that it compiles has it do so.
    numba.njit()(lambda: None)()


if __name__ == "__main__":
    sys.path[:] = without_archives(sys.path)
    make_ready()
    # After each task a worker collects garbage: what it has from here is none.
    gc.freeze()
    from pyspark.daemon import manager

    manager()
