"""The JVM's names, which PySpark asks py4j for again each time: the most used are remembered."""

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
"""The JVM's classes and functions that PySpark asks for most."""


def remember_names(context: SparkContext) -> None:
    """Has PySpark find the names that it uses most without asking the JVM.

    It asks for a class, and for its function, each time that it makes a column; the JVM looks
    for a short name in several packages, of hundreds of files each.
    """
    names: Any = context._jvm  # noqa: SLF001
    for name, members in NAMES.items():
        of_class = getattr(names, name)
        for member in members:
            setattr(of_class, member, getattr(of_class, member))
        setattr(names, name, of_class)
