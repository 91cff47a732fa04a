"""Reports the mistakes in a settings file without its values, which may be secrets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from windows_pipeline.text.limits import shown
from windows_pipeline.text.problems import nearest
from windows_pipeline.text.yaml_text import Document

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

_HIDDEN = "the value is not shown"
_WANTED = {
    "arrival_ranges": "a whole number above zero, such as 200",
    "packages": 'a list of texts in quotes, such as ["organisation:module:version"]',
    "modules": "a list of names, such as [my_module]",
    "spark": "'name: value' lines, indented under it",
    "small_batches": "'name: value' lines, indented under it",
    "keep_plans": "true or false",
    "profile": "local",
}
_TEXT = "text in quotes"


def report(document: Document, errors: Iterable[ErrorDetails], fields: Iterable[str]) -> None:
    """Adds the mistakes that pydantic found to the document's problems, with line and fix."""
    known = list(fields)
    for details in errors:
        path = tuple(str(part) for part in details["loc"])
        if path in document.faulty:
            continue
        document.report(path, _text(path, details, known))


def _text(path: tuple[str, ...], details: ErrorDetails, known: list[str]) -> str:
    name = path[-1] if path else ""
    if details["type"] == "missing":
        return f"is missing; write '{name}: ...'"
    if details["type"] == "extra_forbidden":
        fix = nearest(name, known, f"remove it; the fields are {', '.join(known)}")
        return f"{shown(name)} is not a field here; {fix}"
    if details["type"] == "value_error":
        return str(details["ctx"]["error"])
    if details["input"] is None:
        return f"has no value; it must be {_wanted(path)}"
    return f"must be {_wanted(path)}; {_HIDDEN}"


def _wanted(path: tuple[str, ...]) -> str:
    return _WANTED.get(path[0], _TEXT) if len(path) == 1 else _TEXT
