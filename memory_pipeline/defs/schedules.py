"""Schedules in the workspace's time zone: distilling at five, reflecting at six, friction at seven, the effect at
twenty past seven, the quality report at half past, archiving at eight."""

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from functools import partial
from zoneinfo import ZoneInfo

import dagster as dg

from memory_pipeline.defs.jobs import (
    ARCHIVE_JOB,
    DISTIL_JOBS,
    EFFECT_JOB,
    FRICTION_JOB,
    PRUNE_JOB,
    QUALITY_JOB,
    REFLECT_JOB,
)
from memory_pipeline.defs.partitions import range_tags
from memory_pipeline.defs.placement import Placement
from memory_pipeline.distillation.periods import DAY, LEVELS, MONTH, NAMES, WEEK, consecutive
from memory_pipeline.distillation.stage import DistillationStage, due_periods, state_of
from memory_pipeline.settings import Settings

DISTIL_SCHEDULES = {DAY: "distil_at_five", WEEK: "distil_weeks_at_five", MONTH: "distil_months_at_five"}
EVERY_MORNING = {
    *("sessions", "messages", "windows", "segments", "observations", "embeddings", "reflections", "proposals"),
    *("memory_file", "friction_clusters"),
}
"""The assets that the schedules of six and seven materialize."""
DEADLINE, MADE_WITHIN = "0 8 * * *", timedelta(hours=2)
"""The UI shows these assets as overdue at eight if they were not materialized since six."""


def with_deadline(assets: Iterable[dg.AssetsDefinition], settings: Settings) -> list[dg.AssetsDefinition]:
    """The assets, with a freshness policy on those of every morning."""
    fresh = dg.FreshnessPolicy.cron(DEADLINE, MADE_WITHIN, settings.timezone)

    def dated(spec: dg.AssetSpec) -> dg.AssetSpec:
        is_due = spec.key.path[-1] in EVERY_MORNING
        return spec.replace_attributes(freshness_policy=fresh) if is_due else spec

    return [asset for asset in dg.map_asset_specs(dated, assets) if isinstance(asset, dg.AssetsDefinition)]


def schedules(placement: Placement) -> list[dg.ScheduleDefinition]:
    """All schedules. Each requests the same day only once."""

    def before_first_day(day: date) -> str:
        return f"{day} is before the workspace's first day." if day < placement.settings.start_date else ""

    def not_reflected(day: date) -> str:
        # from the lake: Dagster also counts days that were reported without messages
        if day in placement.workspace.open().lake.days("reflections"):
            return ""
        return f"{day} has not been reflected on; materialize `reflections` of that day first."

    def not_read(day: date) -> str:
        return "" if day in placement.workspace.open().lake.days("messages") else f"No session of {day} was read."

    def without_days(job: str) -> Callable[[date], dg.RunRequest]:
        return lambda day: dg.RunRequest(run_key=f"{job.removesuffix('_job')}:{day}")

    reflect = "Reflect on the past day and offer its lines in REVIEW.md."
    friction = "Find friction in the days up to yesterday, once these have been reflected on."
    effect = "Count what users repeated yesterday although the memory held it the day before."
    report = "Write the quality report of all days."
    archive = "Archive the daily logs that are old enough. Off unless MEMORY_ARCHIVE_AFTER_DAYS is set."
    prune = (
        "Remove replaced runs that are 90 days old from Dagster's record, and rows that `[retention]` no longer keeps."
    )
    by_day, schedule = partial(_schedule_of_days, placement), partial(_schedule, placement)
    archives = placement.settings.archive_after_days > 0
    return [
        *(_distil_schedule(placement, level) for level in LEVELS),
        by_day("reflect_at_six", REFLECT_JOB, "0 6 * * *", reflect, before_first_day),
        by_day("friction_at_seven", FRICTION_JOB, "0 7 * * *", friction, not_reflected),
        by_day("effect_at_twenty_past_seven", EFFECT_JOB, "20 7 * * *", effect, not_read),
        schedule("report_at_half_past_seven", QUALITY_JOB, "30 7 * * *", report, without_days(QUALITY_JOB)),
        schedule("archive_at_eight", ARCHIVE_JOB, "0 8 * * *", archive, without_days(ARCHIVE_JOB), is_on=archives),
        schedule("prune_on_sunday", PRUNE_JOB, "0 4 * * 0", prune, without_days(PRUNE_JOB)),
    ]


Requests = dg.RunRequest | list[dg.RunRequest] | dg.SkipReason


def _schedule(
    placement: Placement,
    name: str,
    job: str,
    cron: str,
    description: str,
    request: Callable[[date], Requests],
    *,
    is_on: bool = True,
) -> dg.ScheduleDefinition:
    """A schedule that requests runs for the local day before the tick, also on the days of a clock change and when the
    tick runs late."""
    zone = ZoneInfo(placement.settings.timezone)

    @dg.schedule(
        name=placement.name(name),
        job_name=placement.name(job),
        cron_schedule=cron,
        execution_timezone=placement.settings.timezone,
        default_status=dg.DefaultScheduleStatus.RUNNING
        if placement.starts(is_on)
        else dg.DefaultScheduleStatus.STOPPED,
        description=description,
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> Requests:
        return request(context.scheduled_execution_time.astimezone(zone).date() - timedelta(days=1))

    return schedule


def _schedule_of_days(
    placement: Placement, name: str, job: str, cron: str, description: str, why_not: Callable[[date], str]
) -> dg.ScheduleDefinition:
    """A schedule that requests a run for each day, unless there is a reason against it."""

    def request(day: date) -> Requests:
        if reason := why_not(day):
            return dg.SkipReason(reason)
        return dg.RunRequest(run_key=f"{name.partition('_')[0]}:{day}", partition_key=f"{day}")

    return _schedule(placement, name, job, cron, description, request)


def _distil_schedule(placement: Placement, level: int) -> dg.ScheduleDefinition:
    """The schedule of a level: runs over exactly the due periods. The order of the levels does not matter, as each
    updates its parts."""

    def request(day: date) -> Requests:
        stage = DistillationStage(placement.workspace.open(), level, day + timedelta(days=1))
        due = due_periods(stage)
        if not due:
            return dg.SkipReason(f"Every {NAMES[level]} that is old enough is distilled.")
        return [
            dg.RunRequest(run_key=f"distil:{state_of(stage, group)}", tags=range_tags(group[0].key, group[-1].key))
            for group in consecutive(due)
        ]

    description = f"Distil the {NAMES[level]}s that are old enough or have changed."
    return _schedule(placement, DISTIL_SCHEDULES[level], DISTIL_JOBS[level], "0 5 * * *", description, request)
