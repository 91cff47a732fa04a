"""The assets of a pipeline: how they compute, and what Dagster shows of them."""
