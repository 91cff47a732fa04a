"""A user's column or result may have any name that its result does not have (rule F3)."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windows_pipeline as wp
from windows_pipeline import (
    Aggregation,
    SessionWindows,
    SlidingWindows,
    TimeWindows,
    Trigger,
    WindowFunction,
    max_,
    sum_,
)
from windows_pipeline.dataframe.names import RESERVED
from windows_pipeline.flip11 import (
    UNBOUNDED_RANGE,
    Session,
    SessionRows,
    SlideRows,
    Tumble,
    TumbleRows,
    rows,
)

PACKAGE = Path(wp.__file__).parent
ROWS = [("a", 1000, 5, 1), ("a", 2000, 6, 2), ("a", 2500, 8, 3), ("b", 9000, 7, 4)]
SCHEMA = "my_key string, my_time bigint, my_value bigint, my_offset bigint"
BOUNDS = ("window_start", "window_end")
WINDOW = (*BOUNDS, "first_event_time", "last_event_time", "record_count")
FIRING = (*WINDOW, "firing_id", "reason", "cause", "stream_time", "fired_after", "is_final")
LATE = ("reason", "stream_time", "close_time", "late_by_ms")

SECOND = TimeWindows.of_size_and_grace("1 second", "0 ms")
SLIDING = SlidingWindows.of_time_difference_and_grace("1 second", "0 ms")
GAPS = SessionWindows.of_inactivity_gap_and_grace("1 second", "0 ms")
CLOSED, AT_END = Trigger.until_window_closes(), Trigger.at_window_end()


def names_in_code() -> list[str]:
    """Each text of the engine and the API that may name a column, in one case."""
    found = {"Ms", "closes_ms", "entry_ms", "exit_ms", "reached", "slowest_ms", "max_ms", "ms"}
    for module in (*PACKAGE.glob("engine/**/*.py"), *PACKAGE.glob("dataframe/**/*.py")):
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found |= {node.value, node.value.removeprefix(RESERVED)}
                if node.value.endswith("_"):  # an f-string's part, which an index follows
                    found |= {f"{node.value}0", f"{node.value}0_0"}
    names = {name.lower() for name in found if name.isidentifier() and name.isascii()}
    return sorted(name for name in names if not name.startswith(RESERVED))


NAMES = names_in_code()
REFUSED = r"^(\w+: )?aggregates: |^SlideRows: the result '(failed|FAILED)' hides a column"
RESERVED_NAMES = ("_event_time_ms", "_result_0_0", "_my_own")


def sums(names: Sequence[str]) -> list[Aggregation]:
    """A different sum of each name."""
    of_names = [
        sum_(f"my_value * {number}").alias(name) for number, name in enumerate(names, start=2)
    ]
    return [sum_("my_value").alias("my_sum"), *of_names]


def processed(
    events: DataFrame, trigger: Trigger, aggregates: Sequence[Aggregation], names: Sequence[str]
) -> DataFrame:
    """The content of each firing, as columns."""
    content_names = ["record_count", "my_sum", *names]
    columns = ["my_start", "my_end", "my_id", *content_names]
    schema = ", ".join(f"column_{index} bigint" for index in range(len(columns)))
    function = WindowFunction(
        lambda key, window, content, context: [
            (key, *window, context.firing_id, *(content[name] for name in content_names))
        ],
        f"my_key string, {schema}",
    )
    found: DataFrame = timed(events).process(trigger, function, *aggregates)
    return found.toDF("my_key", *columns)


def timed(events: DataFrame, windows: Any = SECOND) -> Any:
    return wp.windowed(events, windows).by("my_key").event_time("my_time").arrival("my_offset")


def in_sql(events: DataFrame, function: str, arguments: str, names: Sequence[str]) -> DataFrame:
    events.createOrReplaceTempView("events_of_names")
    of_names = [f"sum(my_value * {number}) AS {name}" for number, name in enumerate(names, 2)]
    aggregates = ", ".join(["sum(my_value) AS my_sum", *of_names])
    call = f"TABLE(events_of_names) PARTITION BY my_key, {arguments}, aggregates => '{aggregates}'"
    return wp.sql(events.sparkSession, f"SELECT * FROM {function}({call})")  # noqa: S608


Computed = Callable[[DataFrame, Sequence[str]], DataFrame]
VERBS: dict[str, tuple[Computed, tuple[str, ...]]] = {
    "agg": (lambda events, names: timed(events).agg(*sums(names)), (*WINDOW, "closed")),
    "agg_without_slices": (
        lambda events, names: timed(events).agg(*sums(names), pre_aggregate=False),
        (*WINDOW, "closed"),
    ),
    "agg_of_sessions": (
        lambda events, names: timed(events, GAPS).agg(*sums(names), on_error="null"),
        (*WINDOW, "session_timeout", "failed", "closed"),
    ),
    "cogroup": (
        lambda events, names: (
            timed(events)
            .cogroup(timed(events), max_("my_offset").alias("my_last"))
            .agg(*sums(names))
        ),
        (*WINDOW, "closed"),
    ),
    "final": (lambda events, names: timed(events).final().agg(*sums(names)), WINDOW),
    "firings_when_closed": (
        lambda events, names: timed(events).firings(CLOSED, *sums(names)),
        FIRING,
    ),
    "firings_at_end": (
        lambda events, names: timed(events, GAPS).firings(AT_END, *sums(names), on_error="null"),
        (*FIRING, "session_timeout", "failed"),
    ),
    "process_at_end": (
        lambda events, names: processed(events, AT_END, sums(names), names),
        ("record_count",),
    ),
    "rows_of_spark": (
        lambda events, names: row_windows(events, SlideRows.preceding(UNBOUNDED_RANGE)).agg(
            *sums(names)
        ),
        (),
    ),
    "rows_or_null": (
        lambda events, names: row_windows(events, SlideRows.preceding("1 second")).agg(
            *sums(names), on_error="null"
        ),
        ("failed",),
    ),
    "several_rows": (
        lambda events, names: (
            row_windows(events, TumbleRows.over("1 second").alias("my_window"))
            .and_over(
                SessionRows.with_gap("1 second").on("my_time").alias("my_other"), max_("my_value")
            )
            .agg(*sums(names))
        ),
        (),
    ),
    "groups_by_sessions": (
        lambda events, names: groups(events, Session.with_gap("1 second")).agg(
            *sums(names), on_error="null"
        ),
        ("failed",),
    ),
    "groups_by_rows": (
        lambda events, names: groups(events, Tumble.over(rows(1)), "my_offset").agg(*sums(names)),
        (),
    ),
    "sql_by_time": (
        lambda events, names: in_sql(
            events, "tumbling_windows", "time_col => 'my_time', size => '1 second'", names
        ),
        (*WINDOW, "closed"),
    ),
    "sql_by_rows": (
        lambda events, names: in_sql(
            events, "count_windows", "order_col => 'my_offset', size => 1", names
        ),
        BOUNDS,
    ),
}


def row_windows(events: DataFrame, window: Any) -> Any:
    return wp.windowed(events, window).by("my_key").event_time("my_time").arrival("my_offset")


def groups(events: DataFrame, window: Any, column: str = "my_time") -> Any:
    return wp.windowed(events, window.on(column).alias("my_window")).by("my_key")


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(ROWS, SCHEMA)


@pytest.mark.parametrize("verb", VERBS)
def test_a_result_may_have_any_name_that_the_verb_does_not_document(
    events: DataFrame, verb: str
) -> None:
    """No value is replaced, lost or mixed up, and the verb's own columns keep their values."""
    compute, documented = VERBS[verb]
    names = [name for name in NAMES if name not in documented]
    found, plain = compute(events, names), compute(events, [])
    assert set(names) < set(found.columns)
    rows_found = [row.asDict(recursive=True) for row in found.collect()]
    assert rows_found
    for row in rows_found:
        assert {name: row[name] for name in names} == {
            name: row["my_sum"] * number for number, name in enumerate(names, start=2)
        }
    kept = [{name: row[name] for name in plain.columns} for row in rows_found]
    expected = [row.asDict(recursive=True) for row in plain.collect()]
    assert sorted(map(str, kept)) == sorted(map(str, expected))


