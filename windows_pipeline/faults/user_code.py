"""Errors of a window function of the user's, which ends the step that calls it (rule E3)."""

from __future__ import annotations

import re

from windows_pipeline.faults.chain import innermost
from windows_pipeline.faults.fault import Fault

_FAILED = re.compile(
    r"(?:RuntimeError|TypeError): "
    r"(?P<text>\w+:\w+ (?:failed in|returned) .*\bfiring \d+ of the window of key .*)"
)
"""Matches what the kernel of window functions raises in a worker, with function and firing."""
_FIX = (
    "correct the function, then: windows-pipeline rebuild PIPELINE, as an edited module is another "
    "definition"
)


def of_user_code(error: BaseException) -> Fault | None:
    """The fault of a window function that raised, or returned what is no row."""
    found = _FAILED.match(innermost(error))
    return None if found is None else Fault(found["text"], fix=_FIX)
