"""Columns that are added to each landed record."""

from __future__ import annotations

BLOCK = "_block"
"""The start of the part of the file that the record's task read (bigint, bytes)."""

LINE = "_line"
"""The record's number among all records that its task read (bigint)."""

AMBIGUOUS = "_ambiguous"
"""Whether the record has a local time that occurs twice; only where a column has a zone."""
