"""Spark's Python daemon, ready for work: its workers are forked from it and have all of it at once.

`spark.python.daemon.module` names it. Spark ends workers that had nothing to do for a minute, and
each new one would take seconds to import what the kernels need and to set up Numba's compiler.
"""

from __future__ import annotations

import os

from windows_pipeline.compat.python_daemon import serve

# A thread that runs when a process is forked may hold a lock for ever: NumPy's library, and the
# allocator that PyArrow brings, start none then.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("JE_ARROW_MALLOC_CONF", "background_thread:false")


def make_ready() -> None:
    """Imports what workers need, and has Numba set up its compiler."""
    import numba
    import pandas as pd  # noqa: F401  PySpark's workers import it for any Arrow batch

    import windows_pipeline.checks.recount_kernel
    import windows_pipeline.checks.recount_session_kernel
    import windows_pipeline.engine.count_kernel
    import windows_pipeline.engine.firings.kernel
    import windows_pipeline.engine.row_kernel
    import windows_pipeline.engine.window_kernel  # noqa: F401

    # The first function that it compiles has it do so.
    numba.njit()(lambda: None)()


if __name__ == "__main__":
    serve(make_ready)
