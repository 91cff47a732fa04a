"""The daemon from which Spark forks its Python workers."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyspark
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from windows_pipeline.compat.python_daemon import without_archives

ARCHIVES = ("pyspark.zip", "py4j-0.10.9.9-src.zip")


def install(folder: Path, *packages: str) -> list[str]:
    """Makes PySpark's archives within PySpark, and packages around them; returns the archives."""
    lib = folder / "pyspark" / "python" / "lib"
    lib.mkdir(parents=True)
    for name in packages:
        (folder / name).mkdir(exist_ok=True)
        (folder / name / "__init__.py").touch()
    return [str(lib / name) for name in ARCHIVES]


def test_an_archive_gives_way_to_the_package_around_it(tmp_path: Path) -> None:
    installed = install(tmp_path / "site", "pyspark", "py4j")
    site = str(tmp_path / "site")
    assert without_archives([*installed, "/jobs", site]) == ["/jobs", site]
    assert without_archives(["", *installed]) == ["", site]
    assert without_archives(["/jobs", site]) == ["/jobs", site]


def test_an_archive_stays_where_nothing_else_is_known_to_be_the_same(tmp_path: Path) -> None:
    alone = install(tmp_path / "alone", "pyspark")
    unpacked = [f"/opt/spark/python/lib/{name}" for name in ARCHIVES]
    users = str(tmp_path / "alone" / "users.zip")
    assert without_archives([*alone, *unpacked, users]) == [*alone, *unpacked, users]


def test_workers_have_all_of_it_at_once_and_are_forked_without_threads(spark: SparkSession) -> None:
    @F.udf("path string, imported boolean, threads int")
    def seen(_: int) -> tuple[str, bool, int]:
        threads = os.listdir(f"/proc/{os.getppid()}/task")  # noqa: PTH208
        ready = {"windows_pipeline.engine.window_kernel", "pandas", "pyarrow", "numba"}
        return str(pyspark.__file__), ready <= set(sys.modules), len(threads)

    found = spark.range(1).select(seen("id").alias("seen")).select("seen.*").collect()
    assert found == [Row(path=pyspark.__file__, imported=True, threads=1)]
