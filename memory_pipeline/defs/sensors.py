"""The sensors on the session directories, the observations of today, REVIEW.md, tasks in Todoist and failed runs.

The session directories are the queue: a rescan finds whatever was missed.
"""

import hashlib
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import dagster as dg

from memory_pipeline.days import day_of, today
from memory_pipeline.defs.jobs import DAY_JOB, REFLECT_JOB, REVIEW_JOB, TODOIST_IS_OFF, TODOIST_JOB
from memory_pipeline.defs.placement import Placement
from memory_pipeline.defs.under_way import work_under_way
from memory_pipeline.lake.store import Lake
from memory_pipeline.llm.prompts import is_inside
from memory_pipeline.planning import Stages
from memory_pipeline.proposals.todoist.client import Todoist, TodoistBusyError, TodoistRefusedError
from memory_pipeline.proposals.todoist.review import due as due_at_todoist
from memory_pipeline.redaction import redactor_of
from memory_pipeline.sessions.catalogue import Catalogue
from memory_pipeline.sessions.discovery import find_sources, roots
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip

IS_INSIDE = "This process was started by a model command of the pipeline itself."
RETRY_TAGS = {"dagster/max_retries": "2"}
"""Dagster retries a failed run twice. For the same input a run is requested once."""
MAX_DAYS = 20
"""Maximum old days that are requested; more are left to a backfill."""
RECENT_DAYS = 7
"""Age in days up to which days are requested regardless of the number of due days."""
REFRESH_SECONDS = 2.0
"""Maximum seconds for reading changed files in one tick, as other requests of the UI share the process."""
SETTLED_SECONDS = 3.0
"""Seconds after which a saved REVIEW.md counts as complete."""
TODOIST_SECONDS = 10.0
"""Maximum seconds of each step of the request to Todoist in a tick."""
TITLE = "memory_pipeline"
"""The title of a notification."""
MAX_TEXT = 400
NOTIFY_SECONDS = 10
OFF, DESKTOP = "off", "desktop"


def session_sensor_of(placement: Placement) -> dg.SensorDefinition:
    """The sensor on the session directories; it requests no day before the first loaded partition."""

    @_sensor(placement, DAY_JOB, 60)
    def session_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        """Materialize the days of session files that are new or have grown and are idle."""
        if is_inside():
            return dg.SkipReason(IS_INSIDE)
        opened, now = placement.workspace.open(), datetime.now(UTC)
        settings = opened.settings
        catalogue = Catalogue(opened.lake, settings)
        seen = catalogue.refresh(find_sources(roots(settings)), seconds=REFRESH_SECONDS)
        stages = Stages.from_settings(settings, catalogue, now, for_planning=True)
        due = {
            day: state_of(stages, day, day_of(now, settings.zone))
            for day in settled_days(catalogue, now)
            if not stages.is_current(day)
        }
        summary = f"{seen.files} session files, {seen.changed} changed, {seen.left} still to be read"
        older = [day for day in due if day < placement.settings.start_date]
        if older:
            summary += f"; {len(older)} days from {older[0]} on are before the partitions: reload the code location"
        due = {day: key for day, key in due.items() if day not in older}
        history = history_of(due, day_of(now, settings.zone))
        if history:
            summary += (
                f"; {len(history)} days from {history[0]} to {history[-1]} are too many for single runs: run `memory "
                f"backfill`, or start a backfill of these days here"
            )
        requests = [
            dg.RunRequest(run_key=f"{day}:{key}", partition_key=f"{day}", tags=RETRY_TAGS)
            for day, key in due.items()
            if day not in history
        ]
        if requests and (busy := work_under_way(context.instance, placement)):
            others = f" and {len(busy) - 1} more" if len(busy) > 1 else ""
            return dg.SkipReason(f"{summary}; {len(requests)} days are due and wait for the end of {busy[0]}{others}.")
        context.log.info(summary)
        return dg.SensorResult(run_requests=requests) if requests else dg.SkipReason(f"{summary}; no run is requested.")

    return session_sensor


