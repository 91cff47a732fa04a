"""The frame and colours of all drawings, and their form as a picture outside a page."""

from __future__ import annotations

import base64

from windows_pipeline.text.markup import Markup, tag

WIDTH = 720
"""The width of drawings, in pixels; a page scales them."""

STYLE = """
svg.plot{--ink:#1f2733;--soft:#667085;--grid:#e3e7ee;--line:#2563a8;--fill:#9dbfe3;
  --bad:#c8321f;--limit:#9a6700;--back:#fff;font:12px/1.3 system-ui,sans-serif;color:var(--ink)}
@media (prefers-color-scheme:dark){svg.plot{--ink:#e6e9ef;--soft:#9aa4b5;--grid:#303845;
  --line:#7cb4f0;--fill:#3d6391;--bad:#ff7b66;--limit:#e0b04b;
  --back:#0f141a}
}
svg.plot text{fill:var(--ink)}
svg.plot .soft{fill:var(--soft)}
svg.plot .grid{stroke:var(--grid)}
svg.plot .line{stroke:var(--line);fill:none;stroke-width:1.3}
svg.plot .bar{fill:var(--fill)}
svg.plot .bad{fill:var(--bad)}
svg.plot .span{stroke:var(--bad);stroke-width:8;stroke-linecap:butt}
svg.plot .limit{stroke:var(--limit);stroke-width:1.5;stroke-dasharray:5 4}
svg.plot .limit-text{fill:var(--limit);stroke:var(--back);stroke-width:4px;paint-order:stroke}
svg.plot .paper{fill:var(--back)}
"""


def drawing(height: int, label: str, *parts: object) -> Markup:
    """A drawing; `STYLE` must be on the page around it.

    Args:
        height: Its height, in pixels.
        label: What it shows, for people who do not see it.
        parts: Its elements.
    """
    paper = tag("rect", class_="paper", width=WIDTH, height=height)
    return tag(
        "svg",
        tag("title", label),
        paper,
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        class_="plot",
        viewBox=f"0 0 {WIDTH} {height}",
        width=WIDTH,
        height=height,
        role="img",
    )


def picture(plot: Markup, name: str) -> str:
    """A drawing as a picture in Markdown, which needs no style around it.

    Args:
        plot: The drawing.
        name: A word of letters that names the picture.
    """
    head, _, rest = plot.partition(">")
    alone = f"{head}><style>{STYLE}</style>{rest}"
    data = base64.b64encode(alone.encode()).decode("ascii")
    return f"![{name}](data:image/svg+xml;base64,{data})"


def text(at_x: float, at_y: float, shown: str, class_: str = "", anchor: str = "start") -> Markup:
    """A text whose baseline begins, ends or has its middle at a position."""
    return tag(
        "text", shown, x=at_x, y=at_y, class_=class_ or None,
        text_anchor=None if anchor == "start" else anchor,
    )  # fmt: skip


def tick_label(at_x: float, at_y: float, shown: str) -> Markup:
    """The label of a position on an axis, within the drawing."""
    at_end = at_x > WIDTH - 40
    return text(WIDTH - 2 if at_end else at_x, at_y, shown, "soft", "end" if at_end else "middle")


def straight(x1: float, y1: float, x2: float, y2: float, class_: str = "grid") -> Markup:
    """A straight line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)
