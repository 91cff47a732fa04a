"""The columns that a reader adds to each landed record."""

from __future__ import annotations

BLOCK = "_block"
"""Where in its file the part begins that the record was read with (bigint, bytes)."""

LINE = "_line"
"""The record's number among those that its task read (bigint)."""
