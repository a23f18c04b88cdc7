"""Watches the tasks in Todoist: what a person decides there is done within minutes. Off unless it is switched on."""

import hashlib
from datetime import UTC, datetime, timedelta

import dagster as dg

from memory_pipeline.orchestration import MOST_ATTEMPTS, LakeResource
from memory_pipeline.proposals.todoist.client import TodoistBusy, TodoistRefused, open_todoist
from memory_pipeline.proposals.todoist.planning import plan
from memory_pipeline.proposals.todoist.review import Reviewed, sync
from memory_pipeline.settings import load_settings

TODOIST_JOB = "todoist_job"
WORK_TAG = "memory/todoist"
"""Names what a run was asked to do, and the hour: what cannot be done is tried again each hour."""
SECONDS = 10.0
"""Most that each step of the one request of a tick may take."""
_OFF = "Todoist is off; MEMORY_TODOIST=true and TODOIST_API_TOKEN switch it on."


@dg.op(name="sync_todoist", description="Decisions from Todoist into MEMORY.md, proposals into Todoist.")
def sync_todoist(context: dg.OpExecutionContext, lake: LakeResource) -> None:
    settings = lake.settings()
    if not settings.todoist.enabled:
        raise dg.Failure(_OFF, allow_retries=False)
    try:
        with open_todoist(settings) as todoist:
            done = sync(settings, lake.open(), todoist, datetime.now(UTC))
    except (TodoistBusy, TodoistRefused) as error:
        raise dg.Failure(str(error), allow_retries=False) from None
    context.add_output_metadata({name: len(ids) for name, ids in vars(done).items()})
    context.log.info(_told(done))


@dg.job(
    name=TODOIST_JOB,
    description="Decisions from Todoist into MEMORY.md, proposals into Todoist.",
    executor_def=dg.in_process_executor,
)
def todoist_job() -> None:
    sync_todoist()


@dg.sensor(
    job=todoist_job,
    minimum_interval_seconds=120,
    default_status=dg.DefaultSensorStatus.RUNNING
    if load_settings().todoist.enabled
    else dg.DefaultSensorStatus.STOPPED,
    description="A task was completed, deleted, edited or labelled in Todoist, or proposals are no tasks yet.",
)
def todoist_sensor(context: dg.SensorEvaluationContext, lake: LakeResource) -> dg.SensorResult | dg.SkipReason:
    settings, tables, now = lake.settings(), lake.open(), datetime.now(UTC)
    if not settings.todoist.enabled:
        return dg.SkipReason(_OFF)
    if context.cursor and now < datetime.fromisoformat(context.cursor):
        return dg.SkipReason(f"Todoist asked to wait until {context.cursor}.")
    try:
        with open_todoist(settings, patience=0, seconds=SECONDS) as todoist:
            due = plan(settings, tables, todoist.review_tasks()).due
    except TodoistBusy as busy:
        context.update_cursor((now + timedelta(seconds=busy.wait)).isoformat(timespec="seconds"))
        return dg.SkipReason(str(busy))
    except TodoistRefused as error:
        raise dg.Failure(str(error)) from None  # a red tick: nothing will work until a person does something
    if not due:
        return dg.SkipReason("Every proposal in review is a task, and none of them was decided.")
    work = f"{hashlib.sha256(' '.join(due).encode()).hexdigest()[:16]}:{now:%Y-%m-%dT%H}"
    filters = dg.RunsFilter(job_name=TODOIST_JOB, tags={WORK_TAG: work}, statuses=[dg.DagsterRunStatus.FAILURE])
    failed = context.instance.get_runs_count(filters)
    if failed >= MOST_ATTEMPTS:
        return dg.SkipReason(f"{failed} runs failed in this hour; see why. It is tried again in the next.")
    context.log.info(", ".join(due))
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=f"todoist:{work}:{failed}", tags={WORK_TAG: work})])


def _told(done: Reviewed) -> str:
    return "; ".join(f"{name}: {', '.join(ids) or 'none'}" for name, ids in vars(done).items())
