"""Reflection at six in the morning, for the day that ended."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import dagster as dg

from memory_pipeline.orchestration import PARTITIONS

REFLECT_JOB = "reflect_job"
reflect_job = dg.define_asset_job(
    REFLECT_JOB,
    selection=dg.AssetSelection.assets(
        "sessions", "messages", "windows", "segments", "observations", "embeddings", "reflections", "proposals"
    ),
    description="A day from its session files to its proposals.",
)
POOL_REFLECT_JOB = "pool_reflect_job"
pool_reflect_job = dg.define_asset_job(
    POOL_REFLECT_JOB,
    selection=dg.AssetSelection.assets("pool_reflections"),
    description="The reflections of all days but the last three, condensed once and for all; by hand, about weekly.",
)


def day_that_ended(context: dg.ScheduleEvaluationContext) -> str:
    """The local day before the tick, also on the days of a clock change and when the tick runs late."""
    local = context.scheduled_execution_time.astimezone(ZoneInfo(PARTITIONS.timezone))
    return f"{local.date() - timedelta(days=1)}"


@dg.schedule(
    job_name=REFLECT_JOB,
    cron_schedule="0 6 * * *",
    execution_timezone=PARTITIONS.timezone,
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Reflect on the day that ended and offer what is worth remembering in REVIEW.md.",
)
def reflect_at_six(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    day = day_that_ended(context)
    return dg.RunRequest(run_key=f"reflect:{day}", partition_key=day)
