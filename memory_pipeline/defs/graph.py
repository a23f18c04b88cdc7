"""Everything that Dagster loads, assembled for one workspace.

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

Every asset except `memory_file`, `pool_reflections` and `quality_report` (07:30) is partitioned by local day,
`week_distillations` by week and `month_distillations` by month. On the command line a range of days is one run of
`day_job`. A materialization from the graph is a backfill: assets that only depend on their own day run in batches of
ten days, then those with a lookback in a single run; Dagster adds the days whose lookback includes the range, and the
weeks and months that contain it; assets without days come last.
"""

import dagster as dg
from dagster_duckdb import DuckDBResource

from memory_pipeline.defs.distillation import distillation_assets, distillation_checks
from memory_pipeline.defs.embeddings import embedding_assets, embedding_checks
from memory_pipeline.defs.friction import friction_assets, friction_checks
from memory_pipeline.defs.jobs import JOBS
from memory_pipeline.defs.observations import observation_assets, observation_checks
from memory_pipeline.defs.proposals import (
    identity_files,
    memory_file,
    one_decision_each,
    proposal_assets,
    review_backlog,
)
from memory_pipeline.defs.quality import quality_assets
from memory_pipeline.defs.reflections import pool_reflections, reflection_assets, reflection_checks
from memory_pipeline.defs.resources import WorkspaceResource
from memory_pipeline.defs.schedules import schedules, with_deadline
from memory_pipeline.defs.sensors import sensors
from memory_pipeline.defs.sessions import session_assets, session_checks
from memory_pipeline.settings import Settings


def build_definitions(settings: Settings) -> dg.Definitions:
    """All definitions from one Settings: the first day and time zone of the partitions, versions, schedules."""
    return dg.Definitions(
        assets=with_deadline(
            [
                session_assets(settings),
                observation_assets(settings),
                *embedding_assets(settings),
                reflection_assets(settings),
                pool_reflections,
                *distillation_assets(settings),
                friction_assets(settings),
                proposal_assets(settings),
                memory_file,
                quality_assets(lambda: build_definitions(settings)),
            ],
            settings,
        ),
        asset_checks=[
            *session_checks(settings),
            *observation_checks(settings),
            *embedding_checks(settings),
            *friction_checks(settings),
            *reflection_checks(settings),
            *distillation_checks(settings),
            one_decision_each,
            review_backlog,
            identity_files,
        ],
        jobs=JOBS,
        schedules=schedules(settings),
        sensors=sensors(settings),
        resources={"workspace": WorkspaceResource(), "duckdb": DuckDBResource(database=":memory:")},
        # a process per step would load torch for each of them
        executor=dg.in_process_executor,
    )
