"""Reflection at six in the morning, for the day that ended; at eight, old logs that are reflected on are archived."""

from datetime import timedelta
from zoneinfo import ZoneInfo

import dagster as dg

from memory_pipeline.days import today
from memory_pipeline.files.archive import archive_logs
from memory_pipeline.orchestration import PARTITIONS, LakeResource
from memory_pipeline.reflections.stage import ReflectionsStage, why_not_reflected
from memory_pipeline.settings import load_settings

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
def reflect_at_six(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
    day = day_that_ended(context)
    if day < f"{PARTITIONS.start.date()}":  # a workspace that was made today
        return dg.SkipReason(f"{day} is before the workspace's first day.")
    return dg.RunRequest(run_key=f"reflect:{day}", partition_key=day)


ARCHIVE_JOB = "archive_job"
_OFF = "Archiving is off; MEMORY_ARCHIVE_AFTER_DAYS=30 archives logs that are 30 days old."


@dg.op(description="Daily logs that are old and reflected on into memory/archive/.")
def archive_daily_logs(context: dg.OpExecutionContext, lake: LakeResource) -> None:
    settings = lake.settings()
    if not settings.archive_after_days:
        raise dg.Failure(_OFF, allow_retries=False)
    stage = ReflectionsStage.of(settings, lake.open())
    done = archive_logs(settings, today(settings.zone), lambda day: why_not_reflected(stage, day))
    context.add_output_metadata({"moved": len(done.moved), "waiting": len(done.waiting), "stuck": len(done.stuck)})
    context.log.info(f"{len(done.moved)} logs were archived: {', '.join(map(str, done.moved)) or 'none'}")
    for day, reason in sorted((done.waiting | done.stuck).items()):
        context.log.warning(f"The log of {day} stays: {reason}")
    if done.stuck:
        first, reason = next(iter(done.stuck.items()))
        raise dg.Failure(f"{len(done.stuck)} logs could not be moved, first {first}: {reason}", allow_retries=False)


@dg.job(
    name=ARCHIVE_JOB,
    description="Old daily logs that are reflected on into memory/archive/.",
    executor_def=dg.in_process_executor,
)
def archive_job() -> None:
    archive_daily_logs()


@dg.schedule(
    job=archive_job,
    cron_schedule="0 8 * * *",
    execution_timezone=PARTITIONS.timezone,
    default_status=(
        dg.DefaultScheduleStatus.RUNNING if load_settings().archive_after_days else dg.DefaultScheduleStatus.STOPPED
    ),
    description="Archive the daily logs that have become old enough. Off unless MEMORY_ARCHIVE_AFTER_DAYS is set.",
)
def archive_at_eight(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
    return dg.RunRequest(run_key=f"archive:{day_that_ended(context)}")
