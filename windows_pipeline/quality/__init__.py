"""Checks of the windows' invariants, by Great Expectations on Spark."""
