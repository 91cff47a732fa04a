"""Makes a folder for pipelines of one's own: `init`."""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import which
from typing import Annotated

import typer

from windows_pipeline.cli.terminal.console import CONSOLE

_SETTINGS = """\
# Where things lie, and how Spark runs. Relative paths start at this file's folder.
warehouse: warehouse           # all tables
pipelines: pipelines           # the files of pipelines
landing: .                     # the folder that relative paths of sources start at
dagster_home: .dagster_home    # commands report to this Dagster instance
# ui_url: http://127.0.0.1:3000    # the address of Dagster's UI, for links in messages
profile: local                 # Spark's options for one machine; those of `spark` win
spark:
  spark.driver.memory: 2g
"""
_DEFINITIONS = '''\
"""The Dagster definitions of all pipeline files; workspace.yaml names this module."""

from pathlib import Path

from windows_pipeline.dagster import build_definitions, right_pipelines
from windows_pipeline.settings import load_settings

settings = load_settings(Path(__file__).parent)
defs = build_definitions(right_pipelines(settings), settings)
'''
_WORKSPACE = """\
load_from:
  - python_file: {relative_path: definitions.py, working_directory: .}
"""
_IGNORED = "warehouse/\n.dagster_home/\nspark-warehouse/\n.cache/\n__pycache__/\n"


def init(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The folder; new, or empty.")],
) -> None:
    """Makes a folder for your own pipelines: settings, and what Dagster needs to show them.

    No file is overwritten.
    """
    instance = Path(__file__).parents[1] / "dagster" / "dagster.yaml"
    files = {
        "settings.yaml": _SETTINGS,
        "definitions.py": _DEFINITIONS,
        "workspace.yaml": _WORKSPACE,
        ".gitignore": _IGNORED,
        ".dagster_home/dagster.yaml": instance.read_text(),
    }
    there = [name for name in files if (folder / name).exists()]
    if there:
        raise ValueError(
            f"FOLDER: {folder} must be new, or without these files, and has {', '.join(there)}; "
            "name another folder"
        )
    (folder / "pipelines").mkdir(parents=True, exist_ok=True)
    (folder / ".dagster_home").mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    CONSOLE.print(
        f"{folder}: made. Next, in that folder:\n"
        f"{_path_first()}"
        "  windows-pipeline new NAME --from FILE      # a pipeline for your records\n"
        "  windows-pipeline run NAME\n"
        '  DAGSTER_HOME="$PWD/.dagster_home" dagster dev    # the UI'
    )


def _path_first() -> str:
    """The line that lets the shell find the commands of this environment, where it does not yet."""
    if which("windows-pipeline") is not None:
        return ""
    return f'  export PATH="{Path(sys.executable).parent}:$PATH"\n'
