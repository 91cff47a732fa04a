"""Windows in SQL: calls are read from the text, and give what the DataFrame form gives."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import windows_pipeline as wp
from windows_pipeline import SlidingWindows, count, sum_
from windows_pipeline.dataframe.sql_calls import WindowCall, window_calls

NAMES = ("sliding_windows", "count_windows")
SLIDING = (
    "sliding_windows(TABLE(events) PARTITION BY user, time_col => 'ts', "
    "time_difference => '10 minutes', grace => '0 seconds', aggregates => 'count(*), sum(amount)')"
)


def test_calls_are_read_from_the_text() -> None:
    """Quotes, comments, letters beyond ASCII and brackets within do not mislead it."""
    text = (
        "/* é sliding_windows( */ SELECT '😀 sliding_windows(', `a b` FROM "
        "Sliding_Windows ( TABLE (SELECT f(x) AS y FROM t WHERE n = ')') PARTITION BY (`a b`, date)"
        " , time_difference => INTERVAL 10 MINUTES, n => 3, flag => TRUE, text => 'it\\'s' ) AS w"
        " JOIN count_windows(TABLE(u), size => 2) USING (key)"
    )
    first, second = window_calls(text, NAMES)
    assert text[first.start : first.end].startswith("Sliding_Windows ( TABLE")
    assert text[first.end :].startswith(" AS w JOIN")
    assert first == WindowCall(
        "sliding_windows",
        first.start,
        first.end,
        "SELECT f(x) AS y FROM t WHERE n = ')'",
        ("a b", "date"),
        {"time_difference": "10 MINUTES", "n": 3, "flag": True, "text": "it's"},
    )
    assert (second.table, second.partition_by, second.arguments) == ("u", (), {"size": 2})
    assert text[second.end :] == " USING (key)"


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        ("sliding_windows(events)", "TABLE(...), the records, as its first argument is missing"),
        ("sliding_windows(TABLE events)", "TABLE(...), with parentheses is missing"),
        ("sliding_windows(TABLE(events", "its '(' is not closed"),
        ("sliding_windows(TABLE())", "TABLE() must contain a table or a query"),
        ("sliding_windows(TABLE(e) ORDER BY ts, size => 1)", "only PARTITION BY may"),
        ("sliding_windows(TABLE(e) PARTITION BY 3, size => 1)", "a column's name in PARTITION BY"),
        ("sliding_windows(TABLE(e), 'ts')", "the name of an argument is missing"),
        ("sliding_windows(TABLE(e), size 1)", "'=>' after size is missing"),
        ("sliding_windows(TABLE(e), size => other)", "size takes a literal"),
        ("sliding_windows(TABLE(e), size => 1.5)", "size: must be a whole number, not 1.5"),
        ("sliding_windows(TABLE(e), size => 1, SIZE => 2)", "size comes twice"),
        ("sliding_windows(TABLE(e), size => 1", "',' or ')' is missing"),
    ],
)
def test_what_cannot_be_read_is_refused(call: str, refusal: str) -> None:
    """Rule F3: a message that names the function, the argument and the fix."""
    with pytest.raises(ValueError, match=r"^sliding_windows: near ") as refused:
        list(window_calls(f"SELECT * FROM {call}", NAMES))  # noqa: S608
    assert refusal in str(refused.value)


@pytest.fixture(scope="module")
def events(spark: SparkSession) -> DataFrame:
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    rows = [(i, "ab"[i % 2], noon.replace(minute=7 * i % 60), i * i) for i in range(12)]
    frame = spark.createDataFrame(rows, "at bigint, user string, ts timestamp, amount bigint")
    frame.createOrReplaceTempView("events")
    return frame


def test_sql_gives_what_the_dataframe_gives(spark: SparkSession, events: DataFrame) -> None:
    """The same windows, filtered and joined as any table of Spark's."""
    windows = SlidingWindows.of_time_difference_and_grace("10 minutes", "0 seconds")
    by_user = wp.windowed(events, windows).by("user").event_time("ts")
    expected = by_user.agg(count(), sum_("amount"))
    found = wp.sql(
        spark,
        f"WITH w AS (SELECT *, '{{x}}' AS braces FROM {SLIDING}) "  # noqa: S608
        "SELECT w.*, total, collect_list_amount FROM w JOIN "
        "count_windows(TABLE(SELECT * FROM events WHERE amount < 100), order_col => 'at', "
        "size => 10, aggregates => 'sum(amount) AS total, percentile(amount, 0.5), count(*), "
        "collect_list(amount)') "
        "WHERE w.count > 0",
    )
    assert found.columns == [*expected.columns, "braces", "total", "collect_list_amount"]
    others = {"braces": F.lit("{x}"), "total": F.lit(285).cast("bigint")}
    others["collect_list_amount"] = F.array(*(F.lit(i * i).cast("bigint") for i in range(10)))
    wanted = expected.withColumns(others)
    assert sorted(map(repr, found.collect())) == sorted(map(repr, wanted.collect()))
    assert spark.sql("SHOW TABLES LIKE '_pyspark_*'").isEmpty()


