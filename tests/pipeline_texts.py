"""The flights pipeline's file, and changes of its text, for tests."""

from __future__ import annotations

from pathlib import Path

from windows_pipeline.config import Pipeline, load_pipeline

PIPELINES = Path(__file__).parent.parent / "pipelines"
FLIGHTS = (PIPELINES / "flights.yaml").read_text().partition("  by_hour:")[0]
"""Its first definition only, so that a text to change is there once."""


def load_text(folder: Path, text: str) -> Pipeline:
    file = folder / "flights.yaml"
    file.write_text(text)
    return load_pipeline(file)


def changed(old: str, new: str) -> str:
    assert FLIGHTS.count(old) == 1, f"{old!r} must be there once"
    return FLIGHTS.replace(old, new)
