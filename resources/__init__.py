"""The resources of the project's steps, and the configuration of its Dagster instance."""
