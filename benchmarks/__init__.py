"""Measures windows_pipeline beside other engines, on the same work in the same run."""
