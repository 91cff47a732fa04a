"""A grid of rows fits the terminal: the user's columns first, long texts cut."""

from __future__ import annotations

import io

import pyarrow as pa
import pytest

from windows_pipeline.cli.terminal.console import PlainConsole
from windows_pipeline.cli.terminal.rows import print_grid


def printed(table: pa.Table, width: int, *first: str) -> list[str]:
    """What a terminal of a width shows."""
    out = io.StringIO()
    console = PlainConsole(file=out, width=width, force_terminal=True, color_system=None)
    print_grid("t", table, first, console=console)
    return out.getvalue().splitlines()


TABLE = pa.table(
    {
        "late_column": ["last", "last"],
        "text": ["x" * 200, "newest"],
        "empty": pa.nulls(2, pa.string()),
        "number": [1.23456, 1e-9],
        "key": ["[red]k[/]", "日本"],
    }
)


@pytest.mark.parametrize("width", [60, 80, 100, 300])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    lines = printed(TABLE, width, "key", "text")
    assert max(map(len, lines)) <= width
    assert [line for line in lines if "…" in line] != []
    assert "[red]k[/]" in "".join(lines)


def test_the_first_columns_stay_and_others_are_named() -> None:
    lines = printed(TABLE, 60, "key", "text")
    head = next(line.split() for line in lines if "key" in line)
    assert head[:2] == ["key", "text"]
    assert "left out: late_column, number; --json prints all columns" in "".join(lines)
    assert "empty" not in "".join(lines)


def test_a_text_that_fits_in_part_is_cut_to_what_is_left() -> None:
    """So a rejected record's reason, file and a part of its text fit 80 characters."""
    table = pa.table(
        {
            "reason": ["malformed"],
            "file": ["2013-03-08/flights.jsonl"],
            "original": ["x" * 200],
            "arrival_unit": [1],
        }
    )
    lines = printed(table, 80, "reason", "file", "original")
    assert max(map(len, lines)) <= 80
    shown = next(line for line in lines if "malformed" in line)
    assert shown.split()[:2] == ["malformed", "2013-03-08/flights.jsonl"]
    assert shown.rstrip().endswith("x…")
    assert "left out: arrival_unit; --json" in "".join(lines)


def test_the_newest_row_is_last_and_small_numbers_stay() -> None:
    lines = printed(TABLE, 300, "number")
    first, last = (line.split()[0] for line in lines if line.strip().startswith("1"))
    assert (first, last) == ("1e-09", "1.235")
