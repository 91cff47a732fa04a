"""Workers whose Python lacks the package are named before a job starts, with the line to add."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

_PROGRAM = """
import os, sys
from pyspark.sql import SparkSession
import windows_pipeline as wp

for python in sys.argv[1:]:
    os.environ["PYSPARK_PYTHON"] = python
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    events = spark.createDataFrame([("k", 3)], "key string, ms bigint")
    windows = wp.TimeWindows.of_size_with_no_grace("10 ms")
    try:
        found = wp.windowed(events, windows).by("key").event_time("ms").agg(wp.count())
        print("computed", found.count())
    except Exception as error:
        print(type(error).__name__, error)
    spark.stop()
"""


def test_a_python_without_the_package_is_named_before_the_job(tmp_path: Path) -> None:
    """Another path to a Python that has the package is no mistake."""
    venv.create(tmp_path / "other", with_pip=False)
    bare, same = tmp_path / "other" / "bin" / "python3", tmp_path / "same"
    same.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    same.chmod(0o755)
    pythons = [str(bare), str(tmp_path / "none"), str(same), sys.executable]
    root = Path(__file__).parents[2]
    program = f"import sys\nsys.path.insert(0, {str(root)!r})\n{_PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", program, *pythons],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    lacking, missing, *others = done.stdout.splitlines()
    assert lacking.startswith(
        f"WorkersError Spark's workers must run a Python with the packages of this program, "
        f"{sys.executable}, but run {bare}, which lacks windows_pipeline, numba, "
    )
    assert "can't be started (FileNotFoundError)" in missing
    for line in (lacking, missing):
        assert line.endswith("import os, sys; os.environ['PYSPARK_PYTHON'] = sys.executable")
    assert others == ["computed 1", "computed 1"]
