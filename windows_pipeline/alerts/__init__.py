"""Compiles the text of alert rules and of other expressions to safe SQL. Needs no Spark.

`incremental/alerts.py` raises the alerts.
"""
