"""Contract of PySpark's use of py4j: PySpark asks the JVM for a name unless it is cached."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.java_gateway import JavaClass, JavaMember
from py4j.protocol import REFLECTION_COMMAND_NAME
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from windows_pipeline.compat.py4j_names import NAMES
from windows_pipeline.compat.spark_session import with_cached_names


def jvm(spark: SparkSession) -> Any:
    return spark.sparkContext._jvm  # noqa: SLF001


@contextmanager
def asked(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The requests for names that reach the JVM."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001
    client = gateway._gateway_client  # noqa: SLF001
    sent: list[str] = []
    send = client.send_command

    def noting(command: str, *args: Any, **options: Any) -> Any:
        if command.startswith(REFLECTION_COMMAND_NAME):
            sent.append(command)
        return send(command, *args, **options)

    with monkeypatch.context() as patched:
        patched.setattr(client, "send_command", noting)
        yield sent


def test_names_are_classes_and_functions_of_the_jvm(spark: SparkSession) -> None:
    """`with_cached_names` caches the names again for a running session."""
    for _ in range(2):
        remembered = vars(jvm(with_cached_names(spark)))
        for name, members in NAMES.items():
            assert isinstance(remembered[name], JavaClass), name
            for member in members:
                assert isinstance(vars(remembered[name])[member], JavaMember), (name, member)
    assert [row.ten for row in spark.range(1).selectExpr("id + 10 AS ten").collect()] == [10]


def test_a_column_asks_for_names_only_where_they_are_forgotten(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_cached_names(spark)
    with asked(spark, monkeypatch) as for_names:
        column = F.col("a")
    assert for_names == []
    with monkeypatch.context() as patched, asked(spark, monkeypatch) as for_names:
        for name in NAMES:
            patched.delitem(vars(jvm(spark)), name)
        again = F.col("a")
    assert len(for_names) > 1
    assert str(again) == str(column)
