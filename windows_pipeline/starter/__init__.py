"""Looks at a sample of a user's records and proposes a pipeline for them. Needs no Spark."""
