"""Finds the windows of records, and which records each window contains."""
