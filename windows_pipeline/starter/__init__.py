"""Looks at a sample of a user's records and proposes a pipeline for them.

Only `acceptance`, which has the reader of a run judge the sample, needs Spark.
"""
