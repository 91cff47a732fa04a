"""Checks: results counted again by other code, and rules over published tables."""
