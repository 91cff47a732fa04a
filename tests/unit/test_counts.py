"""Messages name a single thing in the singular."""

from __future__ import annotations

import pytest

from windows_pipeline.text.counts import counted


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (1200, "1,200 files")]
)
def test_a_number_has_its_noun(number: int, text: str) -> None:
    assert counted(number, "file") == text


def test_a_noun_may_have_another_plural() -> None:
    assert counted(2, "batch", "batches") == "2 batches"
