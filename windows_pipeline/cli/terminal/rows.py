"""Prints rows of a table that was read without Spark: as a grid, or as JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from rich import box
from rich.cells import cell_len
from rich.table import Table as Grid

from windows_pipeline.cli.terminal.console import CONSOLE, PlainConsole
from windows_pipeline.text.values import as_json, value_text

_MOST_WIDTH = 40
"""The most characters of a value that a terminal shows; a pipe gets whole values."""
_LEAST_COLUMNS = 2
_LEAST_WIDTH = 12
_GAP = 3
_MARGIN = 1


def print_grid(
    title: str,
    rows: pa.Table,
    first_columns: Sequence[str],
    *,
    newest_last: bool = True,
    console: PlainConsole = CONSOLE,
) -> None:
    """Prints rows as a grid that fits the terminal, without columns that have no value.

    Args:
        title: What the rows are.
        rows: The rows.
        first_columns: The columns that are shown first; a narrow terminal leaves others out.
        newest_last: Whether to print the last row first: of rows that are newest first, the newest
            then stands last, beside the prompt.
        console: The terminal or pipe that shows the rows.
    """
    if not rows.num_rows:
        console.print(f"{title}: no rows")
        return
    names = [*first_columns, *(name for name in rows.column_names if name not in first_columns)]
    step = -1 if newest_last else 1
    texts = {name: _texts(rows[name])[::step] for name in names}
    names = [name for name in names if any(texts[name])]
    widths = {name: max(map(cell_len, (name, *texts[name]))) for name in names}
    grid_console = console
    shown: Mapping[str, int | None] = dict.fromkeys(names)
    if console.is_terminal:
        of_text = {name for name in names if pa.types.is_string(rows.schema.field(name).type)}
        cut = {name: min(width, _MOST_WIDTH) for name, width in widths.items()}
        shown = _fitting(cut, of_text, console.width)
    else:
        whole = sum(widths.values()) + _GAP * len(names) + _MARGIN
        grid_console = PlainConsole(file=console.file, width=whole)
    console.print(title)
    grid = Grid(box=box.SIMPLE)
    for name, most_width in shown.items():
        grid.add_column(name, no_wrap=True, overflow="ellipsis", max_width=most_width)
    for row in zip(*(texts[name] for name in shown), strict=True):
        grid.add_row(*row)
    grid_console.print(grid)
    if any(pa.types.is_timestamp(rows.schema.field(name).type) for name in shown):
        console.print("times are UTC")
    if len(shown) < len(names):
        left_out = ", ".join(names[len(shown) :])
        console.print(f"left out: {left_out}; --json prints all columns")


def print_json(tables: Sequence[tuple[str | None, pa.Table]], *, newest_last: bool = True) -> None:
    """Prints the rows of tables as one JSON list, one row per line.

    Args:
        tables: Rows by window definition. Where a definition is given, `_windows` names it; no
            column of a table begins with an underscore.
        newest_last: Whether to print the last row of a table first; see `print_grid`.
    """
    step = -1 if newest_last else 1
    lines = [
        json.dumps(row if windows is None else {"_windows": windows, **row}, allow_nan=False)
        for windows, rows in tables
        for row in json_rows(rows)[::step]
    ]
    listed = ",\n".join(lines)
    # Spark's output goes to a log meanwhile, and Python's with it.
    CONSOLE.file.write(f"[\n{listed}\n]\n" if lines else "[]\n")


def json_rows(rows: pa.Table) -> list[dict[str, object]]:
    """The rows as JSON has them, by column."""
    values = {name: _json_values(rows[name]) for name in rows.column_names}
    return [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]


def _fitting(widths: Mapping[str, int], of_text: Collection[str], width: int) -> dict[str, int]:
    """The first columns that fit a width, and at least a few, with the width of each.

    The last column is cut to the rest of the width, if it holds text and enough of it fits.
    """
    found: dict[str, int] = {}
    left = width - _MARGIN
    for name, needed in widths.items():
        left -= needed + _GAP
        if left < 0 and len(found) >= _LEAST_COLUMNS:
            if name in of_text and left + needed >= max(_LEAST_WIDTH, cell_len(name)):
                found[name] = left + needed
            break
        found[name] = needed
    return found


def _texts(column: pa.ChunkedArray) -> list[str]:
    """The values as texts of cells; times are in UTC."""
    if pa.types.is_timestamp(column.type):
        return [(text or "").removesuffix(".000") for text in _times(column, " ", "")]
    return [cell(value) for value in column.to_pylist()]


def cell(value: object) -> str:
    """A value as the text of a cell; nothing for null."""
    return "" if value is None else value_text(value, thousands="")


def _json_values(column: pa.ChunkedArray) -> list[object]:
    if pa.types.is_timestamp(column.type):
        return list(_times(column, "T", "Z"))
    return [as_json(value) for value in column.to_pylist()]


def _times(column: pa.ChunkedArray, between: str, zone: str) -> list[str | None]:
    """Instants as text; Python's datetime would end with the year 9999."""
    instants = column.cast(pa.timestamp("ms"), safe=False)
    found: list[str | None] = pc.strftime(instants, f"%Y-%m-%d{between}%H:%M:%S").to_pylist()
    return [None if text is None else f"{text}{zone}" for text in found]
