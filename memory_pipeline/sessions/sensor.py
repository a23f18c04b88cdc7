"""Watches the session directories. The directories are the queue: a rescan finds whatever was missed.

It asks for whole days, so it stands above all stages and may know the plan.
"""

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, date, datetime

import dagster as dg

from memory_pipeline.days import day_of
from memory_pipeline.llm.own_sessions import is_inside
from memory_pipeline.orchestration import MOST_ATTEMPTS, PARTITIONS, LakeResource
from memory_pipeline.planning import Stages
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources, roots

DAY_JOB = "day_job"
MOST_DAYS = 20
"""Runs asked for in one tick; the rest is found again by the next."""
RUNS_LOOKED_AT = 500
INPUT_TAG = "memory/input"
"""Names the state of the inputs that a run was asked for."""
RECENT_DAYS = 7
"""Days that are asked for however many are due."""
SECONDS = 2.0
"""Time for reading changed files in one tick: the sensor shares its process with the UI's other questions."""
day_job = dg.define_asset_job(
    DAY_JOB,
    # the others have jobs of their own: they look back over weeks, and one that refuses must not stop a day
    selection=dg.AssetSelection.all()
    - dg.AssetSelection.assets("pool_reflections", "day_distillations", "week_distillations", "month_distillations"),
    description="A day from its session files to MEMORY.md and friction.",
)


@dg.sensor(
    job_name=DAY_JOB,
    minimum_interval_seconds=60,
    default_status=dg.DefaultSensorStatus.RUNNING,
    description="Session files are new or have grown and are idle: materialize the days that they touch.",
)
def session_sensor(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    if is_inside():
        return dg.SkipReason("This process was started by a model command of the pipeline itself.")
    settings, tables, now = lake.settings(), lake.open(), datetime.now(UTC)
    catalogue = Catalogue(tables, settings)
    seen = catalogue.refresh(find_sources(roots(settings)), seconds=SECONDS)
    stages = Stages.of(settings, catalogue, now, for_planning=True)
    due = {
        day: state_of(stages, day, day_of(now, settings.zone))
        for day in settled_days(catalogue, now)
        if not stages.is_current(day)
    }
    failed = failed_runs(context.instance)
    hopeless = [day for day, fingerprint in due.items() if failed[fingerprint] >= MOST_ATTEMPTS]
    told = f"{seen.files} session files, {seen.changed} changed, {seen.left} still to be read"
    if hopeless:
        told += f"; {MOST_ATTEMPTS} runs failed for {', '.join(map(str, hopeless))}: see why and run these by hand"
    due = {day: key for day, key in due.items() if day not in hopeless}
    if older := [day for day in due if day < PARTITIONS.start.date()]:
        told += (
            f"; {len(older)} days from {older[0]} on are older than what Dagster has loaded: reload the code location"
        )
        due = {day: key for day, key in due.items() if day not in older}
    history = history_of(due, day_of(now, settings.zone))
    if history:
        told += (
            f"; {len(history)} days from {history[0]} to {history[-1]} are too many to be asked for one by one: "
            "call `memory run --all`, or start a backfill of these days"
        )
    requests = [
        dg.RunRequest(run_key=f"{day}:{key}:{failed[key]}", partition_key=f"{day}", tags={INPUT_TAG: key})
        for day, key in due.items()
        if day not in history
    ]
    context.log.info(told)
    return (
        dg.SensorResult(run_requests=requests[:MOST_DAYS])
        if requests
        else dg.SkipReason(f"{told}; no day is asked for.")
    )


def state_of(stages: Stages, day: date, today: date) -> str:
    """What a run of the day would be asked for. One that waits for something is asked for once more on each new day:
    a model's budget begins again then."""
    fingerprint = stages.fingerprint(day)
    return f"{fingerprint}:{today}" if stages.is_incomplete(day) else fingerprint


def history_of(due: Iterable[date], now: date) -> list[date]:
    """The due days that are left to a backfill, which does them all in one run: those of long ago, if they are many."""
    old = [day for day in due if (now - day).days >= RECENT_DAYS]
    return old if len(old) > MOST_DAYS else []


def settled_days(catalogue: Catalogue, now: datetime) -> list[date]:
    """Days none of whose sessions is being written to, oldest first: a day looks back on those before it."""
    return [
        day
        for day in catalogue.days()
        if all(catalogue.is_idle(path, day, now) for path in catalogue.files_of(day) if path in catalogue.present)
    ]


def failed_runs(instance: dg.DagsterInstance) -> Counter[str]:
    """By fingerprint: how many of this sensor's latest runs failed with no success after them."""
    runs = instance.get_runs(dg.RunsFilter(job_name=DAY_JOB), limit=RUNS_LOOKED_AT)  # newest first
    failed: Counter[str] = Counter()
    done: set[str] = set()
    for run in runs:
        key = run.tags.get(INPUT_TAG)
        if key and run.status == dg.DagsterRunStatus.SUCCESS:
            done.add(key)
        elif key and run.status == dg.DagsterRunStatus.FAILURE and key not in done:
            failed[key] += 1
    return failed
