"""The two instants beyond all event times, in milliseconds."""

from __future__ import annotations

NEVER_MS = -(2**62)
"""Earlier than every event time: at this time nothing has arrived and no window is closed."""

END_OF_INPUT_MS = -NEVER_MS
"""Later than every event time: the watermark once the whole input has been read."""
