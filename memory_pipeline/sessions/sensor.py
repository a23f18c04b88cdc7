"""Watches the session directories. The directories are the queue: a rescan finds whatever was missed."""

from datetime import UTC, date, datetime

import dagster as dg

from memory_pipeline.lake import Lake
from memory_pipeline.orchestration import LakeResource
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_files, roots
from memory_pipeline.sessions.stage import NAMES
from memory_pipeline.settings import Settings

DAY_JOB = "day_job"
MOST_DAYS = 20
"""Runs asked for in one tick; the rest is found again by the next."""
SECONDS = 20.0
"""Time for reading changed files in one tick; a tick may take 60 s in all."""
day_job = dg.define_asset_job(
    DAY_JOB,
    selection=dg.AssetSelection.all(),
    description="A day from its session files to MEMORY.md and friction.",
)


@dg.sensor(job_name=DAY_JOB, minimum_interval_seconds=60, default_status=dg.DefaultSensorStatus.RUNNING)
def session_sensor(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    """Session files are new or have grown and are idle: materialize the days that they touch."""
    settings, tables, now = lake.settings(), lake.open(), datetime.now(UTC)
    catalogue = Catalogue(tables, settings)
    seen = catalogue.refresh(find_files(roots(settings)), seconds=SECONDS)
    due = due_days(settings, tables, catalogue, now)
    if not due:
        return dg.SkipReason(
            f"{seen.files} session files, {seen.changed} changed, {seen.left} still to be read; no day is due."
        )
    requests = [
        dg.RunRequest(run_key=f"{day}:{fingerprint}", partition_key=f"{day}")
        for day, fingerprint in list(due.items())[-MOST_DAYS:]
    ]
    return dg.SensorResult(run_requests=requests)


def due_days(settings: Settings, lake: Lake, catalogue: Catalogue, now: datetime) -> dict[date, str]:
    """Days whose sessions are not what the tables say, with the fingerprint that they would have.

    A day waits while one of its sessions is being written to: it will be due once it is idle.
    """
    due = {}
    for day in catalogue.days():
        paths = [path for path in catalogue.files_of(day) if path in catalogue.present]
        if not all(catalogue.is_idle(path, now) for path in paths):
            continue
        fingerprint = catalogue.fingerprint(day, now)
        if any(lake.fingerprint(table, day) != fingerprint for table in NAMES):
            due[day] = fingerprint
    return due
