"""Checks: rules over published tables, and recounts of results by other code."""
