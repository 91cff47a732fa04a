"""Reads pipelines from YAML files, validates them and reports every mistake. Needs no Spark."""

from windows_pipeline.config.aggregates import BoundAggregates
from windows_pipeline.config.definition import (
    definition_changes,
    definition_digest,
)
from windows_pipeline.config.load import (
    Loaded,
    load_files,
    load_folder,
    load_pipeline,
    load_pipelines,
    pipeline_files,
)
from windows_pipeline.config.model import Partitions, Pipeline
from windows_pipeline.config.notify import Target
from windows_pipeline.config.own_checks import OwnCheck
from windows_pipeline.config.source import Source
from windows_pipeline.config.source_folder import FolderProblem, folder_problem
from windows_pipeline.config.windows.window_kinds import Rule, Windows
from windows_pipeline.text.problems import ConfigError

__all__ = [
    "BoundAggregates",
    "ConfigError",
    "FolderProblem",
    "Loaded",
    "OwnCheck",
    "Partitions",
    "Pipeline",
    "Rule",
    "Source",
    "Target",
    "Windows",
    "definition_changes",
    "definition_digest",
    "folder_problem",
    "load_files",
    "load_folder",
    "load_pipeline",
    "load_pipelines",
    "pipeline_files",
]