@pytest.mark.parametrize("verb", VERBS)
def test_a_name_that_the_verb_documents_is_refused(events: DataFrame, verb: str) -> None:
    """Also in other letters, and before Spark computes anything."""
    compute, documented = VERBS[verb]
    in_capitals = [name.upper() for name in documented[:1]]
    for name in (*documented, *in_capitals, *RESERVED_NAMES):
        with pytest.raises(ValueError, match=REFUSED) as raised:
            compute(events, [name])
        assert name in str(raised.value)


KEYED: dict[str, tuple[Callable[[Any, DataFrame], DataFrame], tuple[str, ...]]] = {
    "agg": (
        lambda keyed, events: keyed(events, SECOND).agg(sum_("my_value")),
        (*WINDOW, "closed"),
    ),
    "final": (
        lambda keyed, events: keyed(events, GAPS).final().agg(sum_("my_value")),
        (*WINDOW, "session_timeout"),
    ),
    "firings_when_closed": (
        lambda keyed, events: keyed(events, SLIDING).firings(CLOSED, sum_("my_value")),
        FIRING,
    ),
    "firings_at_end": (
        lambda keyed, events: keyed(events, SECOND).firings(AT_END, sum_("my_value")),
        FIRING,
    ),
    "late": (lambda keyed, events: keyed(events, SECOND).late(), LATE),
    "rows": (
        lambda keyed, events: keyed(events, SlideRows.preceding("1 second")).agg(
            sum_("my_value").alias("my_sum")
        ),
        (),
    ),
    "groups_by_time": (
        lambda keyed, events: keyed(
            events, Session.with_gap("1 second").on("my_time").alias("my_window")
        ).agg(sum_("my_value").alias("my_sum")),
        (),
    ),
    "groups_by_rows": (
        lambda keyed, events: keyed(
            events, Tumble.over(rows(1)).on("my_offset").alias("my_window")
        ).agg(sum_("my_value").alias("my_sum")),
        (),
    ),
}
KEYS = [*NAMES, *RESERVED_NAMES, "_computed_day", "_close_time_ms", "_key_0", "_value_0_0"]


