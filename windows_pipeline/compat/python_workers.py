"""Runs functions in Spark's Python workers, whose Python must have the packages of this program."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote

from windows_pipeline.text.problems import RefusedError

_PYTHON = "spark.sql.execution.pyspark.python"
_PACKAGES = ("windows_pipeline", "numba", "numpy", "pandas", "pyarrow")
_SENT = (".py", ".zip", ".egg", ".whl")
_PROBE = (
    "import sys; from importlib.util import find_spec; print('%d.%d' % sys.version_info[:2], "
    "*(name for name in sys.argv[1:] if find_spec(name) is None))"
)


class WorkersError(RefusedError):
    """Spark's workers run a Python without this package, or another version of Python."""


def in_workers(
    records: DataFrame,
    function: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    schema: StructType | str,
) -> DataFrame:
    """Has workers map the partitions of records: `mapInArrow`, with a check of their Python.

    Raises:
        WorkersError: The workers' Python can't run the function.
    """
    _require_packages(records.sparkSession)
    return records.mapInArrow(function, schema)


def _require_packages(spark: SparkSession) -> None:
    """Requires that workers on this machine can import what functions need.

    The Python of other machines, those of a cluster or of Spark Connect, can't be asked from here.

    Raises:
        WorkersError: They can't.
    """
    if is_remote() or not (spark.sparkContext.master or "").startswith("local"):
        return
    python = spark.conf.get(_PYTHON, None) or spark.sparkContext.pythonExec
    python = shutil.which(python) or python
    if python == sys.executable:
        return
    problem = _problem_of(python)
    # A user may send packages to workers.
    if problem and not any(file.endswith(_SENT) for file in spark.sparkContext.listFiles):
        raise WorkersError(
            f"Spark's workers must run a Python with the packages of this program, "
            f"{sys.executable}, but run {python}, which {problem}; stop the session "
            "(spark.stop()), and start it after the line: "
            "import os, sys; os.environ['PYSPARK_PYTHON'] = sys.executable"
        )


@cache
def _problem_of(python: str) -> str:
    """What is wrong with a Python; empty if it has the packages."""
    command = [python, "-c", _PROBE, *_PACKAGES]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    except (OSError, subprocess.SubprocessError) as error:
        return f"can't be started ({type(error).__name__})"
    version, *missing = done.stdout.split()
    own = f"{sys.version_info.major}.{sys.version_info.minor}"
    if version != own:
        return f"is Python {version}, not {own}"
    return f"lacks {', '.join(missing)}" if missing else ""
