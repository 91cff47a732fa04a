"""Commands that compute or change tables, by Spark; the jobs are in `windows_pipeline/jobs/`."""
