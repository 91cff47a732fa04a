"""Compiles the text of alert rules to safe SQL. Needs no Spark.

`incremental/alerts.py` raises the alerts.
"""
