"""A component: mounts pipelines in any Dagster project by a `defs.yaml`."""

# No deferred annotations here: Dagster reads the fields' annotations as the component's attributes.

from pathlib import Path

import dagster as dg
from pydantic import Field

from windows_pipeline.dagster.definitions import build_definitions, right_pipelines
from windows_pipeline.settings import load_settings


class WindowsPipelines(dg.Component, dg.Model, dg.Resolvable):
    """The assets, checks, jobs, schedules and sensors of all pipelines of a folder.

    A pipeline file with a mistake is left out, and a warning names its file and line. A project
    mounts one such component, as Dagster merges no two resources of one name.
    """

    project: str = Field(
        default=".",
        description="The folder of settings.yaml, which names the folder of pipelines; from the "
        "component's own folder.",
    )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Builds the definitions, as `build_definitions` does.

        Raises:
            SettingsError: There is no settings.yaml, or it has a mistake.
            ConfigError: There is no folder of pipelines.
        """
        settings = load_settings(Path(context.path) / self.project)
        return build_definitions(right_pipelines(settings), settings)
