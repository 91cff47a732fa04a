"""Whoever starts runs sees that a command writes a pipeline's tables, and that it was killed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.pipeline_texts import FLIGHTS, load_text
from windows_pipeline.storage.writer_lock import is_writing, writing

_HOLDER = """
import sys
from pathlib import Path
from windows_pipeline.config import load_pipeline
from windows_pipeline.storage.writer_lock import writing
with writing(load_pipeline(Path(sys.argv[1])), sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_commands_side_by_side_hold_it(tmp_path: Path) -> None:
    pipeline, warehouse = load_text(tmp_path, FLIGHTS), str(tmp_path / "warehouse")
    assert not is_writing(pipeline, warehouse)
    with writing(pipeline, warehouse):
        with writing(pipeline, warehouse):
            assert is_writing(pipeline, warehouse)
        assert is_writing(pipeline, warehouse)
    assert not is_writing(pipeline, warehouse)


def test_a_killed_command_holds_it_no_more(tmp_path: Path) -> None:
    pipeline, warehouse = load_text(tmp_path, FLIGHTS), str(tmp_path / "warehouse")
    (file,) = tmp_path.glob("*.yaml")
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLDER, str(file), warehouse],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert is_writing(pipeline, warehouse)
    finally:
        holder.kill()
        holder.wait()
    assert not is_writing(pipeline, warehouse)


def test_an_object_store_has_no_lock(tmp_path: Path) -> None:
    pipeline = load_text(tmp_path, FLIGHTS)
    with writing(pipeline, "s3a://bucket/warehouse"):
        assert not is_writing(pipeline, "s3a://bucket/warehouse")
