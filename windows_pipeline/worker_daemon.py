"""A Python daemon for Spark that imports the kernels once, so that its forked workers have them.

Set `spark.python.daemon.module` to this module. Spark ends workers that are idle for a minute, and
without the daemon each new worker takes seconds to import the kernels and to set up Numba.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

# A thread that runs during a fork may leave a lock held for ever in the child. These settings stop
# NumPy's OpenBLAS and PyArrow's allocator from starting threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")


def without_archives(path: list[str]) -> list[str]:
    """Replaces PySpark's archives in a search path by the folder of the installed PySpark.

    Spark puts archives from within the installed PySpark first. An archive has no compiled
    files, so each process would compile what it imports, and each worker would read the
    archive's index again.

    Args:
        path: Folders and archives, in order.

    Returns:
        The path without these archives, and with the folder of the installed packages.
    """
    archives = [entry for entry in path if _is_of_installed_pyspark(Path(entry))]
    others = [entry for entry in path if entry not in archives]
    folders = (str(Path(entry).parents[3]) for entry in archives)
    return others + [folder for folder in dict.fromkeys(folders) if folder not in others]


def _is_of_installed_pyspark(archive: Path) -> bool:
    """Whether a path is `pyspark/python/lib/<archive>.zip` in a folder with PySpark and Py4J."""
    if archive.suffix != ".zip" or archive.parts[-4:-1] != ("pyspark", "python", "lib"):
        return False
    folder = archive.parents[3]
    return all((folder / name / "__init__.py").exists() for name in ("pyspark", "py4j"))


def make_ready() -> None:
    """Imports the modules that workers use, and makes Numba set up its compiler."""
    import numba
    import pandas as pd  # noqa: F401  PySpark's workers import it for any Arrow batch
    import pyspark.worker  # noqa: F401

    import windows_pipeline.checks.recount_kernel
    import windows_pipeline.checks.recount_session_kernel
    import windows_pipeline.engine.count_kernel
    import windows_pipeline.engine.firings.kernel
    import windows_pipeline.engine.row_kernel
    import windows_pipeline.engine.window_kernel  # noqa: F401

    # Compiling any function sets up the compiler.
    numba.njit()(lambda: None)()


if __name__ == "__main__":
    sys.path[:] = without_archives(sys.path)
    make_ready()
    # Workers collect garbage after each task; freezing leaves out all objects imported so far.
    gc.freeze()
    from pyspark.daemon import manager

    manager()
