"""The pages' programs run, in order and in one namespace a page, and print what the pages say."""

from __future__ import annotations

import ast
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from pyspark.sql import DataFrame, SparkSession

import windows_pipeline as wp
from tests.support.doc_blocks import PROGRAMS, Block, blocks_of, name_of, pages_with


@pytest.fixture
def names(spark: SparkSession) -> dict[str, Any]:
    """What pages use without making it: a session, a few events, a secret of their reader's."""
    events = spark.createDataFrame(
        [("JFK", "ann", datetime(2026, 1, 1, 12, minute), 120, 2.5, minute) for minute in (0, 50)],
        "airport string, user string, ts timestamp, amount bigint, delay double, offset bigint",
    )
    events.createOrReplaceTempView("events")
    return {"spark": spark, "events": events, "secret": "s", "__name__": "__main__"}


@pytest.mark.parametrize("page", pages_with(*PROGRAMS), ids=name_of)
def test_the_examples_of_a_page_run(
    page: Path,
    names: dict[str, Any],
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each prints what the text block after it says; a DataFrame that it ends with has rows.

    Among them are KIP-450's 7 windows (rule B4), a user's aggregate (G1), silences (C1) and
    cogrouped streams. Those that read tables find those of three days of flights.
    """
    reads_tables = "warehouse/" in "".join(block.code for block in blocks_of(page))
    project = request.getfixturevalue("full_run").folder if reads_tables else tmp_path
    settings = {"warehouse": "warehouse", "landing": ".", "pipelines": "pipelines", "spark": {}}
    (project / "settings.yaml").write_text(yaml.safe_dump(settings))
    monkeypatch.chdir(project)
    for block in (one for one in blocks_of(page) if one.language in PROGRAMS):
        result = run(block, names)
        if isinstance(result, DataFrame) and not result.isStreaming:
            assert result.collect(), f"{block}: the result has no rows"
        printed = capsys.readouterr().out
        if block.expected is not None:
            assert printed.strip() == block.expected.strip(), str(block)


def run(block: Block, names: dict[str, Any]) -> object:
    """Runs a block in the namespace; returns the value of its last expression, if it ends so."""
    if block.language == "sql":
        result = wp.sql(names["spark"], block.code.strip().removesuffix(";"))
        if block.expected is not None:
            result.show()
        return result
    statements, last = ast.parse(block.code).body, None
    if isinstance(statements[-1], ast.Expr):
        last = ast.Expression(statements.pop().value)  # type: ignore[attr-defined]
    where = str(block)
    exec(compile(ast.Module(statements, []), where, "exec"), names)  # noqa: S102  the page's own
    return last and eval(compile(last, where, "eval"), names)


def test_a_page_shows_the_table_that_its_example_shows() -> None:
    blocks = [block for page in pages_with("python") for block in blocks_of(page)]
    showing = [block for block in blocks if block.code.rstrip().endswith(".show()")]
    assert [str(block) for block in showing if block.expected is None] == []
    assert showing
