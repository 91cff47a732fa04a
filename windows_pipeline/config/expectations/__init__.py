"""Expectations of columns that a check of a pipeline's own may name, and their SQL."""
