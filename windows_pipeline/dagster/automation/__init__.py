"""What runs a pipeline in Dagster: schedules, sensors, and the jobs that they start."""
