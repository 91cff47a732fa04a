"""The public API: windows over any DataFrame, and in SQL."""
