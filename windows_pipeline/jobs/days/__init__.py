"""Arrival days: which to ingest and compute, in which order, and how to remove a day."""
