"""Runs golden cases through the Spark engine and compares its answers with the expected ones."""
