"""The pipeline of a workspace at its place in a code location, which may be somebody else's project."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dagster as dg
from dagster_duckdb import DuckDBResource

from memory_pipeline.lake.store import Lake
from memory_pipeline.operations.migrations import migrate
from memory_pipeline.settings import Settings, load_settings
from memory_pipeline.workspace.workspace import Workspace

if TYPE_CHECKING:
    import duckdb

GROUP = "memory"
"""The only asset group: the UI collapses several groups, and the assets should be visible at once."""


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


class TablesResource(DuckDBResource):
    """DuckDB with a view of each table of the workspace, for SQL in other assets of the code location."""

    database: str = ":memory:"
    path: str | None = None
    """The folder of the workspace; without it the environment names one."""

    @contextmanager
    def get_connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        settings = WorkspaceResource(path=self.path).settings()
        with super().get_connection() as connection:
            Lake.from_settings(settings).attach_views(connection)
            yield connection


@dataclass(frozen=True)
class Placement:
    """The settings of a pipeline and its names in a code location; without a prefix it has the location to itself."""

    settings: Settings
    """The settings when the code location was loaded: partitions, time zone, versions. A run reads them again."""
    prefix: tuple[str, ...] = ()
    """The first parts of every asset key, and the first words of the names of ops, jobs, schedules, sensors and
    resources."""
    group: str = GROUP
    workspace: WorkspaceResource = field(default_factory=WorkspaceResource)
    automation: bool = True
    """Whether schedules and sensors that are on by default start switched on."""

    def name(self, name: str) -> str:
        return "_".join((*self.prefix, name))

    def key(self, table: str) -> dg.AssetKey:
        return dg.AssetKey([*self.prefix, table])

    @property
    def needs(self) -> set[str]:
        """The key of the resource that `open` needs."""
        return {self.name("workspace")}

    def open(self, context: Any) -> Workspace:
        """The workspace of the run with this context."""
        resource: WorkspaceResource = getattr(context.resources, self.name("workspace"))
        return resource.open()

    @property
    def resources(self) -> Mapping[str, Any]:
        tables = TablesResource(path=self.workspace.path)
        return {self.name("workspace"): self.workspace, self.name("duckdb"): tables}

    def status(self, is_on: bool = True) -> str:
        """The status with which a schedule or sensor starts that is on by default, or only for some settings."""
        return "RUNNING" if is_on and self.automation else "STOPPED"

    def owns(self, run: dg.DagsterRun) -> bool:
        """Whether the run is one of this pipeline's jobs or includes one of its assets; others share the instance."""
        return run.job_name.startswith(self.name("")) or self.includes(run.asset_selection or ())

    def includes(self, keys: Iterable[dg.AssetKey]) -> bool:
        """Whether one of these assets is this pipeline's; without a prefix all are."""
        return not self.prefix or any(key.has_prefix(list(self.prefix)) for key in keys)
