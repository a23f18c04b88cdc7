"""The search for friction at seven in the morning."""

import dagster as dg

from memory_pipeline.orchestration import PARTITIONS
from memory_pipeline.reflections.schedule import day_that_ended

FRICTION_JOB = "friction_job"
friction_job = dg.define_asset_job(
    FRICTION_JOB,
    selection=dg.AssetSelection.assets("friction_clusters"),
    description="What recurred in the days up to the partition.",
)


@dg.schedule(
    job_name=FRICTION_JOB,
    cron_schedule="0 7 * * *",
    execution_timezone=PARTITIONS.timezone,
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Look for patterns in the days up to yesterday, once these have been reflected on.",
)
def friction_at_seven(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    day = day_that_ended(context)
    key = dg.AssetKey("reflections")
    if day not in context.instance.get_materialized_partitions(key):
        return dg.SkipReason(f"{day} has not been reflected on; materialize `reflections` of that day first.")
    return dg.RunRequest(run_key=f"friction:{day}", partition_key=day)
