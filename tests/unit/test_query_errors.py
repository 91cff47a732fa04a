"""What Spark says of a damaged checkpoint, in a line with its fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from windows_pipeline.config import load_pipeline
from windows_pipeline.streaming.query_errors import in_short

FLIGHTS = Path(__file__).parents[2] / "pipelines" / "flights.yaml"
CHECKPOINT = "s3a://lake/flights/_stream"


@pytest.mark.parametrize(
    ("file", "fix"),
    [
        ("commits/3", "delete it and the file .N.crc beside it, if there is one, then run"),
        ("offsets/3", "put the checkpoint back as it was"),
        ("sources/0/3", "put the checkpoint back as it was"),
    ],
)
def test_an_empty_file_that_spark_names_is_named_with_the_least_harmful_fix(
    file: str, fix: str
) -> None:
    """In an object store, where no checksum file says so before Spark does."""
    error = Exception(f"Failed to read log file {CHECKPOINT}/{file}. Incomplete log file")
    short = in_short(error, load_pipeline(FLIGHTS), CHECKPOINT)
    assert f"its checkpoint is damaged: {CHECKPOINT}/{file} is empty or cut; {fix}" in str(short)
