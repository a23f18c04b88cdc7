"""Notifications of failed runs, on the desktop or by a POST to a URL."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.error
import urllib.request
from typing import Any

import dagster as dg

from memory_pipeline.defs.placement import Placement
from memory_pipeline.redaction import redactor_of
from memory_pipeline.settings import Settings
from memory_pipeline.text.sentences import clip

TITLE = "memory_pipeline"
MAX_TEXT = 400
SECONDS = 10
OFF, DESKTOP = "off", "desktop"


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
    if sys.platform == "darwin":
        script = f"display notification {json.dumps(text)} with title {json.dumps(TITLE)}"
        command = ["osascript", "-e", script]
    else:
        command = ["notify-send", "--app-name", TITLE, TITLE, text]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
    except (subprocess.SubprocessError, OSError) as error:
        raise dg.Failure(f"MEMORY_NOTIFY=desktop: {command[0]} failed: {error}") from None


def _post(url: str, text: str) -> None:
    data = json.dumps({"text": f"{TITLE}: {text}"}).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=SECONDS):
            return
    except urllib.error.HTTPError as error:
        error.close()
        why = f"{error.code}"
    except (OSError, ValueError) as error:
        why = type(error).__name__  # its message may contain the URL, and that a token
    raise dg.Failure(f"MEMORY_NOTIFY: the address did not accept the notification ({why}).")
