"""What one arrival unit changes: windows, firings, late records, alerts (rule E4).

These are plans only: `jobs/` and `streaming/` run them.
"""