def state_of(stages: Stages, day: date, today: date) -> str:
    """The state of the day's inputs, for which a run is requested once. A waiting day has a new state each day, as a
    model's budget then starts again."""
    fingerprint = stages.fingerprint(day)
    return f"{fingerprint}:{today}" if stages.is_incomplete(day) else fingerprint


def history_of(due: Iterable[date], now: date) -> list[date]:
    """The due days that are left to a backfill, which handles them in one run: old days, if they are many."""
    old = [day for day in due if (now - day).days >= RECENT_DAYS]
    return old if len(old) > MAX_DAYS else []


def settled_days(catalogue: Catalogue, now: datetime) -> list[date]:
    """The days whose sessions are all idle, oldest first, as a day looks back on earlier ones."""
    return [
        day
        for day in catalogue.days()
        if all(catalogue.is_idle(path, day, now) for path in catalogue.files_of(day) if path in catalogue.present)
    ]


def early_request(lake: Lake, day: date, threshold: int) -> dg.RunRequest | dg.SkipReason:
    """A run request for the day if its observations have ``threshold`` tokens; its key is the day, so it is requested
    once."""
    tokens = int(lake.read("observations", [day], ["tokens"])["tokens"].sum())
    if tokens < threshold:
        return dg.SkipReason(f"The observations of {day} have {tokens:,} tokens, fewer than {threshold:,}.")
    return dg.RunRequest(run_key=f"reflect_early:{day}", partition_key=f"{day}")


Look = Callable[[dg.SensorEvaluationContext], dg.SensorResult | dg.RunRequest | dg.SkipReason]


def _sensor(
    placement: Placement, job: str, seconds: int, *, is_on: bool = True
) -> Callable[[Look], dg.SensorDefinition]:
    """A decorator of the function that looks every so many seconds whether the job should run; its docstring is the
    description."""

    def sensor_of(look: Look) -> dg.SensorDefinition:
        return dg.sensor(
            name=placement.name(look.__name__),
            job_name=placement.name(job),
            minimum_interval_seconds=seconds,
            default_status=dg.DefaultSensorStatus(placement.status(is_on)),
            description=" ".join((look.__doc__ or "").split()),
        )(look)

    return sensor_of