def test_forward_windows_are_those_of_the_dataframe(spark: SparkSession, events: DataFrame) -> None:
    """Rule B7: with late records, which arrive in the order of a column."""
    windows = SlidingWindows.of("10 minutes").grace("5 minutes")
    by_user = wp.windowed(events, windows).by("user").event_time("ts").arrival("at")
    expected = by_user.agg(count(), sum_("amount"))
    found = wp.sql(
        spark,
        "SELECT * FROM forward_windows(TABLE(events) PARTITION BY user, time_col => 'ts', "
        "size => '10 minutes', grace => '5 minutes', offset_col => 'at', "
        "aggregates => 'count(*), sum(amount)')",
    )
    assert found.columns == expected.columns
    rows = found.collect()
    assert {row.closed for row in rows} == {True, False}
    assert sorted(map(repr, rows)) == sorted(map(repr, expected.collect()))


def test_an_aggregate_may_have_two_columns(spark: SparkSession, events: DataFrame) -> None:
    """Rule G1: of equal users the last record to arrive decides."""
    del events
    found = wp.sql(
        spark,
        "SELECT * FROM count_windows(TABLE(events), order_col => 'at', size => 4, aggregates => "
        "'min_by(at, amount % 5) AS least, max_by(at, user), "
        "min_by(user, amount) where at % 4 > 0 AS second')",
    )
    rows = sorted(tuple(row[name] for name in found.columns[-3:]) for row in found.collect())
    assert found.columns[-3:] == ["least", "max_by_at_user", "second"]
    assert rows == [(0, 3, "b"), (5, 7, "b"), (10, 11, "b")]


@pytest.mark.parametrize(
    ("call", "columns"),
    [
        ("tumbling_windows({}, time_col => 'ts', size => INTERVAL '10' MINUTES, {})", "closed"),
        ("hopping_windows({}, time_col => 'ts', size => '2 ms', advance => '1 ms', {})", "closed"),
        ("session_windows({}, time_col => 'ts', gap => '1 hour', {})", "session_timeout"),
        (
            "count_windows({}, order_col => 'at', size => 3, advance => 2, short_first => TRUE,{})",
            "window_start",
        ),
        (
            (
                "sliding_windows({}, time_col => 'ts', time_difference => '1 ms', "
                "offset_col => 'at', source_partition_col => 'user', {})"
            ),
            "closed",
        ),
    ],
)
def test_every_function(spark: SparkSession, events: DataFrame, call: str, columns: str) -> None:
    del events
    of = "aggregates => 'avg(amount) as mean, median(amount), percentile(amount, 0.25)'"
    found = wp.sql(spark, f"SELECT * FROM {call.format('TABLE(events)', of)}")  # noqa: S608
    assert {columns, "mean", "median_amount", "percentile_amount_0_25"} <= set(found.columns)


