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


Requests = dg.RunRequest | list[dg.RunRequest] | dg.SkipReason


def schedules(placement: Placement) -> list[dg.ScheduleDefinition]:
    """All schedules. Each requests the same day only once."""
    schedule, archives = partial(_schedule, placement), placement.settings.archive_after_days > 0

    def reflect(day: date) -> Requests:
        """Reflect on the past day and offer its lines in REVIEW.md."""
        if day < placement.settings.start_date:
            return dg.SkipReason(f"{day} is before the workspace's first day.")
        return _request("reflect", day, partition_key=f"{day}")

    def friction(day: date) -> Requests:
        """Find friction in the days up to yesterday, once these have been reflected on."""
        # from the lake: Dagster also counts days that were reported without messages
        if day not in placement.workspace.open().lake.days("reflections"):
            return dg.SkipReason(f"{day} has not been reflected on; materialize `reflections` of that day first.")
        return _request("friction", day, partition_key=f"{day}")

    def effect(day: date) -> Requests:
        """Count what users repeated yesterday although the memory held it the day before."""
        if day not in placement.workspace.open().lake.days("messages"):
            return dg.SkipReason(f"No session of {day} was read.")
        return _request("effect", day, partition_key=f"{day}")

    def quality(day: date) -> Requests:
        """Write the quality report of all days."""
        return _request("quality", day)

    def archive(day: date) -> Requests:
        """Archive the daily logs that are old enough. Off unless MEMORY_ARCHIVE_AFTER_DAYS is set."""
        return _request("archive", day)

    def prune(day: date) -> Requests:
        """Remove replaced runs that are 90 days old from Dagster's record, and rows that `[retention]` no longer
        keeps."""
        return _request("prune", day)

    return [
        *(schedule(DISTIL_SCHEDULES[n], DISTIL_JOBS[n], "0 5 * * *", _distil_requests(placement, n)) for n in LEVELS),
        schedule("reflect_at_six", REFLECT_JOB, "0 6 * * *", reflect),
        schedule("friction_at_seven", FRICTION_JOB, "0 7 * * *", friction),
        schedule("effect_at_twenty_past_seven", EFFECT_JOB, "20 7 * * *", effect),
        schedule("report_at_half_past_seven", QUALITY_JOB, "30 7 * * *", quality),
        schedule("archive_at_eight", ARCHIVE_JOB, "0 8 * * *", archive, is_on=archives),
        schedule("prune_on_sunday", PRUNE_JOB, "0 4 * * 0", prune),
    ]


def _request(name: str, day: date, partition_key: str | None = None) -> dg.RunRequest:
    return dg.RunRequest(run_key=f"{name}:{day}", partition_key=partition_key)


def _schedule(
    placement: Placement, name: str, job: str, cron: str, request: Callable[[date], Requests], *, is_on: bool = True
) -> dg.ScheduleDefinition:
    """A schedule that requests runs for the local day before the tick, also on the days of a clock change and when the
    tick runs late. The docstring of the request is its description."""
    zone = ZoneInfo(placement.settings.timezone)

    @dg.schedule(
        name=placement.name(name),
        job_name=placement.name(job),
        cron_schedule=cron,
        execution_timezone=placement.settings.timezone,
        default_status=dg.DefaultScheduleStatus(placement.status(is_on)),
        description=" ".join((request.__doc__ or "").split()),
    )
    def schedule(context: dg.ScheduleEvaluationContext) -> Requests:
        return request(context.scheduled_execution_time.astimezone(zone).date() - timedelta(days=1))

    return schedule


def _distil_requests(placement: Placement, level: int) -> Callable[[date], Requests]:
    """A request for runs over exactly the due periods of a level. The order of the levels does not matter, as each
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

    request.__doc__ = f"Distil the {NAMES[level]}s that are old enough or have changed."
    return request
