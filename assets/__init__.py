"""The assets of this project: one a table of each pipeline."""
