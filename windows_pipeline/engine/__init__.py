"""Spark plans around the kernels: shuffle by key, sort by time, one pass."""
