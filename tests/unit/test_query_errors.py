"""What Spark says of a damaged checkpoint, in a line with its fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from windows_pipeline.config import load_pipeline
from windows_pipeline.streaming.query_errors import in_short

FLIGHTS = Path(__file__).parents[2] / "pipelines" / "flights.yaml"
CHECKPOINT = "s3a://lake/flights/_stream"


@pytest.mark.parametrize(
    ("file", "what"),
    [
        (
            "commits/3",
            "a file of its checkpoint cannot be read: {}; it only says that a micro-batch",
        ),
        ("offsets/3", "its checkpoint, {}, cannot be read (Failed to read log file {}"),
        ("sources/0/3", "its checkpoint, {}, cannot be read (Failed to read log file {}"),
    ],
)
def test_a_file_that_spark_cannot_read_is_named_with_the_least_harmful_fix(
    file: str, what: str
) -> None:
    error = Exception(f"Failed to read log file {CHECKPOINT}/{file}. Incomplete log file")
    short = str(in_short(error, load_pipeline(FLIGHTS), CHECKPOINT))
    named = what.format(*([CHECKPOINT] * (what.count("{}") - 1)), f"{CHECKPOINT}/{file}")
    assert named in short
    assert ("put the checkpoint back as it was" in short) == (file != "commits/3")
