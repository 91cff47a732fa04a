"""Exact event-time windows on Spark and Delta; knows nothing of Dagster."""
