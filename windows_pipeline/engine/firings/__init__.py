"""Spark plans that compute firings with the kernels."""
