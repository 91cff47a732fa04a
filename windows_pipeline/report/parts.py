"""Parts of the page: sections, tables, figures, and notes on what is left out."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import date

from windows_pipeline.text.markup import Markup, tag

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_STEP = 1024
_FEW = 3
"""A table of more columns scrolls on a narrow screen."""


def section(id_: str, title: object, *parts: object) -> Markup:
    """A part of the page that links lead to."""
    return tag("section", tag("h2", title), *parts, id=id_)


def grid(
    columns: Sequence[str], rows: Iterable[Sequence[object]], numbers: Collection[int] = ()
) -> Markup:
    """A table, which scrolls where it is wider than the page.

    Args:
        columns: The names of the columns.
        rows: The cells of each row.
        numbers: Which columns are numbers.
    """
    kinds = ["number" if at in numbers else None for at in range(len(columns))]
    named = zip(columns, kinds, strict=True)
    head = tag("tr", *(tag("th", name, class_=kind, scope="col") for name, kind in named))
    body = (
        tag("tr", *(tag("td", cell, class_=kind) for cell, kind in zip(row, kinds, strict=True)))
        for row in rows
    )
    many = "many" if len(columns) > _FEW else None
    table = tag("table", tag("thead", head), tag("tbody", *body), class_=many)
    return tag("div", table, class_="wide", tabindex=0)


def figure(plot: Markup, caption: object) -> Markup:
    """A drawing with its caption."""
    wide = tag("div", plot, class_="wide", tabindex=0)
    return tag("figure", tag("figcaption", caption), wide)


def left_out(what: str, read_from: date | None) -> list[Markup]:
    """The note that only the newest days were read; none if all were."""
    if read_from is None:
        return []
    text = f"{what}: only arrival days from {read_from} on were read; older ones are left out."
    return [tag("p", text, class_="note")]


def size_text(size_bytes: int) -> str:
    """A size, such as `4.2 MiB`."""
    size, unit = float(size_bytes), 0
    while size >= _STEP and unit < len(_UNITS) - 1:
        size, unit = size / _STEP, unit + 1
    return f"{size:.0f} B" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"
