"""Commands that compute or change tables, by Spark."""
