"""The resources of assets, checks, sensors and schedules."""

import dagster as dg

from memory_pipeline.operations.migrations import migrate
from memory_pipeline.settings import load_settings
from memory_pipeline.workspace.workspace import Workspace


class WorkspaceResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The workspace, from the environment and its settings file at the start of a run or tick."""

    def open(self) -> Workspace:
        settings = load_settings()
        migrate(settings)
        return Workspace.open(settings)
