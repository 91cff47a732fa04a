"""Compiles the text of alert rules to safe SQL. Needs no Spark."""
