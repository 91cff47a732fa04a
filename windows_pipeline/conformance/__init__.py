"""Runs golden cases through the Spark engine and compares the answers."""
