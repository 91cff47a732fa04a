"""Questions to published tables."""
