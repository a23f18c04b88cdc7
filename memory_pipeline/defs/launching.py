"""Runs over days that another process is to execute, by the run launcher of the workspace's `dagster.yaml`.

Dagster's own launcher starts each run on this machine, and nothing here is used. With the one of `dagster-celery`, runs
go to a broker and whichever Celery worker is free takes one. Celery does not notice that a worker was killed while it
had a run; who waits for the run asks the workers.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

import dagster as dg
from dagster._core.definitions.reconstruct import ReconstructableRepository
from dagster._core.definitions.repository_definition import SINGLETON_REPOSITORY_NAME
from dagster._core.launcher import DefaultRunLauncher
from dagster._core.remote_origin import RemoteRepositoryOrigin
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from memory_pipeline.defs.orchestration import range_tags
from memory_pipeline.defs.web_server import MODULE, code_location
from memory_pipeline.errors import TryAgainLaterError

if TYPE_CHECKING:
    from memory_pipeline.settings import Settings

LAUNCHED_TAG = ".dagster/memory_launched"
"""Of runs that a command waits for. Not shown in the UI, which leaves out what begins so."""
ASK_SECONDS = 1.0
"""Within which a Celery worker answers what it has; it does so beside its run."""
MAX_REASON = 200


class LauncherGoneError(TryAgainLaterError):
    """The broker cannot be reached, or no worker answers; the message says so."""


@dataclass(frozen=True)
class WorkersNow:
    """What the workers of the launcher have."""

    answered: int = 0
    """How many answered."""
    idle: int = 0
    """How many of them have no run."""
    runs: frozenset[str] = field(default=frozenset())
    """Of the runs that were asked for, by id, those that a worker has."""


def launches_elsewhere(instance: dg.DagsterInstance) -> bool:
    """Whether the instance has another run launcher than Dagster's own. Raises `LauncherGoneError` where the one that
    is named cannot be loaded."""
    try:
        return not isinstance(instance.run_launcher, DefaultRunLauncher)
    except Exception as error:
        raise LauncherGoneError(
            f"The run launcher that {instance.root_directory}/dagster.yaml names cannot be loaded ({_said(error)})."
        ) from error


def launch(settings: Settings, instance: dg.DagsterInstance, job: str, days: tuple[date, date]) -> str:
    """Have a run begun elsewhere; returns its id. Raises `LauncherGoneError`."""
    recon = ReconstructableRepository.for_module(MODULE, "defs").get_reconstructable_job(job)
    remote = RemoteRepositoryOrigin(code_location(settings), SINGLETON_REPOSITORY_NAME).get_job_origin(job)
    run = instance.create_run_for_job(
        job_def=recon.get_definition(),
        tags={LAUNCHED_TAG: "yes", **range_tags(*days)},
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        job_code_origin=recon.get_python_origin(),
        remote_job_origin=remote,
    )
    nowhere: Any = None  # launchers that need the UI's workspace start runs on its machine
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # dagster-celery names its task anew for every run, of which Celery warns
            instance.launch_run(run.run_id, nowhere)
    except Exception as error:
        raise LauncherGoneError(
            f"The run over {' to '.join(map(str, days))} could not be handed to {_name(instance)} ({_said(error)}). Is "
            "its broker running? What is finished is kept; the next call does the rest."
        ) from error
    return str(run.run_id)


def unfinished(instance: dg.DagsterInstance) -> list[str]:
    """The runs that were launched, also by an earlier command, and have not ended."""
    runs = instance.get_runs(dg.RunsFilter(statuses=[*NOT_FINISHED_STATUSES], tags={LAUNCHED_TAG: "yes"}))
    return [run.run_id for run in runs]


def has_started(instance: dg.DagsterInstance, run_id: str) -> bool:
    run = instance.get_run_by_id(run_id)
    return run is not None and run.status is dg.DagsterRunStatus.STARTED


def failure_of(instance: dg.DagsterInstance, run_id: str) -> str | None:
    """What failed first in a run that has ended; None where it succeeded."""
    run = instance.get_run_by_id(run_id)
    if run is not None and run.status is dg.DagsterRunStatus.SUCCESS:
        return None
    logs = instance.all_logs(run_id, of_type=dg.DagsterEventType.STEP_FAILURE)
    errors = [entry.dagster_event.step_failure_data.error for entry in logs if entry.dagster_event]
    first = next(filter(None, errors), None)
    while first is not None and first.cause:
        first = first.cause
    if first is not None:
        return " ".join(first.message.split())[:600]
    ends = instance.all_logs(run_id, of_type=dg.DagsterEventType.RUN_FAILURE)
    return ends[-1].message if ends else "It was canceled."


def workers_now(instance: dg.DagsterInstance, run_ids: set[str]) -> WorkersNow | None:
    """Which of these runs the launcher's workers have now; None for a launcher that cannot be asked. Raises
    `LauncherGoneError` while the broker cannot be reached."""
    celery = getattr(instance.run_launcher, "celery", None)
    if celery is None:
        return None
    try:
        asked = celery.control.inspect(timeout=ASK_SECONDS)
        active, reserved = asked.active() or {}, asked.reserved() or {}
    except Exception as error:
        raise LauncherGoneError(
            f"The broker of {_name(instance)} cannot be reached ({_said(error)}). What is finished is kept; run it "
            "again when it is back."
        ) from error
    # By what the tasks are called with, as the run's tag with the id of its task may be lost: the launcher sets it when
    # a worker may have begun the run already, and each writes the whole row.
    calls = [f"{task['kwargs']}" for of_worker in (*active.values(), *reserved.values()) for task in of_worker]
    idle = sum(not of_worker and not reserved.get(name) for name, of_worker in active.items())
    return WorkersNow(len(active), idle, frozenset(run for run in run_ids if any(run in call for call in calls)))


def give_up(instance: dg.DagsterInstance, run_id: str, why: str) -> None:
    """Have a run that nobody executes recorded as failed."""
    run = instance.get_run_by_id(run_id)
    if run is not None and not run.is_finished:
        instance.report_run_failed(run, why)


def stop(instance: dg.DagsterInstance, run_id: str) -> None:
    """Take a run from its worker, as far as that can be reached; what it finished is kept."""
    try:
        instance.run_launcher.terminate(run_id)
    finally:
        run = instance.get_run_by_id(run_id)
        if run is not None and not run.is_finished:
            instance.report_run_canceled(run)


def _name(instance: dg.DagsterInstance) -> str:
    return type(instance.run_launcher).__name__


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(f'{error}'.split())}"[:MAX_REASON].rstrip(".")
