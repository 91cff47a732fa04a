"""Whether a stream's checkpoint fits its tables, and what to do where it does not."""

from __future__ import annotations

from collections.abc import Callable

from windows_pipeline.text.problems import RefusedError


class StreamBehindError(RefusedError):
    """The stream's checkpoint does not fit the tables; the message says why and names the fix."""


def lacking(checkpoint: str, last: int, is_there: Callable[[str], bool]) -> str | None:
    """What a checkpoint lacks for a stream to resume; None if it lacks nothing.

    Args:
        checkpoint: The checkpoint's folder.
        last: The newest micro-batch in the arrival log.
        is_there: Whether a file exists.
    """
    offsets = f"{checkpoint}/offsets/{last}"
    has_metadata, has_offsets = is_there(f"{checkpoint}/metadata"), is_there(offsets)
    if has_offsets:
        return None if has_metadata else f"{checkpoint}/metadata is missing"
    if has_metadata:
        return (
            f"its tables end with micro-batch {last}, which its checkpoint must have: {offsets} "
            "is missing"
        )
    return (
        f"its tables end with micro-batch {last} of a stream, and {checkpoint} holds no checkpoint "
        "of that stream"
    )