def test_an_aggregate_may_have_an_expression_and_a_condition(
    spark: SparkSession, events: DataFrame
) -> None:
    """Rule G1: as `.where` and a Column of the library; commas and brackets in quotes stay."""
    windows = SlidingWindows.of_time_difference_and_grace("10 minutes", "0 seconds")
    expected = (
        wp.windowed(events, windows)
        .by("user")
        .event_time("ts")
        .agg(
            count().where("user <> 'x,)'").alias("n"),
            sum_(F.col("amount") * 2 + 1).alias("total"),
            wp.max_("amount").where("amount < 50"),
        )
    )
    aggregates = (
        "count(*) where user <> \\'x,)\\' AS n, sum(amount * 2 + 1) AS total, "
        "max(amount) where amount < 50"
    )
    query = SLIDING.replace("count(*), sum(amount)", aggregates)
    found = wp.sql(spark, f"SELECT * FROM {query}")  # noqa: S608
    assert found.columns == expected.columns
    assert sorted(map(repr, found.collect())) == sorted(map(repr, expected.collect()))


@pytest.mark.parametrize(
    ("query", "refusal"),
    [
        (SLIDING.replace("'ts'", "'tss'"), "sliding_windows: there is no column 'tss'"),
        (SLIDING.replace("sum(", "total("), "unknown aggregate 'total'; did you mean 'sum'?"),
        (
            SLIDING.replace("sum(amount)", "sum(amount * 2)"),
            "'sum(amount * 2)' has no name; give it one, as in 'sum(amount * 2) AS total'",
        ),
        (
            SLIDING.replace("time_difference", "size"),
            "sliding_windows: has no argument 'size'; use",
        ),
        (SLIDING.replace("'10 minutes'", "'0 ms'"), "time_difference: '0 seconds' must be above"),
        (SLIDING.replace("'10 minutes'", "10"), "time_difference: must be text, not 10"),
        (SLIDING.replace("time_col => 'ts', ", ""), "sliding_windows: 'time_col' is missing"),
        (
            SLIDING.replace("grace", "source_partition_col").replace("0 seconds", "user"),
            "source_partition_col needs offset_col",
        ),
        (
            "count_windows(TABLE(events), order_col => 'at', size => '3', aggregates => 'sum(at)')",
            "count_windows: size: must be a whole number of rows, not '3'",
        ),
    ],
)
def test_mistakes_in_a_call(
    spark: SparkSession, events: DataFrame, query: str, refusal: str
) -> None:
    """Rule F3: each names the function and the argument."""
    del events
    with pytest.raises(ValueError, match="_windows: ") as refused:
        wp.sql(spark, f"SELECT * FROM {query}")  # noqa: S608
    assert refusal in str(refused.value)


def test_a_view_of_a_call_is_refused(spark: SparkSession, events: DataFrame) -> None:
    """Spark would read the view's text again, without these functions."""
    del events
    with pytest.raises(ValueError, match="a view stores its text"):
        wp.sql(spark, f"CREATE TEMPORARY VIEW v AS SELECT * FROM {SLIDING}")  # noqa: S608


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("SELECT * FROM HOP(TABLE ev, DESCRIPTOR(ts), INTERVAL 5 MINUTES, INTERVAL 1 HOUR)", "HOP"),
        ("SELECT * FROM slide(TABLE(ev), 'ts')", "slide"),
        ("SELECT * FROM slding_windows(TABLE(ev), time_col => 'ts')", "slding_windows"),
        ("SELECT key FROM ev GROUP BY TUMBLE(ts, INTERVAL 1 HOUR), key", "TUMBLE"),
    ],
)
def test_a_function_that_is_not_there_lists_those_that_are(
    spark: SparkSession, query: str, name: str
) -> None:
    spark.sql("SELECT 'k' AS key, current_timestamp() AS ts").createOrReplaceTempView("ev")
    with pytest.raises(ValueError, match="there is no window function") as raised:
        wp.sql(spark, query)
    assert f"no window function {name!r}; use one of tumbling_windows, " in str(raised.value)


def test_other_errors_of_a_query_are_sparks(spark: SparkSession) -> None:
    with pytest.raises(AnalysisException, match="nowhere"):
        wp.sql(spark, "SELECT * FROM nowhere")
