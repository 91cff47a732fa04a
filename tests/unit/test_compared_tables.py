"""The comparison of two versions' tables finds each difference, and only differences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tools.compare import Comparison

BEFORE: dict[str, list[Any]] = {"key": ["a", "b"], "sum": [0.0, 2.0], "stream": ["x", "y"]}
SENT = {"id": "1", "target": "people", "at": "now"}


def project(
    folder: Path,
    rows: dict[str, list[Any]],
    name: str,
    *sent: dict[str, str],
    windows: Sequence[str] = ("a",),
) -> Path:
    tables = folder / "warehouse" / "p" / "w"
    write_deltalake(tables / name, pa.table(rows))
    write_deltalake(tables / "final_windows", pa.table({"key": windows}))
    lines = "".join(f"{json.dumps(one)}\n" for one in (SENT, *sent))
    (folder / "warehouse" / "p" / "_delivered.jsonl").write_text(lines)
    return folder


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ({"key": ["b", "a"], "sum": [2.0, 0.0], "stream": ["v", "w"]}, ()),
        ({"key": ["a", "b"], "sum": [-0.0, 2.0]}, ("only before", "only after")),
        ({"key": ["a", "b", "b"], "sum": [0.0, 2.0, 2.0]}, ("only after",)),
        ({"key": ["a", "b"], "sum": [0, 2]}, ("int64",)),
        ({"key": ["a", "b"]}, ("sum",)),
        ({"key": ["a", "b"], "sum": [0.0, 2.0], "more": [1, 2]}, ("more",)),
    ],
)
def test_rows_differ_in_any_bit_but_not_in_their_order(
    tmp_path: Path, rows: dict[str, list[Any]], found: tuple[str, ...]
) -> None:
    comparison = Comparison({"log.stream": "random", "at": "a time"}, {})
    before = project(tmp_path / "before", BEFORE, "log")
    after = project(tmp_path / "after", rows, "log")
    texts = [*comparison.differing(before, after)]
    assert len(texts) == len(found)
    assert all(word in text for word, text in zip(found, texts, strict=True))


def test_names_that_changed_on_purpose_are_named_and_a_message_sent_twice_is_found(
    tmp_path: Path,
) -> None:
    before = project(tmp_path / "before", BEFORE, "log")
    renamed = {"key": BEFORE["key"], "total": BEFORE["sum"]}
    after = project(tmp_path / "after", renamed, "arrivals", SENT | {"at": "later"})
    apart = {"stream": "gone", "at": "a time"}
    plain = [*Comparison(apart, {}).differing(before, after)]
    assert plain[:2] == ["p/w/arrivals: only after", "p/w/log: only before"]
    named = [*Comparison(apart, {"log": "arrivals", "sum": "total"}).differing(before, after)]
    assert [text.split(":")[0] for text in named] == ["only after", "twice"]


def test_two_projects_without_a_final_window_are_not_equal(tmp_path: Path) -> None:
    """Two runs that computed nothing agree in all that they have."""
    comparison = Comparison({"stream": "random"}, {})
    sides = [project(tmp_path / one, BEFORE, "log", windows=[]) for one in ("before", "after")]
    assert [*comparison.differing(*sides)] == ["no final window has a row"]
