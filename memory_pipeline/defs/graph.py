"""Everything that Dagster loads, assembled for one workspace, and the component that embeds it in a Dagster project.

::

    session files (read-only)
      └─ sessions ── messages ── windows                  (messages ── message_embeddings ──> index/)
                        └───────────┴─ segments, observations ──> memory/YYYY-MM-DD.md
                                          ├─ day_, week_, month_distillations (05:00)
                                          └─ embeddings ──> index/
                                               ├─ reflections      (over 7 days, 06:00) ── summary_embeddings ──> index/
                                               │    ├─ pool_reflections  (by hand)
                                               │    └─ proposals
                                               │         └─ memory_file ──> REVIEW.md <── a user decides
                                               │                        ──> MEMORY.md
                                               └─ friction_clusters (over 7 days, 07:00)
                                                    └─ memory_effect (07:20)

Every asset except `memory_file`, `pool_reflections` and `quality_report` (07:30) is partitioned by local day,
`week_distillations` by week and `month_distillations` by month. On the command line a range of days is one run of
`day_job`. A materialization from the graph is a backfill: assets that only depend on their own day run in batches of
ten days, and those with a lookback follow, oldest first; Dagster adds the days whose lookback includes the range, and
the weeks and months that contain it; assets without days come last.
"""

from collections.abc import Sequence

import dagster as dg
from dagster.components.component_scaffolding import scaffold_component
from pydantic import Field

from memory_pipeline.defs.distillation import distillation_assets, distillation_checks
from memory_pipeline.defs.effect import effect_assets
from memory_pipeline.defs.embeddings import embedding_assets, embedding_checks
from memory_pipeline.defs.friction import friction_assets, friction_checks
from memory_pipeline.defs.jobs import jobs
from memory_pipeline.defs.observations import observation_assets, observation_checks
from memory_pipeline.defs.placement import GROUP, Placement, WorkspaceResource
from memory_pipeline.defs.proposals import memory_file_asset, memory_file_checks, proposal_assets
from memory_pipeline.defs.quality import quality_assets
from memory_pipeline.defs.reflections import pool_asset, reflection_assets, reflection_checks
from memory_pipeline.defs.schedules import schedules, with_deadline
from memory_pipeline.defs.sensors import sensors
from memory_pipeline.defs.sessions import session_assets, session_checks


def build_definitions(placement: Placement) -> dg.Definitions:
    """All definitions of a pipeline."""
    assets = with_deadline(
        [
            session_assets(placement),
            observation_assets(placement),
            *embedding_assets(placement),
            reflection_assets(placement),
            pool_asset(placement),
            *distillation_assets(placement),
            friction_assets(placement),
            proposal_assets(placement),
            memory_file_asset(placement),
            effect_assets(placement),
            quality_assets(lambda: build_definitions(placement), placement),
        ],
        placement.settings,
    )
    return dg.Definitions(
        assets=dg.with_source_code_references(assets),
        asset_checks=[
            *session_checks(placement),
            *observation_checks(placement),
            *embedding_checks(placement),
            *friction_checks(placement),
            *reflection_checks(placement),
            *distillation_checks(placement),
            *memory_file_checks(placement),
        ],
        jobs=jobs({key.path[-1] for asset in assets for key in asset.keys}, placement),
        schedules=schedules(placement),
        sensors=sensors(placement),
        resources=placement.resources,
        # a process per step would load torch for each of them; in a project, only our jobs can ask for that
        executor=None if placement.prefix else dg.in_process_executor,
    )


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
        return build_definitions(placement)
