"""Tells people what happened to episodes of alerts; needs no Spark."""
