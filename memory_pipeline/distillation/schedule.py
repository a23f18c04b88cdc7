"""Distillation at five in the morning: of the day that has become old enough, and of all that grew late."""

import dagster as dg
from dagster._core.storage.tags import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG

from memory_pipeline.days import day_of
from memory_pipeline.distillation.periods import LEVELS, TABLE_OF
from memory_pipeline.distillation.stage import DistillationStage, due_days, state_of
from memory_pipeline.orchestration import PARTITIONS, LakeResource

DISTIL_JOB = "distil_job"
distil_job = dg.define_asset_job(
    DISTIL_JOB,
    selection=dg.AssetSelection.assets(*(TABLE_OF[level] for level in LEVELS)),
    description="What days, weeks and months come down to.",
)


@dg.schedule(
    job_name=DISTIL_JOB,
    cron_schedule="0 5 * * *",
    execution_timezone=PARTITIONS.timezone,
    default_status=dg.DefaultScheduleStatus.RUNNING,
    description="Distil the days that are old enough or grew since, and the weeks and months that end with them.",
)
def distil_at_five(context: dg.ScheduleEvaluationContext, lake: LakeResource) -> dg.RunRequest | dg.SkipReason:
    settings = lake.settings()
    stage = DistillationStage(settings, lake.open(), day_of(context.scheduled_execution_time, settings.zone))
    days = due_days(stage)
    if not days:
        return dg.SkipReason("Every day that is old enough is distilled.")
    tags = {ASSET_PARTITION_RANGE_START_TAG: f"{days[0]}", ASSET_PARTITION_RANGE_END_TAG: f"{days[-1]}"}
    return dg.RunRequest(run_key=f"distil:{state_of(stage, days)}", tags=tags)
