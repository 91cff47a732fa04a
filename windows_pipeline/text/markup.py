"""Writes HTML and SVG; any text that this module did not make is escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from windows_pipeline.text.values import printable

_EMPTY = frozenset(("br", "circle", "line", "meta", "path", "rect"))


class Markup(str):
    """A text that is markup: `plain_text`, `tag` and `joined` make it, and escape other texts."""

    __slots__ = ()


def plain_text(text: object) -> Markup:
    """The markup that shows a text as it is."""
    if isinstance(text, Markup):
        return text
    return Markup(escape(printable(str(text))))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element.

    Args:
        name: The element's name.
        children: The content; everything but `Markup` is escaped.
        attributes: The attributes. In a name, an underscore at the end is dropped (`class_`), and
            any other becomes a hyphen. An attribute that is None is left out.
    """
    written = "".join(
        f' {attribute.removesuffix("_").replace("_", "-")}="{plain_text(_attribute(value))}"'
        for attribute, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY and not children:
        return Markup(f"<{name}{written}/>")
    return Markup(f"<{name}{written}>{joined(children)}</{name}>")


def joined(parts: Iterable[object]) -> Markup:
    """Several parts, one after the other; everything but `Markup` is escaped."""
    return Markup("".join(map(plain_text, parts)))


def _attribute(value: object) -> str:
    """A number with two decimals at most, so that drawings stay small."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)
