"""Shows a description in Markdown as HTML: paragraphs, lists, emphasis, code and links."""

from __future__ import annotations

import re
from collections.abc import Iterator

from windows_pipeline.text.markup import Markup, joined, tag

_INLINE = re.compile(
    r"\\(?P<literal>[^\w\s])"
    r"|`(?P<code>[^`]+)`"
    r"|\[(?P<text>[^\]]+)\]\((?P<address>https?://[^\s)]+)\)"
    r"|\*\*(?P<strong>[^*\s][^*]*)\*\*|(?<!\w)__(?P<strong_>[^_\s][^_]*)__(?!\w)"
    r"|\*(?P<em>[^*\s][^*]*)\*|(?<!\w)_(?P<em_>[^_\s][^_]*)_(?!\w)"
)
_ITEM = re.compile(r"\s*[-*+]\s+")
_HEADING = re.compile(r"#{1,6}\s+")


def rendered(text: str) -> Markup:
    """The text's blocks, one after the other; all other Markdown and HTML shows as it is."""
    return joined(map(_block, filter(None, map(str.strip, re.split(r"\n\s*\n", text)))))


def _block(text: str) -> Markup:
    lines = text.splitlines()
    if all(_ITEM.match(line) for line in lines):
        return tag("ul", *(tag("li", *_inline(_ITEM.sub("", line, count=1))) for line in lines))
    if len(lines) == 1 and _HEADING.match(text):
        return tag("p", tag("b", *_inline(_HEADING.sub("", text, count=1))))
    return tag("p", *_inline(" ".join(lines)))


def _inline(text: str) -> Iterator[object]:
    end = 0
    for found in _INLINE.finditer(text):
        yield text[end : found.start()]
        yield _span(found)
        end = found.end()
    yield text[end:]


def _span(found: re.Match[str]) -> object:
    if found["literal"]:
        return found["literal"]
    if found["code"]:
        return tag("code", found["code"])
    if found["text"]:
        return tag("a", found["text"], href=found["address"], rel="noreferrer")
    strong = found["strong"] or found["strong_"]
    return tag("b", *_inline(strong)) if strong else tag("i", *_inline(found["em"] or found["em_"]))
