"""Schedules and sensors that are on and do nothing: they have not ticked when it was time, or failed when they did."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster._core.scheduler.instigation import InstigatorState, ScheduleInstigatorData, SensorInstigatorData
from dagster._utils.schedules import get_smallest_cron_interval

from memory_pipeline.text.sentences import clip

GRACE = timedelta(days=1)
"""What passes over the time of a tick before it is missing: a machine sleeps at night."""
MAX_ERROR = 200
Automatic = dg.ScheduleDefinition | dg.SensorDefinition


def silent(instance: dg.DagsterInstance, automatic: Sequence[Automatic], now: datetime) -> dict[str, str]:
    """By name, a sentence. What the daemon has not taken up yet has nothing on record, and is left out."""
    states = {state.name: state for state in instance.all_instigator_state()}
    found = {}
    for one in automatic:
        state = states.get(one.name)
        if state is None or not state.is_running:
            continue
        ticks = instance.get_ticks(state.instigator_origin_id, state.selector_id, limit=1)
        last = ticks[0].timestamp if ticks else _begun(state)
        if last is None:
            continue
        moment = datetime.fromtimestamp(last, UTC)
        if now - moment > _period(one) + GRACE:
            found[one.name] = f"{one.name} is on and has not ticked since {moment:%Y-%m-%d %H:%M} UTC"
        elif ticks and ticks[0].is_failure:
            error = ticks[0].error
            why = clip(" ".join((error.cause or error).message.split()), MAX_ERROR) if error else "nobody knows why"
            found[one.name] = f"{one.name} failed at its last tick, {moment:%Y-%m-%d %H:%M} UTC: {why}"
    return found


def _begun(state: InstigatorState) -> float | None:
    """When it was switched on."""
    data = state.instigator_data
    if isinstance(data, ScheduleInstigatorData):
        return data.start_timestamp
    return data.last_sensor_start_timestamp if isinstance(data, SensorInstigatorData) else None


def _period(one: Automatic) -> timedelta:
    if isinstance(one, dg.SensorDefinition):
        return timedelta(seconds=one.minimum_interval_seconds or 0)
    crons = [one.cron_schedule] if isinstance(one.cron_schedule, str) else one.cron_schedule
    return min(get_smallest_cron_interval(cron, one.execution_timezone) for cron in crons)
