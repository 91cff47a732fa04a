"""Times become milliseconds, and timestamps again, in three modules only."""

from __future__ import annotations

import re
from pathlib import Path

LIBRARY = Path(__file__).parents[2] / "windows_pipeline"
# A user's frame, a landed record, a table.
BOUNDARIES = {"dataframe/inputs.py", "sources/validation.py", "storage/instants.py"}
CONVERSION = re.compile(r"F\.(unix|timestamp)_(millis|micros|seconds)\b")


def test_only_the_boundaries_convert_times() -> None:
    found = {
        str(path.relative_to(LIBRARY))
        for path in LIBRARY.rglob("*.py")
        if CONVERSION.search(path.read_text())
    }
    assert found == BOUNDARIES, "convert by windows_pipeline.storage.instants"
