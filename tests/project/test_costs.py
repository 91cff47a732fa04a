"""What a small day, a micro-batch and a correction cost, in counts that no load changes.

A change that adds a query, a job, a commit or a listing of a folder of landed files changes the
number here, where a review sees it. Where a step needs fewer, lower the number. A day lists each
folder once, and its own folder again, as no file may change while it is read.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support import costs

COSTS = {
    "day": {"queries": 16, "jobs": 15, "commits": 9, "listings": 5},
    "micro_batch": {"queries": 18, "jobs": 30, "commits": 6, "listings": 10},
    "correction": {"queries": 42, "jobs": 33, "commits": 7, "listings": 4},
}


def test_small_arrival_units_cost_what_they_did(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    ended = subprocess.run(
        [sys.executable, costs.__file__],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, (ended.stdout + ended.stderr)[-5000:]
    assert json.loads((tmp_path / costs.RESULT).read_text()) == COSTS