def sensors(placement: Placement) -> list[dg.SensorDefinition]:
    """All sensors; the one for Todoist is off unless it is switched on."""

    @_sensor(placement, REFLECT_JOB, 300)
    def reflect_early(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        """Reflect on today, once, when its observations exceed MEMORY_REFLECT_EARLY_TOKENS."""
        if is_inside():
            return dg.SkipReason(IS_INSIDE)
        opened = placement.workspace.open()
        return early_request(opened.lake, today(opened.settings.zone), opened.settings.reflect_early_tokens)

    @_sensor(placement, REVIEW_JOB, 30)
    def review_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        """Read the decisions and update MEMORY.md when a user has saved REVIEW.md."""
        settings = placement.workspace.open().settings
        path, shown = settings.review_file, settings.review_shown
        if not path.exists():
            return dg.SkipReason("There is no REVIEW.md yet.")
        if time.time() - path.stat().st_mtime < SETTLED_SECONDS:
            return dg.SkipReason("REVIEW.md was saved just now; an editor may still be writing.")
        data = path.read_bytes()
        if shown.exists() and shown.read_bytes() == data:
            return dg.SkipReason("REVIEW.md is unchanged.")
        saved = f"{hashlib.sha256(data).hexdigest()}:{path.stat().st_mtime_ns}"
        return _request("review", saved)

    @_sensor(placement, TODOIST_JOB, 120, is_on=placement.settings.todoist.enabled)
    def todoist_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        """Synchronize with Todoist when a task was completed, deleted, edited or labelled, or a proposal has no task
        yet."""
        opened, now = placement.workspace.open(), datetime.now(UTC)
        if not opened.settings.todoist.enabled:
            return dg.SkipReason(TODOIST_IS_OFF)
        if context.cursor and now < datetime.fromisoformat(context.cursor):
            return dg.SkipReason(f"Todoist asked to wait until {context.cursor}.")
        try:
            todoist = Todoist(opened.settings.todoist.api_token, patience=0, seconds=TODOIST_SECONDS)
            due = due_at_todoist(opened, todoist)
        except TodoistBusyError as busy:
            context.update_cursor((now + timedelta(seconds=busy.wait)).isoformat(timespec="seconds"))
            return dg.SkipReason(str(busy))
        except TodoistRefusedError as error:
            raise dg.Failure(str(error)) from None  # shown as a failed tick: it needs action by the user
        if not due:
            return dg.SkipReason("Every proposal in review has a task, and none of them was decided.")
        work = f"{hashlib.sha256(' '.join(due).encode()).hexdigest()[:16]}:{now:%Y-%m-%dT%H}"
        context.log.info(", ".join(due))
        return _request("todoist", work)

    return [session_sensor_of(placement), reflect_early, review_sensor, todoist_sensor, failure_sensor(placement)]


def _request(kind: str, state: str) -> dg.SensorResult:
    return dg.SensorResult(run_requests=[dg.RunRequest(run_key=f"{kind}:{state}", tags=RETRY_TAGS)])


def failure_sensor(placement: Placement) -> dg.SensorDefinition:
    """The sensor on failed runs; it is on if `notify` is set."""

    @dg.run_failure_sensor(
        name=placement.name("tell_failures"),
        minimum_interval_seconds=30,
        default_status=dg.DefaultSensorStatus(placement.status(placement.settings.notify != OFF)),
        description="Notify the target of MEMORY_NOTIFY when a run fails.",
    )
    def tell_failures(context: dg.RunFailureSensorContext) -> dg.SkipReason | None:
        if not placement.owns(context.dagster_run):
            return dg.SkipReason(f"{context.dagster_run.job_name} is no job of this pipeline.")
        current = placement.workspace.settings()
        if current.notify == OFF:
            return dg.SkipReason("MEMORY_NOTIFY is off.")
        steps = [event.step_failure_data.error for event in context.get_step_failure_events()]
        reasons = [_first_cause(error) for error in steps if error] or [context.failure_event.message or ""]
        message = text_of(context.dagster_run.job_name, reasons[0])
        tell(current, redactor_of(current).redact(message))
        return None

    return tell_failures


def _first_cause(error: Any) -> str:
    while error.cause:
        error = error.cause
    return str(error.message)


def text_of(job: str, reason: str) -> str:
    """The notification, in one line."""
    return clip(f"{job} failed: {' '.join(reason.split())}", MAX_TEXT) + " `memory status` and the Dagster UI say more."


def tell(settings: Settings, text: str) -> None:
    """Send the notification. Raises `dg.Failure`, which is shown as a failed tick, if that fails."""
    if settings.notify == DESKTOP:
        _notify_desktop(text)
    elif settings.notify != OFF:
        _post(settings.notify, text)


def _notify_desktop(text: str) -> None:
    command = ["notify-send", "--app-name", TITLE, TITLE, text]
    if sys.platform == "darwin":
        command = ["osascript", "-e", f"display notification {json.dumps(text)} with title {json.dumps(TITLE)}"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=NOTIFY_SECONDS)
    except (subprocess.SubprocessError, OSError) as error:
        raise dg.Failure(f"MEMORY_NOTIFY=desktop: {command[0]} failed: {error}") from None


def _post(url: str, text: str) -> None:
    data = json.dumps({"text": f"{TITLE}: {text}"}).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method="POST")
    try:
        urllib.request.urlopen(request, timeout=NOTIFY_SECONDS).close()
        return
    except urllib.error.HTTPError as error:
        error.close()
        why = f"{error.code}"
    except (OSError, ValueError) as error:
        why = type(error).__name__  # its message may contain the URL, and that a token
    raise dg.Failure(f"MEMORY_NOTIFY: the address did not accept the notification ({why}).")
