"""Commands that read published tables, most of them without Spark."""
