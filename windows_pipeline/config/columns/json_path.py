"""Where a record holds a value: a path of names, as in `$.card.country`."""

from __future__ import annotations

import re

from windows_pipeline.text.limits import require_short

Path = tuple[str, ...]
_MOST_NAMES = 20
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
_STEP = re.compile(
    r"""\.(?P<plain>[A-Za-z_][A-Za-z0-9_-]*)|\['(?P<single>[^'\\]+)'\]|\["(?P<double>[^"\\]+)"\]""",
    re.ASCII,
)
_HELP = "write names after points, as in $.card.country, or in quotes, as in $['card no'].country"


def parse_path(text: str) -> Path:
    """Reads a path: `$`, then a name for each level.

    A name is `.name` (letters, digits, _ and -), or any text without a backslash in brackets and
    quotes: ``['a.b']`` or ``["it's"]``.

    Raises:
        ValueError: The text is not a path; the message says what is wrong, and the fix.
    """
    require_short(text)
    if not text.startswith("$"):
        raise ValueError(f"is not a path; {_HELP}")
    names: list[str] = []
    position = 1
    while position < len(text):
        step = _STEP.match(text, position)
        name = next(filter(None, step.groups()), "") if step else ""
        if step is None or not name.isprintable():
            raise ValueError(f"has {text[position : position + 20]!r} {_why(text[position:])}")
        names.append(name)
        position = step.end()
    if not names:
        raise ValueError(f"names no field; {_HELP}")
    if len(names) > _MOST_NAMES:
        raise ValueError(f"has more than {_MOST_NAMES} names; read a field further up")
    return tuple(names)


def path_text(path: Path) -> str:
    """Writes a path in its shortest form."""
    return "$" + "".join(map(_step_text, path))


def _step_text(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return f".{name}"
    return f'["{name}"]' if "'" in name else f"['{name}']"


def _why(rest: str) -> str:
    if rest.startswith("..") or "*" in rest[:2]:
        return f"in it, but a path has no wildcards: one column reads one field; {_HELP}"
    if re.match(r"\[-?\d", rest):
        return "in it, but a path cannot read an element of a list; read the field as a string"
    return f"where a name must be; {_HELP}"
