"""The Spark jobs of a pipeline, a table each: stage the rows, check them, publish them."""

from windows_pipeline.jobs.alerts import AlertsJob
from windows_pipeline.jobs.final_windows import FinalWindowsJob
from windows_pipeline.jobs.firings import FiringsJob
from windows_pipeline.jobs.job import Job, JobResult, check_published, published_days, run_job
from windows_pipeline.jobs.keyed_windows import KeyedWindowsJob
from windows_pipeline.jobs.raw_events import RawEventsJob

__all__ = [
    "AlertsJob",
    "FinalWindowsJob",
    "FiringsJob",
    "Job",
    "JobResult",
    "KeyedWindowsJob",
    "RawEventsJob",
    "check_published",
    "published_days",
    "run_job",
]
