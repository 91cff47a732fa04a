"""How windows are computed, on Spark."""
