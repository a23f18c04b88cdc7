"""Schedules in the workspace's time zone: distilling at five, reflecting at six, friction at seven, the effect at
twenty past seven, the quality report at half past, archiving at eight."""

from collections.abc import Iterable
from datetime import date, timedelta
from zoneinfo import ZoneInfo

import dagster as dg

from memory_pipeline.days import day_of
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
from memory_pipeline.defs.placement import OURS, Placement
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


def schedules(settings: Settings, placement: Placement = OURS) -> list[dg.ScheduleDefinition]:
    """All schedules. Each requests the same day only once."""

    def day_that_ended(context: dg.ScheduleEvaluationContext) -> str:
        """The local day before the tick, also on the days of a clock change and when the tick runs late."""
        local = context.scheduled_execution_time.astimezone(ZoneInfo(settings.timezone))
        return f"{local.date() - timedelta(days=1)}"

    @dg.schedule(
        name=placement.name("reflect_at_six"),
        job_name=placement.name(REFLECT_JOB),
        cron_schedule="0 6 * * *",
        execution_timezone=settings.timezone,
        default_status=_status(placement),
        description="Reflect on the past day and offer its lines in REVIEW.md.",
    )
    def reflect_at_six(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        day = day_that_ended(context)
        if day < f"{settings.start_date}":  # workspace created today
            return dg.SkipReason(f"{day} is before the workspace's first day.")
        return dg.RunRequest(run_key=f"reflect:{day}", partition_key=day)

    @dg.schedule(
        name=placement.name("friction_at_seven"),
        job_name=placement.name(FRICTION_JOB),
        cron_schedule="0 7 * * *",
        execution_timezone=settings.timezone,
        default_status=_status(placement),
        description="Find friction in the days up to yesterday, once these have been reflected on.",
    )
    def friction_at_seven(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        day = day_that_ended(context)
        # from the lake: Dagster also counts days that were reported without messages
        if date.fromisoformat(day) not in placement.workspace.open().lake.days("reflections"):
            return dg.SkipReason(f"{day} has not been reflected on; materialize `reflections` of that day first.")
        return dg.RunRequest(run_key=f"friction:{day}", partition_key=day)

    @dg.schedule(
        name=placement.name("effect_at_twenty_past_seven"),
        job_name=placement.name(EFFECT_JOB),
        cron_schedule="20 7 * * *",
        execution_timezone=settings.timezone,
        default_status=_status(placement),
        description="Count what users repeated yesterday although the memory held it the day before.",
    )
    def effect_at_twenty_past_seven(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        day = day_that_ended(context)
        if date.fromisoformat(day) not in placement.workspace.open().lake.days("messages"):
            return dg.SkipReason(f"No session of {day} was read.")
        return dg.RunRequest(run_key=f"effect:{day}", partition_key=day)

    def whole(name: str, job: str, cron: str, description: str, *, is_on: bool = True) -> dg.ScheduleDefinition:
        """A schedule of a job without days."""

        @dg.schedule(
            name=placement.name(name),
            job_name=placement.name(job),
            cron_schedule=cron,
            execution_timezone=settings.timezone,
            default_status=_status(placement, is_on),
            description=description,
        )
        def once(context: dg.ScheduleEvaluationContext) -> dg.RunRequest:
            return dg.RunRequest(run_key=f"{job.removesuffix('_job')}:{day_that_ended(context)}")

        return once

    return [
        *(_distil_schedule(settings, level, placement) for level in LEVELS),
        reflect_at_six,
        friction_at_seven,
        effect_at_twenty_past_seven,
        whole("report_at_half_past_seven", QUALITY_JOB, "30 7 * * *", "Write the quality report of all days."),
        whole(
            "archive_at_eight",
            ARCHIVE_JOB,
            "0 8 * * *",
            "Archive the daily logs that are old enough. Off unless MEMORY_ARCHIVE_AFTER_DAYS is set.",
            is_on=settings.archive_after_days > 0,
        ),
        whole(
            "prune_on_sunday",
            PRUNE_JOB,
            "0 4 * * 0",
            "Remove replaced runs that are 90 days old from Dagster's record, and rows that `[retention]` no longer "
            "keeps.",
            is_on=True,
        ),
    ]


def _status(placement: Placement, is_on: bool = True) -> dg.DefaultScheduleStatus:
    return dg.DefaultScheduleStatus.RUNNING if placement.starts(is_on) else dg.DefaultScheduleStatus.STOPPED


def _distil_schedule(settings: Settings, level: int, placement: Placement) -> dg.ScheduleDefinition:
    """The schedule of a level: runs over exactly the due periods. The order of the levels does not matter, as each
    updates its parts."""

    @dg.schedule(
        name=placement.name(DISTIL_SCHEDULES[level]),
        job_name=placement.name(DISTIL_JOBS[level]),
        cron_schedule="0 5 * * *",
        execution_timezone=settings.timezone,
        default_status=_status(placement),
        description=f"Distil the {NAMES[level]}s that are old enough or have changed.",
    )
    def distil(context: dg.ScheduleEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        opened = placement.workspace.open()
        stage = DistillationStage(opened, level, day_of(context.scheduled_execution_time, opened.settings.zone))
        due = due_periods(stage)
        if not due:
            return dg.SkipReason(f"Every {NAMES[level]} that is old enough is distilled.")
        return [
            dg.RunRequest(run_key=f"distil:{state_of(stage, group)}", tags=range_tags(group[0].key, group[-1].key))
            for group in consecutive(due)
        ]

    return distil
