"""Notifies people of what happened to episodes of alerts; needs no Spark."""
