"""CSV files cut into records; without Spark."""
