"""The aggregates of windows."""
