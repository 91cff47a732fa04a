"""Columns and keys as a pipeline's file writes them."""
