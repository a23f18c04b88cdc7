"""What is on and has not ticked when it was time is found, and what fails when it ticks."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.definitions.run_request import InstigatorType
from dagster._core.remote_origin import (
    InProcessCodeLocationOrigin,
    RemoteInstigatorOrigin,
    RemoteRepositoryOrigin,
)
from dagster._core.scheduler.instigation import (
    InstigatorState,
    InstigatorStatus,
    ScheduleInstigatorData,
    SensorInstigatorData,
    TickData,
    TickStatus,
)
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from dagster_shared.error import SerializableErrorInfo

from memory_pipeline.defs.silent import silent
from memory_pipeline_tests.loaded import ALL_SCHEDULES, reflect_at_six, session_sensor

NOW = datetime(2025, 4, 30, 12, tzinfo=UTC)
PRUNE = next(one for one in ALL_SCHEDULES if one.name == "prune_on_sunday")


@pytest.fixture
def instance(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.local_temp(f"{tmp_path}") as made:
        yield made


def ticked(
    instance: dg.DagsterInstance,
    one: dg.SensorDefinition | dg.ScheduleDefinition,
    days_ago: float | None,
    *,
    on_days_ago: float = 30,
    status: InstigatorStatus = InstigatorStatus.DECLARED_IN_CODE,
    error: str = "",
) -> None:
    """It was switched on and ticked last so many days ago, as the daemon keeps it."""
    location = InProcessCodeLocationOrigin(LoadableTargetOrigin(module_name="memory_pipeline.definitions"))
    origin = RemoteInstigatorOrigin(RemoteRepositoryOrigin(location, "__repository__"), one.name)
    begun = (NOW - timedelta(days=on_days_ago)).timestamp()
    if isinstance(one, dg.SensorDefinition):
        kind, data = InstigatorType.SENSOR, SensorInstigatorData(last_sensor_start_timestamp=begun)
    else:
        kind, data = InstigatorType.SCHEDULE, ScheduleInstigatorData(one.cron_schedule, begun)
    state = InstigatorState(origin, kind, status, data)
    instance.add_instigator_state(state)
    if days_ago is not None:
        moment = (NOW - timedelta(days=days_ago)).timestamp()
        failed = SerializableErrorInfo(error, [], "Error") if error else None
        result = TickStatus.FAILURE if error else TickStatus.SKIPPED
        tick = TickData(
            state.instigator_origin_id, one.name, kind, result, moment, error=failed, selector_id=state.selector_id
        )
        instance.create_tick(tick)


def test_what_ticks_is_not_told_nor_what_the_daemon_has_not_taken_up(instance: dg.DagsterInstance) -> None:
    ticked(instance, session_sensor, 0.01)
    ticked(instance, PRUNE, 6.9)
    assert silent(instance, [session_sensor, reflect_at_six, PRUNE], NOW) == {}


@pytest.mark.parametrize(
    ("one", "well", "late"), [(session_sensor, 0.9, 1.1), (reflect_at_six, 1.9, 2.1), (PRUNE, 7.9, 8.1)]
)
def test_it_is_late_a_day_after_its_time(
    instance: dg.DagsterInstance, one: dg.SensorDefinition, well: float, late: float
) -> None:
    ticked(instance, one, late)
    since = NOW - timedelta(days=late)
    assert silent(instance, [one], NOW) == {
        one.name: f"{one.name} is on and has not ticked since {since:%Y-%m-%d %H:%M} UTC"
    }
    assert silent(instance, [one], NOW - timedelta(days=late - well)) == {}


def test_one_that_never_ticked_is_late_from_when_it_was_switched_on(instance: dg.DagsterInstance) -> None:
    ticked(instance, reflect_at_six, None, on_days_ago=3)
    ticked(instance, session_sensor, None, on_days_ago=0.5)
    assert list(silent(instance, [reflect_at_six, session_sensor], NOW)) == ["reflect_at_six"]


def test_one_that_is_switched_off_is_no_matter(instance: dg.DagsterInstance) -> None:
    ticked(instance, session_sensor, 9, status=InstigatorStatus.STOPPED)
    assert silent(instance, [session_sensor], NOW) == {}


def test_one_that_fails_is_told_with_the_reason(instance: dg.DagsterInstance) -> None:
    ticked(instance, session_sensor, 0.01, error="SettingError: timezone is no zone\n")
    (told,) = silent(instance, [session_sensor], NOW).values()
    assert told == ("session_sensor failed at its last tick, 2025-04-30 11:45 UTC: SettingError: timezone is no zone")
