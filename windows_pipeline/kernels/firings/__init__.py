"""Finds the firings that a trigger causes, and the records in each firing's pane."""
