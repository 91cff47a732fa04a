"""Starts and configures Spark sessions."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from windows_pipeline.compat.py4j_names import remember_names
from windows_pipeline.settings import Settings


class SparkStartError(Exception):
    """Spark's JVM did not start; the message says what Spark needs."""


def use_this_python() -> None:
    """Makes Spark's workers run this process's Python, unless PYSPARK_PYTHON is set."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def start_session(settings: Settings) -> SparkSession:
    """Starts a session with the settings' configuration, or returns the running one.

    Raises:
        SparkStartError: Spark's JVM ended while it started.
    """
    use_this_python()
    builder = SparkSession.builder
    for name, value in settings.spark_conf().items():
        builder = builder.config(name, value)
    try:
        return with_cached_names(builder.getOrCreate())
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise SparkStartError(_why_not_started()) from None


def _why_not_started() -> str:
    """Says what Spark's JVM lacks, as far as this process can see."""
    home = os.environ.get("JAVA_HOME")
    fix = "install Java 17 or 21, and set JAVA_HOME to its folder, or add its bin to the PATH"
    if home and not Path(home, "bin", "java").is_file():
        return f"Spark needs Java: JAVA_HOME is {home}, which has no bin/java; {fix}"
    if not home and shutil.which("java") is None:
        return f"Spark needs Java: JAVA_HOME is not set, and the PATH has no java; {fix}"
    return (
        "Spark's JVM ended while it started; its output has the reason. It needs Java 17 or 21, "
        "the memory that spark.driver.memory in settings.yaml asks for and, at its first start, a "
        "network to download its packages"
    )


def with_cached_names(session: SparkSession) -> SparkSession:
    """Caches py4j's names, so that PySpark builds plans faster; returns the session."""
    if not is_remote():
        remember_names(session.sparkContext)
    return session


@contextmanager
def configured(session: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Sets a session's Spark SQL configuration, and restores it at the end of the block."""
    previous = {name: session.conf.get(name, None) for name in conf}
    try:
        for name, value in conf.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, old in previous.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)
