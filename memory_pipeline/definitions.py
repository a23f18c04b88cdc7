"""The table of contents: everything that Dagster loads.

::

    session files (read-only)
      └─ sessions ── messages ── windows
                        └───────────┴─ segments, observations ──> memory/YYYY-MM-DD.md
                                          └─ embeddings ──> index/
                                               ├─ reflections      (over 7 days, 06:00)
                                               │    └─ proposals ──> REVIEW.md <── a person decides
                                               │         └─ memory_file ──> MEMORY.md
                                               └─ friction_clusters (over 7 days, 07:00)

Every asset but `memory_file` is partitioned by local day; a range of days is one run.
"""

import dagster as dg
from dagster_duckdb import DuckDBResource

from memory_pipeline.embeddings.assets import embed
from memory_pipeline.embeddings.checks import points_equal_rows
from memory_pipeline.friction.assets import find_friction
from memory_pipeline.friction.schedule import friction_at_seven, friction_job
from memory_pipeline.observations.assets import observe
from memory_pipeline.observations.checks import OBSERVATION_CHECKS
from memory_pipeline.orchestration import LakeResource
from memory_pipeline.proposals.assets import memory_file, propose
from memory_pipeline.proposals.checks import one_decision_each
from memory_pipeline.proposals.sensor import review_job, review_sensor
from memory_pipeline.reflections.assets import reflect
from memory_pipeline.reflections.checks import compression_ratio as reflections_compression_ratio
from memory_pipeline.reflections.schedule import reflect_at_six, reflect_job
from memory_pipeline.sessions.assets import read_sessions
from memory_pipeline.sessions.checks import every_message_in_one_window
from memory_pipeline.sessions.sensor import day_job, session_sensor

defs = dg.Definitions(
    assets=[read_sessions, observe, embed, reflect, propose, memory_file, find_friction],
    asset_checks=[
        every_message_in_one_window,
        *OBSERVATION_CHECKS,
        points_equal_rows,
        reflections_compression_ratio,
        one_decision_each,
    ],
    jobs=[day_job, reflect_job, friction_job, review_job],
    schedules=[reflect_at_six, friction_at_seven],
    sensors=[session_sensor, review_sensor],
    resources={"lake": LakeResource(), "duckdb": DuckDBResource(database=":memory:")},
    # a process per step would load torch for each of them
    executor=dg.in_process_executor,
)
