"""What the project's steps use from outside, and the file of its Dagster instance."""
