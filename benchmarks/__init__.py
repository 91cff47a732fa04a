"""Measures windows_pipeline against other engines, on the same work in the same run."""
