"""Spark plans around the kernels of firings."""
