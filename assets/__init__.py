"""The assets of this project: one asset for each table of each pipeline."""
