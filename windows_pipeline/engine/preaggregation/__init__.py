"""Slices: records aggregated once for all windows that share them."""
