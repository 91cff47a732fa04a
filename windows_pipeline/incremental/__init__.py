"""Windows, rows, firings and late records of one arrival unit at a time (rule E4)."""
