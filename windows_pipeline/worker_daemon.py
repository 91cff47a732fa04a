"""A Python daemon for Spark that imports the kernels once, so that its forked workers have them.

Set `spark.python.daemon.module` to this module. Spark ends workers that are idle for a minute, and
without the daemon each new worker takes seconds to import the kernels and to set up Numba.
"""

from __future__ import annotations

import os

from windows_pipeline.compat.python_daemon import serve

# If a thread holds a lock during a fork, the child never gets that lock. These settings stop
# NumPy's OpenBLAS and PyArrow's allocator from starting threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")


def make_ready() -> None:
    """Imports the modules that workers use, and makes Numba set up its compiler."""
    import numba
    import pandas as pd  # noqa: F401  PySpark's workers import it for any Arrow batch

    import windows_pipeline.checks.recounts.kernel
    import windows_pipeline.checks.recounts.session_kernel
    import windows_pipeline.engine.count_kernel
    import windows_pipeline.engine.firings.kernel
    import windows_pipeline.engine.row_kernel
    import windows_pipeline.engine.window_kernel
    import windows_pipeline.sources.csv.records  # noqa: F401

    # Compiling any function sets up the compiler.
    numba.njit()(lambda: None)()


if __name__ == "__main__":
    serve(make_ready)
