"""A Spark session as the settings say."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from windows_pipeline.compat.py4j_names import remember_names
from windows_pipeline.settings import Settings


class SparkStartError(Exception):
    """Spark's JVM did not start; the message says what it needs."""


def use_this_python() -> None:
    """Has Spark's workers run the Python that this process runs, unless told otherwise."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def start_session(settings: Settings) -> SparkSession:
    """Starts or takes the session.

    Raises:
        SparkStartError: Its JVM ended at once.
    """
    use_this_python()
    builder = SparkSession.builder
    for name, value in settings.spark_conf().items():
        builder = builder.config(name, value)
    try:
        return made_ready(builder.getOrCreate())
    except PySparkRuntimeError as error:
        if error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise SparkStartError(
            "Spark did not start, and has printed why. It needs Java 17 or 21 (of JAVA_HOME, or on "
            "the path), and at its first start a network, for packages of its own"
        ) from None


def made_ready(session: SparkSession) -> SparkSession:
    """Has PySpark do less for each small plan; returns the session."""
    if not is_remote():
        remember_names(session.sparkContext)
    return session


@contextmanager
def configured(session: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Sets Spark SQL's configuration of a session for a while."""
    before = {name: session.conf.get(name, None) for name in conf}
    try:
        for name, value in conf.items():
            session.conf.set(name, value)
        yield
    finally:
        for name, old in before.items():
            if old is None:
                session.conf.unset(name)
            else:
                session.conf.set(name, old)
