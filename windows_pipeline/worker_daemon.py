"""Spark's Python daemon with Numba made ready: workers are forked from it and have it at once.

`spark.python.daemon.module` names it. Spark ends workers that had nothing to do for a minute, and
Numba takes each new one seconds to load and to set up.
"""

from __future__ import annotations

import os

# A thread that runs when a process is forked may hold a lock for ever: NumPy's library starts
# none then. PyArrow starts one when imported, so it is left to the workers.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numba
from pyspark.daemon import manager


@numba.njit()
def make_ready() -> None:
    """Does nothing: the first function that Numba compiles has it set up its compiler."""


if __name__ == "__main__":
    make_ready()
    manager()
