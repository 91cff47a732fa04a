"""Recounts: the same results, computed by other code."""
