"""The component that embeds the pipeline in a Dagster project: `dg scaffold defs memory_pipeline.MemoryPipeline X`."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg
from dagster.components.component_scaffolding import scaffold_component
from pydantic import Field

from memory_pipeline.defs.graph import build_definitions
from memory_pipeline.defs.placement import GROUP, Placement, WorkspaceResource


class _Scaffolder(dg.Scaffolder):
    """A defs.yaml with the instance's own name as prefix, so that two instances do not clash."""

    def scaffold(self, request: dg.ScaffoldRequest) -> None:
        scaffold_component(request, {"key_prefix": [request.target_path.name]})


@dg.scaffold_with(_Scaffolder)
class MemoryPipeline(dg.Component, dg.Resolvable, dg.Model):
    """The pipeline from the session files of coding agents to a reviewed MEMORY.md: all assets, checks, jobs, schedules
    and sensors."""

    key_prefix: Sequence[str] = Field(
        default=("memory",),
        description="The first parts of every asset key. Joined by `_`, they also begin the names of ops, jobs, "
        "schedules, sensors and resources. Empty for a code location that holds nothing else.",
    )
    group: str = Field(default=GROUP, description="The group of the assets.")
    workspace: str | None = Field(
        default=None, description="The folder of the workspace; without it MEMORY_WORKSPACE or its default."
    )
    automation: bool = Field(
        default=True, description="Whether schedules and sensors start switched on; the UI switches each of them."
    )

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        resource = WorkspaceResource(path=self.workspace)
        placement = Placement(resource.settings(), tuple(self.key_prefix), self.group, resource, self.automation)
        return build_definitions(placement, with_sources=True)
