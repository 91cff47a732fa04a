"""The kinds of window that a pipeline's file can name, and their models."""

from __future__ import annotations

from typing import get_args

from windows_pipeline.config.windows.row_kinds import (
    CountKind,
    SessionRowsKind,
    SlideRowsKind,
    TumbleRowsKind,
)
from windows_pipeline.config.windows.window_kinds import (
    ForwardKind,
    HoppingKind,
    SessionKind,
    SlidingKind,
    TumblingKind,
    Windows,
)
from windows_pipeline.text.problems import nearest

AnyWindows = (
    SlidingKind
    | HoppingKind
    | TumblingKind
    | SessionKind
    | ForwardKind
    | SlideRowsKind
    | TumbleRowsKind
    | SessionRowsKind
    | CountKind
)

KINDS: dict[str, type[Windows]] = {
    name: model
    for model in get_args(AnyWindows)
    for name in get_args(model.model_fields["kind"].annotation)
}
"""The model of each kind, by the kind's name in the file."""


def unknown_kind(kind: object) -> str:
    """Returns the error text for a kind that is not in `KINDS`: what is wrong, and the fix."""
    names = [repr(name) for name in KINDS]
    known = f"use {', '.join(names[:-1])} or {names[-1]}"
    fix = nearest(kind, KINDS, known) if isinstance(kind, str) else known
    return f"is not a known kind of window; {fix}"
