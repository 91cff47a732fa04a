"""One JVM for all processes of a run of the tests: what they do often is compiled once."""

from __future__ import annotations

import os
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from windows_pipeline.compat.spark_session import use_this_python, with_cached_names
from windows_pipeline.settings import Settings

Door = tuple[int, str]
"""The port and the secret by which one process reaches the JVM."""
_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_FOR_ALL = {
    "spark.master": "local[6]",
    "spark.driver.memory": "4g",
    # Delta keeps the state of each table that it has seen, a megabyte or more: the tests have
    # hundreds, which filled the memory.
    "spark.databricks.delta.delta.log.cacheSize": "50",
    # Each sort takes a page, of 32 MB by default, however few rows it has.
    "spark.buffer.pageSize": "1m",
}

_AS_BUILT = {"spark.sql.artifact.isolation.enabled": "false"}
"""What sessions of a builder have; with it on, each stream has a Python daemon of its own, too."""


class SharedSpark:
    """A JVM with one Spark context, in which each process has a session of its own."""

    def __init__(self, settings: Settings) -> None:
        """Starts it."""
        use_this_python()
        conf = {**settings.spark_conf(), **_FOR_ALL}
        # The settings suit short commands; this JVM plans thousands of queries.
        options = conf["spark.driver.extraJavaOptions"]
        conf["spark.driver.extraJavaOptions"] = options.replace("-XX:TieredStopAtLevel=1", "")
        spark_conf = SparkConf(loadDefaults=False).setAll(list(conf.items()))
        self._gateway = launch_gateway(spark_conf)  # type: ignore[no-untyped-call]
        self._java = self._gateway.jvm
        self._context = self._java.JavaSparkContext(self._java.SparkConf())
        self._context.setLogLevel("ERROR")

    def door(self) -> Door:
        """A way in for one more process."""
        server = self._java.Py4JServer(self._context.getConf())
        server.start()
        return server.getListeningPort(), server.secret()

    def close(self) -> None:
        """Ends it."""
        self._context.stop()
        self._gateway.proc.kill()
        self._gateway.proc.wait()


def session_behind(door: Door, settings: Settings) -> SparkSession:
    """This process's session in a JVM that another one started."""
    os.environ[_PORT], os.environ[_SECRET] = map(str, door)
    try:
        gateway = launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        # What this process starts is to start a JVM of its own.
        del os.environ[_PORT], os.environ[_SECRET]
    java = gateway.jvm
    shared = java.JavaSparkContext.fromSparkContext(
        java.org.apache.spark.SparkContext.getOrCreate()
    )
    context = SparkContext(gateway=gateway, jsc=shared, conf=SparkConf(_jconf=shared.getConf()))
    conf = {**settings.spark_conf(), **_AS_BUILT}
    own = java.org.apache.spark.sql.classic.SparkSession(shared.sc(), conf)
    return with_cached_names(SparkSession(context, own))


def forget_delta_logs(spark: SparkSession) -> None:
    """Has Delta read each table's log again, as a JVM that has just started does."""
    java: Any = spark.sparkContext._jvm  # noqa: SLF001
    java.org.apache.spark.sql.delta.DeltaLog.clearCache()


def spark_bytes(spark: SparkSession, size: str) -> int:
    """How many bytes a size such as `512m` is to Spark."""
    java: Any = spark.sparkContext._jvm  # noqa: SLF001
    return int(java.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(size))
