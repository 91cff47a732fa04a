"""Corrections of published results."""
