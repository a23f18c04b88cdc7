"""The resources of assets, checks, sensors and schedules."""

from pathlib import Path

import dagster as dg

from memory_pipeline.operations.migrations import migrate
from memory_pipeline.settings import Settings, load_settings
from memory_pipeline.workspace.workspace import Workspace


class WorkspaceResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """The workspace, with the settings of the environment and of its file at the start of a run or tick."""

    path: str | None = None
    """The folder of the workspace; without it the environment names one."""

    def settings(self) -> Settings:
        return load_settings(Path(self.path) if self.path else None)

    def open(self) -> Workspace:
        settings = self.settings()
        migrate(settings)
        return Workspace.open(settings)
