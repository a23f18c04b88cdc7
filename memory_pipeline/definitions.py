"""The table of contents: everything that Dagster loads.

::

    session files (read-only)
      └─ sessions ── messages ── windows
                        └───────────┴─ segments, observations ──> memory/YYYY-MM-DD.md
                                          ├─ day_, week_, month_distillations (05:00)
                                          └─ embeddings ──> index/
                                               ├─ reflections      (over 7 days, 06:00)
                                               │    ├─ pool_reflections  (by hand)
                                               │    └─ proposals ──> REVIEW.md <── a person decides
                                               │         └─ memory_file ──> MEMORY.md
                                               └─ friction_clusters (over 7 days, 07:00)

Every asset but `memory_file` and `pool_reflections` is partitioned by local day. A range of days is one run of
`day_job`. Materialized from the graph of all assets it is a backfill of three: Dagster adds the days that look back at
the range, so reflections and friction have more days than what is before them, and assets without days come last.
"""

import dagster as dg
from dagster_duckdb import DuckDBResource

from memory_pipeline.distillation.assets import distil
from memory_pipeline.distillation.checks import DISTILLATION_CHECKS
from memory_pipeline.distillation.schedule import distil_at_five, distil_job
from memory_pipeline.embeddings.assets import embed
from memory_pipeline.embeddings.checks import points_equal_rows
from memory_pipeline.friction.assets import find_friction
from memory_pipeline.friction.schedule import friction_at_seven, friction_job
from memory_pipeline.observations.assets import observe
from memory_pipeline.observations.checks import OBSERVATION_CHECKS
from memory_pipeline.orchestration import LakeResource
from memory_pipeline.proposals.assets import memory_file, propose
from memory_pipeline.proposals.checks import identity_files, one_decision_each
from memory_pipeline.proposals.sensor import review_job, review_sensor
from memory_pipeline.proposals.todoist.sensor import todoist_job, todoist_sensor
from memory_pipeline.reflections.assets import pool_reflections, reflect
from memory_pipeline.reflections.checks import REFLECTION_CHECKS
from memory_pipeline.reflections.schedule import (
    archive_at_eight,
    archive_job,
    pool_reflect_job,
    reflect_at_six,
    reflect_job,
)
from memory_pipeline.reflections.sensor import reflect_early
from memory_pipeline.sessions.assets import read_sessions
from memory_pipeline.sessions.checks import every_message_in_one_window
from memory_pipeline.sessions.sensor import day_job, session_sensor

defs = dg.Definitions(
    assets=[read_sessions, observe, embed, reflect, pool_reflections, distil, propose, memory_file, find_friction],
    asset_checks=[
        every_message_in_one_window,
        *OBSERVATION_CHECKS,
        points_equal_rows,
        *REFLECTION_CHECKS,
        *DISTILLATION_CHECKS,
        one_decision_each,
        identity_files,
    ],
    jobs=[day_job, reflect_job, pool_reflect_job, distil_job, friction_job, review_job, todoist_job, archive_job],
    schedules=[distil_at_five, reflect_at_six, friction_at_seven, archive_at_eight],
    sensors=[session_sensor, reflect_early, review_sensor, todoist_sensor],
    resources={"lake": LakeResource(), "duckdb": DuckDBResource(database=":memory:")},
    # a process per step would load torch for each of them
    executor=dg.in_process_executor,
)
