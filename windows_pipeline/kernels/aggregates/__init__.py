"""Computes the aggregates of windows."""
