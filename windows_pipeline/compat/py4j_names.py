"""Caches the JVM names that PySpark looks up most; py4j looks a name up again at every use."""

from __future__ import annotations

from typing import Any

from pyspark import SparkContext

NAMES = {
    "functions": ("col", "lit"),
    "org.apache.spark.sql.functions": ("col", "lit", "when", "expr", "coalesce", "unix_millis"),
    "org.apache.spark.sql.classic.SparkSession": ("getActiveSession", "setActiveSession"),
    "org.apache.spark.sql.expressions.Window": ("partitionBy",),
    "PythonUtils": ("toSeq", "toArray"),
    "PythonSQLUtils": ("ddlToJson", "readArrowStreamFromFile", "toDataFrame"),
}
"""The JVM's classes and functions that PySpark looks up most."""


def remember_names(context: SparkContext) -> None:
    """Caches the names that PySpark uses most, so that it need not ask the JVM for them.

    PySpark asks for a class and its function each time that it creates a column. The JVM
    searches several packages, of hundreds of files each, for a name without a package.
    """
    names: Any = context._jvm  # noqa: SLF001
    for name, members in NAMES.items():
        java_class = getattr(names, name)
        for member in members:
            setattr(java_class, member, getattr(java_class, member))
        setattr(names, name, java_class)
