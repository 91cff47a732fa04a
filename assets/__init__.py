"""The Dagster assets of a pipeline: a module a table, and what they share."""
