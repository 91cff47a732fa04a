"""Rows of tables at one version, read without Spark where they lie in local folders."""