@pytest.mark.parametrize("verb", KEYED)
def test_a_part_of_the_key_may_have_any_name_that_the_verb_does_not_document(
    events: DataFrame, verb: str
) -> None:
    """Also names with the reserved prefix: the engine reads the key under names of its own."""
    compute, documented = KEYED[verb]
    names = [name for name in KEYS if name not in documented]
    named = events.select("*", *(F.lit(number).alias(name) for number, name in enumerate(names)))

    def keyed(records: DataFrame, windows: Any) -> Any:
        built = wp.windowed(records, windows).by("my_key", *names)
        if verb.startswith("groups"):
            return built
        return built.event_time("my_time").arrival("my_offset")

    found = compute(
        keyed,
        named.union(
            named.withColumn("my_time", F.col("my_time") - 100).withColumn(
                "my_offset", F.col("my_offset") + 4
            )
        ),
    ).collect()
    assert found
    for row in found:
        assert {name: row[name] for name in names} == {
            name: number for number, name in enumerate(names)
        }


@pytest.mark.parametrize("verb", KEYED)
def test_a_part_of_the_key_that_the_verb_documents_is_refused(events: DataFrame, verb: str) -> None:
    compute, documented = KEYED[verb]
    for name in documented:
        named = events.withColumn(name, F.lit(1))

        def keyed(records: DataFrame, windows: Any, name: str = name) -> Any:
            return wp.windowed(records, windows).by(name).event_time("my_time").arrival("my_offset")

        with pytest.raises(ValueError, match=f"^(by|events): must not name '{name}', because"):
            compute(keyed, named)


def test_time_and_arrival_may_have_names_of_the_engine(events: DataFrame) -> None:
    """Each column has the name of another one in the engine's plan."""
    names = {
        "my_key": "source_partition",
        "my_time": "offset",
        "my_value": "_event_time_ms",
        "my_offset": "source",
        "my_partition": "_computed_day",
    }
    parted = events.withColumn("my_partition", F.col("my_offset") % 2)
    swapped = parted.withColumnsRenamed(names)

    def found(records: DataFrame, name: dict[str, str], trigger: Trigger) -> list[tuple[Any, ...]]:
        built = (
            wp.windowed(records, SECOND)
            .by(name["my_key"])
            .event_time(name["my_time"])
            .arrival(name["my_offset"], partition=name["my_partition"])
        )
        fired = built.firings(trigger, sum_(name["my_value"]).alias("my_sum"))
        return sorted(tuple(row) for row in fired.collect())

    same = {name: name for name in names}
    for trigger in (CLOSED, AT_END):
        expected = found(parted, same, trigger)
        assert expected
        assert found(swapped, names, trigger) == expected
