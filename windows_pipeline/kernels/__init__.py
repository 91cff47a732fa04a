"""Computes windows, aggregates and firings of NumPy arrays, with Numba and without Spark."""
