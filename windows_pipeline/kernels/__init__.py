"""Arrays in, arrays out: NumPy and Numba, no Spark."""
